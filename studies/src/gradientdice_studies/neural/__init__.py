"""How often the intervals of neural answers cover the truth, on pendulum and Reacher."""
