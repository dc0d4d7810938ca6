"""The report: what it says, and what it must not need."""

import math
import re
from dataclasses import replace
from html import escape
from pathlib import Path

import numpy as np
import pytest

import gradientdice as gd
from gradientdice import demo
from gradientdice.report.explanations import explanation
from gradientdice.report.page import render
from gradientdice.statistics.possible import PossibleRange

MOST_BYTES = 500_000


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    demo.write(folder)
    return folder


@pytest.fixture(scope="module")
def estimate(files):
    return gd.evaluate(gd.load(files / demo.LOG), gd.TabularPolicy(demo.TARGET), discount=demo.DISCOUNT)


@pytest.fixture(scope="module")
def page(estimate):
    not_applicable = gd.compare(gd.Transitions([0], [0], [0.0], [0]), gd.TabularPolicy([[1.0]]), [gd.GenDICE(1.0)])
    return render(estimate, not_applicable)


@pytest.fixture(scope="module")
def continuous():
    """An answer on continuous states, with every picture that there is."""
    rng = np.random.default_rng(1)
    episodes, steps = 30, 20
    states = rng.normal(size=(episodes, steps + 1, 3))
    actions = rng.normal(size=(episodes, steps, 1))
    states[:, 1:, 0] += 0.5 * actions[:, :, 0]
    flat = (episodes * steps, 3)
    data = gd.Transitions(
        states[:, :-1].reshape(flat),
        actions.reshape(-1, 1),
        states[:, :-1, 0].ravel() - actions[:, :, 0].ravel() ** 2,
        states[:, 1:].reshape(flat),
        episodes=np.repeat(np.arange(episodes), steps),
    )
    policy = gd.SamplingPolicy(lambda rows, rng: 0.3 + 0.8 * rng.normal(size=(len(rows), 1)))
    return gd.evaluate(data, policy, discount=0.9, effort="quick")


def test_the_bundled_log_is_the_one_the_command_makes(files):
    from importlib.resources import files as resources

    bundled = Path(str(resources("gradientdice"))) / "data"
    log, again = gd.load(files / demo.LOG), gd.load(bundled / demo.LOG)
    for name in ("states", "actions", "rewards", "next_states", "episodes"):
        np.testing.assert_array_equal(getattr(log, name), getattr(again, name))
    assert (bundled / demo.LOG).stat().st_size < 2_000_000
    np.testing.assert_array_equal(np.loadtxt(bundled / demo.POLICY, delimiter=","), demo.TARGET)


def test_the_demo_covers_the_truth(estimate):
    assert estimate.interval[0] < demo.truth() < estimate.interval[1]
    assert estimate.verdict is gd.Verdict.TRUST


def test_the_page_is_self_contained(page):
    addresses = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert [url for url in addresses if not url.startswith(("#", "data:"))] == []
    known = re.sub(r'xmlns(:\w+)?="[^"]*"', "", page)
    assert "http" not in known and "<script" not in page and "@import" not in page
    assert "not applicable" in page


def test_the_first_screen_answers(page, estimate):
    first = page[page.index("<main>") : page.index('class="facts"')]
    text = re.sub(r"<svg.*?</svg>|<[^>]*>", " ", first, flags=re.S)
    assert f'value="{estimate.value:.17g}"' in first  # every digit, for who copies it
    assert "4.32" in text and "4.21 to 4.42" in text and f"{estimate.value:.6g}" not in text
    assert "Better than the behaviour" in text and "Trust" in text
    assert f"All {len(estimate.checks)} checks are within their limits." in text


def test_the_first_screen_gives_one_reason(estimate):
    worst = gd.Check("negative mass", 0.7, 0.05, 0.25, gd.Verdict.DO_NOT_TRUST, "what it says", "what to do")
    mild = gd.Check("gaps in episodes", 0.1, 0.005, 0.2, gd.Verdict.CAUTION, "something else", "another thing")
    page = render(replace(estimate, further_checks=(mild, worst)))
    box = page[page.index('class="verdict') : page.index('class="facts"')]
    assert "Negative mass: 0.7 (what it says" in box and "What would help: what to do." in box
    assert f"<summary>What this means</summary><p>{explanation('negative-mass')}</p>" in box
    assert "something else" not in box and "something else" in page


def test_every_check_unfolds_its_explanation(estimate, page):
    own = gd.Check("a check of my own", 0.7, 1, 2, gd.Verdict.TRUST, "what it says", "what to do")
    for check in estimate.checks:
        assert f"<summary>{escape(check.name)}</summary><p>{explanation(check.anchor)}</p>" in page
    assert "<span>a check of my own</span>" in render(replace(estimate, further_checks=(own,)))


