"""Boyan's Chain: figures 2 and 3 of the paper, and three studies of our own."""
