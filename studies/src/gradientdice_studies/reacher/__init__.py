"""Reacher: the paper's experiment with networks."""
