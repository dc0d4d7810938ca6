"""Modules of PyTorch, and its distributions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from gradientdice.base.errors import InputError
from gradientdice.base.extras import optional
from gradientdice.policies.adapters.options import Options
from gradientdice.policies.adapters.outputs import as_probabilities, one_hot, softmax
from gradientdice.policies.adapters.seeding import torch_seeded
from gradientdice.policies.discrete import DiscretePolicy
from gradientdice.policies.sampling import SamplingPolicy


def adapt(obj: Any, options: Options) -> DiscretePolicy | SamplingPolicy:
    """A module from a batch of states to logits, probabilities, actions or a distribution; or one distribution.

    It is called in evaluation mode and without gradients, on the device and with the precision of its parameters.
    """
    options.only("a module of PyTorch", "deterministic", "num_actions", "outputs", "normalizer")
    torch = optional("torch", "torch")
    if isinstance(obj, torch.distributions.Distribution):
        call = _always(obj)
        count = obj.logits.shape[-1] if isinstance(obj, torch.distributions.Categorical) else options.num_actions
    elif isinstance(obj, torch.nn.Module):
        call, count = _Call(torch, obj, options.normalizer), options.num_actions
    else:
        raise InputError(f"A {type(obj).__name__} of PyTorch is no policy: give a module, or a distribution.")
    if count is not None:
        return DiscretePolicy(_probabilities(torch, call, count, options), count)
    return _continuous(torch, call, bool(options.deterministic))


def _probabilities(torch: Any, call: Any, count: int, options: Options) -> Any:
    def probabilities(states: np.ndarray) -> np.ndarray:
        returned = call(states)
        if not isinstance(returned, torch.distributions.Distribution):
            return as_probabilities(returned, count, options.outputs, options.deterministic)
        logits = getattr(returned, "logits", None)
        if logits is None:
            raise InputError(f"The network returns a {type(returned).__name__}, which has no probabilities.")
        found = softmax(logits.detach().cpu().numpy())
        return one_hot(found.argmax(axis=1), count) if options.deterministic else found

    return probabilities


def _continuous(torch: Any, call: Any, deterministic: bool) -> SamplingPolicy:
    def sample(states: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        returned = call(states)
        if isinstance(returned, torch.distributions.Categorical):
            raise InputError("The network chooses among discrete actions: say how many there are, num_actions=….")
        if isinstance(returned, torch.distributions.Distribution):
            with torch_seeded(torch, rng):
                returned = _most_likely(returned) if deterministic else returned.sample()
        return returned.detach().cpu().numpy()

    return SamplingPolicy(sample, draws=1 if deterministic else None)


def _most_likely(distribution: Any) -> Any:
    """The mode, or the mean where it has none; through squashing where it is squashed."""
    base = getattr(distribution, "base_dist", None)
    if base is not None and hasattr(distribution, "transforms"):
        found = _most_likely(base)
        for transform in distribution.transforms:
            found = transform(found)
        return found
    try:
        return distribution.mode
    except NotImplementedError:
        return distribution.mean


class _Call:
    """A module as a function of NumPy states."""

    def __init__(self, torch: Any, module: Any, normalizer: Any) -> None:
        self.torch, self.module, self.normalizer = torch, module, normalizer

    def __call__(self, states: np.ndarray) -> Any:
        prepared = states if self.normalizer is None else self.normalizer(states)
        parameter = next((p for p in self.module.parameters() if p.is_floating_point()), None)
        place = {} if parameter is None else {"device": parameter.device}
        floats = np.asarray(prepared).dtype.kind == "f"
        if floats:
            place["dtype"] = self.torch.float32 if parameter is None else parameter.dtype
        with self._evaluating():
            return self.module(self.torch.as_tensor(np.asarray(prepared), **place))

    @contextmanager
    def _evaluating(self) -> Iterator[None]:
        training = self.module.training
        self.module.eval()
        try:
            with self.torch.no_grad():
                yield
        finally:
            self.module.train(training)


def _always(distribution: Any) -> Any:
    """The same distribution in every state."""
    return lambda states: distribution.expand((len(states), *distribution.batch_shape))
