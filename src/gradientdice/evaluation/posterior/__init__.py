"""Posteriors of a policy's value, and of which of several policies is best."""
