"""Exports as users have them: the truths are exact, and nothing is wrong and trusted."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from gradientdice_studies.files.domains import DOMAINS
from gradientdice_studies.files.run import _EMPTY, CRASH, NOT_APPLICABLE, WORSE, WRONG, Scale, run, run_part
from gradientdice_studies.files.ways import MISS, NOT_TRUSTED, REFUSED, RIGHT, WAYS

# The others need policies that are sampled, which takes a second each, or are damaged alike.
SLICE = [way.name for way in WAYS if way.group in ("order", "ends")] + ["text states", "dash in states", "two files"]


@pytest.fixture(scope="module")
def frame():
    ways = [way for way in WAYS if way.name in SLICE and "hospital" in (way.domains or DOMAINS)]
    return pd.DataFrame([row for way in ways for row in run_part("hospital", way.name)])


def defects(frame, *outcomes):
    found = frame[frame["knowable"] & frame["outcome"].isin(outcomes)]
    return found[["domain", "way", "format", "call", "outcome", "reason"]].to_dict("records")


def test_no_answer_is_wrong_and_trusted(frame):
    assert defects(frame, WRONG) == []


def test_nothing_worse_is_deployed(frame):
    assert defects(frame, WORSE) == []


def test_nothing_crashes(frame):
    assert defects(frame, CRASH) == []


def test_refusals_are_short_and_say_what_they_are_about(frame):
    refused = frame[frame["outcome"] == REFUSED]
    assert refused[~refused["message_names_its_subject"].astype(bool)]["reason"].tolist() == []


def test_the_plain_way_is_right_in_every_format(frame):
    assert set(frame[frame["way"] == "plain"]["outcome"]) <= {RIGHT, MISS}


@pytest.mark.parametrize("name", DOMAINS)
def test_one_rule_is_better_than_what_runs_and_one_is_worse(name):
    domain = DOMAINS[name]()
    np.testing.assert_allclose(domain.moves.sum(axis=2), 1)
    runs = domain.value(domain.behavior)
    assert domain.value(domain.table(domain.worse)) < runs < domain.value(domain.table(domain.better))


@pytest.mark.parametrize("name", DOMAINS)
def test_the_exact_value_of_the_behaviour_is_that_of_its_episodes(name):
    domain = DOMAINS[name]()
    many = replace(domain, episodes=40_000, seed=1).log(200)
    weight = 1.0 if domain.discount == 1 else (1 - domain.discount) * domain.discount**many.step
    totals = np.bincount(many.episode, weights=weight * many.reward)
    if domain.discount == 1:
        lengths = np.bincount(many.episode)
        value = totals.sum() / lengths.sum()
        error = (totals - value * lengths).std() / lengths.mean() / np.sqrt(len(totals))
    else:
        value, error = totals.mean(), totals.std() / np.sqrt(len(totals))
    assert value == pytest.approx(domain.value(domain.behavior), abs=4.5 * error)


@pytest.mark.parametrize("name", DOMAINS)
def test_episodes_have_3_to_40_rows_and_end_unless_a_limit_stops_them(name):
    domain = DOMAINS[name]()
    log, lengths = domain.log(), np.bincount(domain.log().episode)
    assert 300 <= len(lengths) <= 600 and lengths.min() >= 3 and lengths.max() <= 40
    last = np.append(np.diff(log.episode) > 0, True)
    np.testing.assert_array_equal(last, log.ended | log.cut)
    assert log.cut.any() == (name == "machine") and log.ended.any()


def test_the_page_lists_every_defect_and_shows_every_message(frame, page):
    row = {"domain": "shop", "way": "plain", "group": "ends", "knowable": True, "format": "file", "expected": False}
    made = [
        {"call": "evaluate", "outcome": WRONG, "value": 1.0, "low": 0.9, "high": 1.1, "truth": 2.0, "verdict": "trust"},
        {"call": "select", "outcome": WORSE, "choice": "worse", "truth": 2.0, "reason": "Deploy | 'worse'."},
        {"call": "evaluate", "outcome": CRASH, "reason": "KeyError: 'states'"},
        {"call": "evaluate", "outcome": REFUSED, "reason": "log.csv: states has a dash.", "expected": True},
        {"call": "evaluate", "outcome": NOT_TRUSTED, "verdict": "caution", "value": 1.0},
    ]
    made = pd.DataFrame([{**_EMPTY, **row, "message_names_its_subject": True, **one} for one in made])
    text = page("files", made, Scale())
    for words in (
        "| 1 (0.9 to 1.1) | 2 | trust |",
        "`Deploy \\| 'worse'.`",
        "`KeyError: 'states'`",
        "states has a dash",
    ):
        assert words in text
    assert "1 wrong and trusted, 1 deployed something worse, 1 crashed" in " ".join(text.split())
    assert page("files", frame, Scale()).count(f"| {NOT_APPLICABLE} |") == 1


@pytest.mark.slow
def test_no_domain_has_an_answer_that_is_wrong_and_trusted(tmp_path):
    _, frame = run(tmp_path / "files", Scale())
    assert defects(frame, WRONG, WORSE, CRASH) == []
    exports = frame[["domain", "way"]].drop_duplicates()
    assert len(exports) >= 48 and len(frame) == 6 * len(exports)
