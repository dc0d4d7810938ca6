"""Estimators by importance weights along whole trajectories: IS, PDIS, WIS, WPDIS, DR, WDR, MAGIC."""
