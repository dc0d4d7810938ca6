"""Looks at a policy from time to time while it is trained, and says when it no longer improves."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gradientdice.base.effort import Effort, require_effort
from gradientdice.base.errors import InputError, require_count, require_flag, require_number
from gradientdice.evaluation.evaluate import evaluate
from gradientdice.log.transitions import Transitions
from gradientdice.policies.adapters import policy as as_policy
from gradientdice.statistics.checks import Verdict

if TYPE_CHECKING:
    import pandas as pd


@dataclass(eq=False)
class Watch:
    """Evaluates a policy from one log every so many steps of its training.

    Training stops early once `patience` looks in a row have not raised the lower end of the interval: a value that
    rises while its interval grows is no progress that the log can show. The best of many looks is chosen by the same
    rows that evaluate it, so that it looks better than it is; evaluate the policy you keep on rows of its own
    (`data.split`).

    Attributes:
        data: the log, which the policy must not learn from.
        discount: γ.
        every: how many steps of training lie between two looks.
        patience: how many looks without progress end the training; None never ends it.
        deterministic: how the policy acts, as in `gradientdice.policy`.
        effort: how much work each look may take.
        seed: for whatever is random.
        history: one entry per look: the step, the figures of `Estimate.metrics`, and why there are none if there
            are none.

    Example:
        >>> import numpy as np, gradientdice as gd
        >>> mdp = gd.mdp.boyan_chain("continuing")
        >>> data = mdp.sample(2000, np.full((13, 2), 1 / 26), np.random.default_rng(0))
        >>> watch = gd.Watch(data, discount=0.9, every=10, patience=2)
        >>> going_on = watch.look(10, np.tile([0.4, 0.6], (13, 1)))
        >>> going_on, len(watch.history)
        (True, 1)
    """

    data: Transitions
    discount: float
    every: int = 10_000
    patience: int | None = None
    deterministic: bool | None = None
    effort: Effort | str = Effort.QUICK
    seed: int = 0
    history: list[dict[str, Any]] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        if not isinstance(self.data, Transitions):
            raise InputError(f"data must be Transitions, not {type(self.data).__name__}: see gradientdice.load.")
        require_number("discount", self.discount, low=0, high=1)
        require_count("every", self.every)
        if self.patience is not None:
            require_count("patience", self.patience)
        if self.deterministic is not None:
            require_flag("deterministic", self.deterministic)
        require_effort(self.effort)
        require_count("seed", self.seed, low=0)
        self._best, self._without_progress, self._looked = -math.inf, 0, 0
        self._judged: tuple[Verdict, tuple[str, ...]] | None = None

    @property
    def stopped(self) -> bool:
        """Whether the looks so far say that training should end."""
        return self.patience is not None and self._without_progress >= self.patience

    @property
    def verdict(self) -> Verdict | None:
        """The verdict of the last look: "do not trust" if it gave no value; None before the first."""
        return None if self._judged is None else self._judged[0]

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the verdict of the last look is not better."""
        return () if self._judged is None else self._judged[1]

    def due(self, step: int) -> bool:
        """Whether it is time for a look."""
        return require_count("step", step, low=0) // self.every > self._looked

    def look(self, step: int, agent: Any) -> bool:
        """Evaluates the policy as it is now; returns whether training should go on.

        Args:
            step: how many steps it has been trained.
            agent: whatever `gradientdice.policy` makes a policy of.
        """
        self._looked = require_count("step", step, low=0) // self.every
        policy = as_policy(agent, deterministic=self.deterministic)
        try:
            estimate = evaluate(
                self.data,
                policy,
                discount=self.discount,
                effort=self.effort,
                seed=self.seed,
                progress=False,
            )
            found: dict[str, Any] = {**estimate.metrics(), "reason": ""}
            self._judged = estimate.verdict, tuple(estimate.reasons)
        except InputError as error:  # early in training a policy may do what the log never shows
            found = {"reason": str(error)}
            self._judged = Verdict.DO_NOT_TRUST, (str(error),)
        self.history.append({"step": step, **found})
        score = found.get("low", found.get("value", -math.inf))
        self._without_progress = 0 if score > self._best else self._without_progress + 1
        self._best = max(self._best, score)
        return not self.stopped

    def to_frame(self) -> pd.DataFrame:
        """One row per look."""
        import pandas as pd

        return pd.DataFrame(self.history)

    def sb3(self) -> Any:
        """A callback for `model.learn(callback=…)` of Stable-Baselines3 and SBX."""
        from gradientdice.evaluation.watching.sb3 import callback

        return callback(self)

    def d3rlpy(self) -> Any:
        """A callback for `algo.fit(callback=…)` of d3rlpy; in a `with` block it can also end the training."""
        from gradientdice.evaluation.watching.d3rlpy import Callback

        return Callback(self)
