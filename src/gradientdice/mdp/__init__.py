"""Finite MDPs whose answers are known exactly."""

from gradientdice.mdp.chains import boyan_chain, boyan_features, pair_features, single_state
from gradientdice.mdp.maintenance import machine_maintenance, threshold_policy
from gradientdice.mdp.sparse import SparseMDP
from gradientdice.mdp.tabular import TabularMDP

__all__ = [
    "SparseMDP",
    "TabularMDP",
    "boyan_chain",
    "boyan_features",
    "machine_maintenance",
    "pair_features",
    "single_state",
    "threshold_policy",
]
