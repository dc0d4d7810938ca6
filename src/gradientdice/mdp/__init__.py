"""Finite MDPs whose answers are known exactly."""

from gradientdice.mdp.benchmarks.baird import baird_features, baird_policies, baird_star
from gradientdice.mdp.benchmarks.chains import boyan_chain, boyan_features, pair_features, single_state
from gradientdice.mdp.benchmarks.grids import (
    four_rooms,
    four_rooms_policies,
    frozen_lake,
    frozen_lake_policies,
    grid_walk,
    grid_walk_policies,
)
from gradientdice.mdp.benchmarks.maintenance import machine_maintenance, threshold_policy
from gradientdice.mdp.benchmarks.model_win import (
    model_fail_mdp,
    model_fail_observations,
    model_fail_policies,
    model_win_mdp,
    model_win_policies,
)
from gradientdice.mdp.benchmarks.mountain_car_graph import mountain_car, mountain_car_policies
from gradientdice.mdp.benchmarks.page_rank import offline_page_rank, page_rank_policies, preferential_attachment
from gradientdice.mdp.benchmarks.taxi import taxi_policies, taxi_world
from gradientdice.mdp.finite import FiniteMDP, SparseMDP, TabularMDP
from gradientdice.mdp.planning import mixed_with_uniform, optimal_q, softmax_policy, with_clock

__all__ = [
    "FiniteMDP",
    "SparseMDP",
    "TabularMDP",
    "baird_features",
    "baird_policies",
    "baird_star",
    "boyan_chain",
    "boyan_features",
    "four_rooms",
    "four_rooms_policies",
    "frozen_lake",
    "frozen_lake_policies",
    "grid_walk",
    "grid_walk_policies",
    "machine_maintenance",
    "mixed_with_uniform",
    "model_fail_mdp",
    "model_fail_observations",
    "model_fail_policies",
    "model_win_mdp",
    "model_win_policies",
    "mountain_car",
    "mountain_car_policies",
    "offline_page_rank",
    "optimal_q",
    "page_rank_policies",
    "pair_features",
    "preferential_attachment",
    "single_state",
    "softmax_policy",
    "taxi_policies",
    "taxi_world",
    "threshold_policy",
    "with_clock",
]


def __dir__() -> list[str]:
    """The problems and types, without the names of modules."""
    return list(__all__)
