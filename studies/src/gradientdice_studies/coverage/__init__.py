"""How often intervals cover the truth, and how wide they are."""
