"""How often intervals cover, and how wide they are."""
