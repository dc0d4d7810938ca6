"""Estimators of a ratio of states that know the behaviour policy: COP-TD, its discounted form, BCH, GEM."""
