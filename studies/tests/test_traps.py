"""The traps experiment: summaries, bars, the page and its figure."""

import numpy as np
import pandas as pd
import pytest

from gradientdice_studies.store import ResultStore
from gradientdice_studies.traps import run as experiment
from gradientdice_studies.traps.families import families
from gradientdice_studies.traps.figures import draw_all
from gradientdice_studies.traps.run import QUICK
from gradientdice_studies.traps.summary import Summary, before, summaries


def rows(verdict, inside, count):
    return [{"verdict": verdict, "inside": inside}] * count


def test_a_summary_counts_verdicts_and_coverage():
    frame = pd.DataFrame(
        rows("trust", True, 3)
        + rows("trust", False, 1)
        + rows("caution", True, 2)
        + rows("refused", None, 2)
        + rows("do not trust", False, 2)
    )
    found = Summary.of(frame)
    assert (found.logs, found.trust, found.caution, found.rejected) == (10, 0.4, 0.2, 0.4)
    assert found.covered == pytest.approx(3 / 4) and found.inside == pytest.approx(5 / 8)


@pytest.mark.parametrize(
    ("trap", "trust", "covered", "passes"),
    [
        (True, 0.04, 0.0, True),
        (True, 0.06, 0.89, False),
        (True, 1.0, 0.9, True),
        (False, 0.79, 0.95, False),
        (False, 0.8, 0.95, True),
        (False, 1.0, 0.88, False),
        (False, 0.9, None, False),
    ],
)
def test_the_bars(trap, trust, covered, passes):
    (family,) = [
        f for f in families().values() if f.name == ("two places look alike" if trap else "60 starts, 3,000 rows")
    ]
    assert Summary(100, trust, 1 - trust, 0.0, covered, covered).passes(family) is passes


def test_every_trap_has_both_halves_and_was_run_before():
    known = families()
    assert set(before()) == set(known)
    for trap in {family.trap for family in known.values()}:
        assert {family.half for family in known.values() if family.trap == trap} == {"develop", "report"}, trap
    assert len({family.trap for family in known.values()} - {"honest"}) >= 19


def test_a_family_gives_the_same_log_for_a_seed():
    name = "random 5×2, 3,000 rows"
    first, again = (experiment.run_part(name, range(2)) for _ in range(2))
    assert first == again and [row["seed"] for row in first] == [0, 1]


def test_the_page_and_its_figure(tmp_path, page):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        [
            {
                "family": name,
                "seed": seed,
                "verdict": "trust" if family.trap == "honest" else "caution",
                "inside": bool(rng.random() < 0.95),
                "value": 0.0,
                "low": 0.0,
                "high": 1.0,
                "why": "",
            }
            for name, family in families().items()
            for seed in range(20)
        ]
    )
    store = ResultStore(tmp_path / "out", "traps", {})
    figures = draw_all(store, frame)
    assert figures["traps"].stat().st_size > 10_000
    text = page("traps", frame, QUICK, figures=figures)
    count = sum(family.trap != "honest" and family.half == "report" for family in families().values())
    assert f"| traps, second half | {count} | {count} |" in text
    assert summaries(frame)["two places look alike"].trust == 0
