"""Estimators that are the saddle point of an objective: GradientDICE, GenDICE, DualDICE, and a user's own."""
