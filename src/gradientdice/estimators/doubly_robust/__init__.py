"""Doubly robust answers from a ratio and a Q that did not see the row, and the default that searches for functions."""
