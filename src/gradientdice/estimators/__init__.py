"""The estimators, in families: one file each. `evaluation/registry.py` names them all."""
