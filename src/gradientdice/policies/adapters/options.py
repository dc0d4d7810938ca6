"""What a user says about an object that its class does not."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from gradientdice.base.errors import InputError, require_choice, require_count, require_flag

OUTPUTS = ("logits", "probabilities", "actions")


@dataclass(frozen=True)
class Options:
    """The options of `gradientdice.policy`; None where nothing was said.

    Attributes:
        deterministic: the most likely action, or one drawn from the policy's own distribution.
        num_actions: how many discrete actions there are.
        outputs: what a network returns: "logits", "probabilities" or "actions".
        params: the parameters of a Flax module.
        normalizer: what the states go through first.
    """

    deterministic: bool | None = None
    num_actions: int | None = None
    outputs: str | None = None
    params: Any = None
    normalizer: Any = None

    def __post_init__(self) -> None:
        if self.deterministic is not None:
            require_flag("deterministic", self.deterministic)
        if self.num_actions is not None:
            require_count("num_actions", self.num_actions)
        if self.outputs is not None:
            require_choice("outputs", self.outputs, *OUTPUTS)

    def only(self, what: str, *names: str) -> None:
        """An error if an option was given that means nothing here."""
        for field in fields(self):
            if getattr(self, field.name) is not None and field.name not in names:
                raise InputError(f"{field.name}= has no meaning for {what}: leave it out.")
