"""Stochastic solvers: one learner for linear functions and networks, and whole grids of its runs."""
