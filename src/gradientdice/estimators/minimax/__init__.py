"""Estimators by two function classes that play against each other: MWL, MQL, the regularised Lagrangian, black box."""
