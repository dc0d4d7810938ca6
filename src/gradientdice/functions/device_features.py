"""A function class whose feature rows are made on a device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Num

from gradientdice.base.accelerator import Devices
from gradientdice.functions.device_rows import DeviceRows, Place
from gradientdice.functions.kernel import FittedKernel
from gradientdice.functions.kernel_features import FourierFeatures, LandmarkFeatures
from gradientdice.functions.linear import LinearFeatures
from gradientdice.policies import SamplingPolicy, StatePolicy


@dataclass(frozen=True, eq=False)
class DeviceFeatures:
    """A function class whose rows are made on a device; the policy is asked here, as it is without one.

    Attributes:
        functions: features that the user gives, or a kernel's.
        place: the devices.
    """

    functions: LinearFeatures | FittedKernel
    place: Place

    @classmethod
    def of(cls, functions: LinearFeatures | FittedKernel, devices: Devices, chunk_rows: int) -> DeviceFeatures:
        """Device features for chunks of at most so many rows."""
        features = functions.features if isinstance(functions, FittedKernel) else None
        known = features if isinstance(features, (FourierFeatures, LandmarkFeatures)) else None
        return cls(functions, Place(devices, -(-chunk_rows // devices.count) * devices.count, known))

    def at(self, states: Num[np.ndarray, "n ..."], actions: Num[np.ndarray, "n ..."]) -> DeviceRows:
        """The features x(s,a) on a device."""
        functions = self.functions
        if self.place.features is None or isinstance(functions, LinearFeatures):
            return self._given(functions.at(states, actions))
        if functions.num_actions is None:
            return self._averaged([functions.inputs(states, actions)])
        weights = functions.indicators(actions)
        return DeviceRows(self.place, functions.inputs(states)[None], weights)

    def expected(self, states: Num[np.ndarray, "n ..."], policy: StatePolicy, rng: np.random.Generator) -> DeviceRows:
        """Expected features on a device: exact for discrete actions, a mean of several draws for a sampler."""
        functions = self.functions
        if self.place.features is None or isinstance(functions, LinearFeatures):
            return self._given(functions.expected(states, policy, rng))
        if isinstance(policy, SamplingPolicy):
            draws = policy.draws or functions.draws
            return self._averaged([functions.inputs(states, policy.sample(states, rng)) for _ in range(draws)])
        return DeviceRows(self.place, functions.inputs(states)[None], policy.probabilities_at(states))

    def _averaged(self, inputs: list[np.ndarray]) -> DeviceRows:
        return DeviceRows(self.place, np.stack(inputs), np.ones((len(inputs[0]), 1)))

    def _given(self, rows: Any) -> DeviceRows:
        values = rows.matrix(rows.width if hasattr(rows, "width") else rows.values.shape[1])
        return DeviceRows(self.place, values[None], np.ones((len(values), 1)))
