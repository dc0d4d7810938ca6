"""The results page for Reacher."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from gradientdice.experiments.markdown import number, table
from gradientdice.experiments.reacher.analysis import Chosen, by_mean_ratio, by_truth
from gradientdice.experiments.reacher.grid import LEARNERS
from gradientdice.experiments.reacher.protocols import DISCOUNTS, truth, truth_episodes
from gradientdice.experiments.reacher.run import Scale

Selected = dict[tuple[str, float], Chosen]


def write_page(
    path: Path, grid: dict[str, np.ndarray], own: pd.DataFrame, scale: Scale, figures: dict[str, str]
) -> None:
    """Writes the page."""
    paper, fair, corrected = by_truth(grid, "paper"), by_mean_ratio(grid, "paper"), by_truth(grid, "corrected")
    own = own.assign(
        error=0.5 * (own["value"] - own["truth"]) ** 2, inside=own["truth"].between(own["low"], own["high"])
    )
    text = [
        "# Reacher",
        f"Written by `gradientdice reproduce reacher`: one log of {scale.rows:,} transitions of Gymnasium's Reacher-v5 (2,000 episodes of 50 steps at full size) under a TD3 actor with noise 0.1, the target with noise 0.05; "
        f"3 learners × 6 discounts × 3 learning rates × 2 penalties × {scale.seeds} runs of 1,000 steps with the authors' networks and starting weights. The actor was trained for 10⁶ steps "
        "(`python -m gradientdice.experiments.reacher.train`; its curve is in the package's data). Reacher-v2 is gone; version 5 shows the same state without an always-zero entry and computes the reward after the step. "
        f"Truth by Monte Carlo over {truth_episodes():,} episodes. MSE(ρ) = ½(ρ − ρ̂)².",
        f"![Figure 4]({figures['figure4']})",
        "*Figure 4: MSE(ρ) over 1,000 steps at the hyper-parameters that the true error at the end picks, as in the paper; mean and one standard deviation over runs.*",
        "## At the end",
        _finals(paper, fair),
        "The choice without the truth takes the setting whose mean ratio is nearest to 1 at the end; ∞ is a setting of which a run diverged.",
        "## The paper's claims",
        *_claims(paper),
        "## Where the ratio starts and ends",
        f"![mean ratio]({figures['mean_ratio']})",
        _ratios(paper),
        "A ratio averages to 1. The authors' output layer is scaled by 10⁻³, so that the ratio starts at 0, and 1,000 steps of SGD leave it anywhere between 0 and 2. Our default networks (`gd.MLP()`) start at a mean of 1, and our "
        "answers from networks are divided by the mean ratio and combined with a fitted Q, which forgives what the ratio misses.",
        "## Our own answer, with nothing tuned",
        f"`gd.evaluate(data, policy, discount=γ)` on {own['log'].nunique()} logs of {scale.rows:,} transitions under the corrected protocol (a time limit is not an end; at discount 1 the chain restarts after 50 steps and the step count is "
        "part of the state), beside the best of the paper's GradientDICE on the first log.",
        _own(own, corrected),
        "Its error is that of the log's sampled starts: with 2,000 of them the standard error of the starts alone is 0.004 at discount 0.1.",
    ]
    path.write_text("\n\n".join(text) + "\n")


def _finals(paper: Selected, fair: Selected) -> str:
    rows = []
    for discount in DISCOUNTS:
        row = [f"{discount:g}", f"{truth('paper')[discount][0]:.4f}"]
        for learner in LEARNERS:
            best, other = paper[learner, discount], fair[learner, discount]
            row.append(f"{number(best.final)} (α = {best.setting.learning_rate:g}, λ = {best.setting.penalty:g})")
            row.append(number(other.final))
        rows.append(row)
    header = ["γ", "truth"]
    for learner in LEARNERS:
        header += [f"{learner}, chosen by the true error", "chosen without"]
    return table(header, rows)


def _claims(paper: Selected) -> list[str]:
    factors = {g: paper["GenDICE", g].final / paper["GradientDICE", g].final for g in DISCOUNTS}
    alike = [g for g, factor in factors.items() if 0.5 <= factor <= 2]
    smoother = [g for g in DISCOUNTS if paper["GradientDICE", g].roughness < paper["GenDICE", g].roughness]
    steadier = [
        g for g in DISCOUNTS if paper["GradientDICE", g].errors[:, -1].std() < paper["GenDICE", g].errors[:, -1].std()
    ]
    calm = [g for g in DISCOUNTS if paper["DualDICE", g].roughness < paper["GradientDICE", g].roughness]
    worse = [g for g in DISCOUNTS if paper["DualDICE", g].final > paper["GradientDICE", g].final]
    last = float(np.abs(paper["DualDICE", 1.0].mean_ratio[:, -1]).max())
    return [
        f'**"GradientDICE and GenDICE end alike": {"confirmed" if len(alike) >= 5 else "not confirmed"}.** GenDICE\'s final error is '
        f"{', '.join(f'{number(factor)} (γ = {g:g})' for g, factor in factors.items())} times GradientDICE's; within a factor 2 in {len(alike)} of 6.",
        f'**"GradientDICE is more stable": {"confirmed" if len(steadier) >= 5 else "not confirmed"}.** Its final errors vary less between runs in {len(steadier)} of 6 tasks, and within a run its error jumps about less in {len(smoother)} of 6.',
        f'**"DualDICE is more stable but learns more slowly": {"confirmed" if len(calm) >= 4 and len(worse) >= 4 else "not confirmed as a whole"}.** Within a run its error jumps about less than GradientDICE\'s in {len(calm)} of 6; it ends above GradientDICE in {len(worse)} of 6.',
        f'**"DualDICE fails at γ = 1": {"confirmed" if last < 0.05 else "not confirmed"}.** Its ratio there is 0 (largest mean ratio of any run: {number(last)}), and with it the estimate.',
    ]


def _ratios(paper: Selected) -> str:
    rows = []
    for discount in DISCOUNTS:
        row = [f"{discount:g}"]
        for learner in LEARNERS:
            ratio = paper[learner, discount].mean_ratio
            row.append(f"{number(float(np.median(ratio[:, 0])))} → {number(float(np.median(ratio[:, -1])))}")
        rows.append(row)
    return table(["γ", *(f"{learner}, median run" for learner in LEARNERS)], rows)


def _own(own: pd.DataFrame, corrected: Selected) -> str:
    rows = []
    for discount, group in own.groupby("discount"):
        theirs = corrected["GradientDICE", float(discount)].final  # type: ignore[arg-type]
        ours = group["error"].mean()
        rows.append(
            [
                f"{discount:g}",
                f"{group['truth'].iloc[0]:.4f} ± {number(group['truth_error'].iloc[0], 1)}",
                number(ours),
                number(theirs),
                f"{theirs / ours:.0f}",
                f"{group['inside'].sum()} of {len(group)}",
                number((group["high"] - group["low"]).median()),
            ]
        )
    header = ["γ", "truth", "MSE(ρ), ours", "GradientDICE at its best", "times larger"]
    return table([*header, "truth inside our 95% interval", "median width"], rows)
