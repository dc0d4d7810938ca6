"""Solvers; import them from their modules, since only the stochastic ones need JAX."""
