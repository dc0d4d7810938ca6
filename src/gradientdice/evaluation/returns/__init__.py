"""The distribution of the target's return."""
