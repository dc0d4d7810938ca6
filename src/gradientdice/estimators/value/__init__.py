"""Estimators by a Q-function: LSTDQ and fitted Q evaluation."""