def test_a_failed_solve_says_why(estimate):
    from gradientdice.dice.solution import Status

    page = render(replace(estimate, status=Status.SINGULAR))
    box = page[page.index('class="verdict') : page.index('class="facts"')]
    assert "do-not-trust" in box and "no unique solution" in box and "a small ridge" in box


def test_every_picture_has_a_text_alternative(page, continuous):
    for text in (page, render(continuous)):
        pictures = re.findall(r"<svg[^>]*>", text)
        assert len(pictures) >= 5
        for opening in pictures:
            label = re.search(r'aria-label="([^"]*)"', opening)
            assert 'role="img"' in opening and label is not None and len(label[1]) > 20
        assert len(re.findall(r'class="track[^"]*" role="img" aria-label="[^"]+"', text)) == text.count('class="track')


def test_pictures_follow_the_colours_of_the_page(page):
    drawn = "".join(re.findall(r"<svg.*?</svg>", page, re.S))
    assert not re.findall(r"(?:fill|stroke): #\w+", drawn)
    assert "var(--accent)" in drawn and "DejaVu" not in drawn
    names = re.findall(r'\bid="([^"]*)"', page)
    assert len(names) == len(set(names))


def test_a_page_is_small_and_the_same_each_time(page, continuous, estimate):
    text = render(continuous)
    assert len(text.encode()) < MOST_BYTES and len(page.encode()) < MOST_BYTES
    assert render(continuous) == text


def test_names_with_markup_are_escaped(estimate):
    nasty = '<script>alert("1")</script>'
    move = replace(estimate.movements[0], where=nasty)
    footprint = replace(
        estimate.footprint,
        actions=(move, *estimate.footprint.actions),
        heaviest=tuple(replace(row, state=nasty, action=nasty) for row in estimate.footprint.heaviest),
    )
    named = replace(
        estimate, functions=nasty, movements=(move, *estimate.movements), footprint=footprint, notes=(nasty,)
    )
    page = render(named)
    assert "<script" not in page and page.count("&lt;script&gt;") >= 5


def test_the_log_s_own_words_are_used():
    rng = np.random.default_rng(0)
    data = gd.Transitions(rng.integers(0, 3, 300), rng.integers(0, 2, 300), rng.random(300), None)
    object.__setattr__(data, "action_names", ("no offer", "voucher"))
    estimate = gd.evaluate(data, gd.TabularPolicy(np.tile([0.2, 0.8], (3, 1))), discount=0.0)
    page = render(estimate)
    assert "voucher" in page and "no offer" in page and "action 1" not in page


def test_an_answer_without_a_ratio_has_a_page(estimate):
    page = render(
        replace(estimate, ratio=None, diagnostics=None, footprint=None, movements=(), interval=None, sources=None)
    )
    assert "no interval" in page and "has no ratio" in page


@pytest.mark.parametrize(
    "broken",
    [
        {"value": math.nan, "interval": None, "standard_error": None, "sources": None},
        {"ratio": np.full(10_000, math.nan)},
        {"ratio": np.full(10_000, 1e12)},
        {"possible": PossibleRange(1.0, 1.0)},
        {"further_checks": (gd.Check("negative mass", math.nan, 0.05, 0.25, gd.Verdict.DO_NOT_TRUST, "", ""),)},
    ],
)
def test_broken_numbers_still_have_a_page(estimate, broken):
    page = render(replace(estimate, **broken))
    words = re.sub(r"<[^>]*>", " ", page[page.index("<main>") :])
    assert not re.search(r"\bnan\b", words) and ("no value" in words) == math.isnan(broken.get("value", 0.0))


def test_a_comparison_must_be_a_table(estimate, tmp_path):
    with pytest.raises(gd.InputError, match="compare"):
        estimate.report(tmp_path / "report.html", comparison=[1, 2])


def test_a_correction_that_matters_is_shown(estimate, continuous):
    assert "What the rows correct" not in render(estimate)  # a table's Q is right on its own log
    shifted = replace(continuous, footprint=replace(continuous.footprint, correction=continuous.standard_error))
    assert "What the rows correct" in render(shifted)


def test_a_report_is_not_overwritten_by_accident(estimate, tmp_path):
    path = tmp_path / "report.html"
    estimate.report(path)
    before = path.read_text()
    with pytest.raises(gd.InputError, match="force"):
        estimate.report(path)
    assert path.read_text() == before
    estimate.report(path, force=True)
    with pytest.raises(gd.InputError, match="no folder"):
        estimate.report(tmp_path / "nowhere" / "report.html")
