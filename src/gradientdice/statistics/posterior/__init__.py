"""Draws from posteriors of a policy's value: the Bayesian bootstrap, and the conjugate model of a table."""
