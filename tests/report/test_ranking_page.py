"""Reports of rankings, selections and curves: they say what the objects say."""

import re

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.report.curve_page import render_curve
from gradientdice.report.ranking_page import render_ranking
from gradientdice.report.ranking_plots import MOST

SHARES = {"<b>low</b>": 0.15, "middle $x$": 0.35, "today": 0.5, "high": 0.6}


@pytest.fixture(scope="module")
def data():
    mdp = gd.mdp.boyan_chain("continuing")
    return mdp.rollout(np.full((13, 2), 0.5), episodes=60, horizon=40, rng=np.random.default_rng(0))


def policy(share):
    return gd.TabularPolicy(np.tile([share, 1 - share], (13, 1)))


@pytest.fixture(scope="module")
def ranking(data):
    return gd.rank(data, {name: policy(share) for name, share in SHARES.items()}, 0.9)


def words(page):
    return " ".join(re.sub(r"<style.*?</style>|<svg.*?</svg>|<[^>]*>", " ", page, flags=re.S).split())


def require_sound(page):
    addresses = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert [url for url in addresses if not url.startswith(("#", "data:"))] == []
    assert "<script" not in page and len(page.encode()) < 500_000
    names = re.findall(r'\bid="([^"]*)"', page)
    assert len(names) == len(set(names))
    for opening in re.findall(r"<svg[^>]*>", page):
        assert re.search(r'role="img" aria-label="[^"]{20,}"', opening)


def test_the_ranking_s_page(ranking):
    page = render_ranking(ranking)
    require_sound(page)
    assert "<b>low" not in page and "&lt;b&gt;low&lt;/b&gt; has the highest value" in words(page)
    table = page[page.index("<tbody>") : page.index("</tbody>")]
    rows = re.findall(r'<th scope="row">(.*?)</th>', table)
    assert [name.replace("&lt;", "<").replace("&gt;", ">") for name in rows] == list(ranking.names)
    assert len(re.findall(r"<td>yes</td>", table)) == len(ranking.best_set)
    label = re.search(r'aria-label="(Differences to the behaviour:[^"]*)"', page)
    assert label is not None and label[1].count(" to ") == len(ranking.names) + 1


def test_the_baseline_has_no_difference_to_itself(data):
    found = gd.rank(data, {name: policy(share) for name, share in SHARES.items()}, 0.9, baseline="today")
    label = re.search(r'aria-label="Differences to today: ([^"]*)"', render_ranking(found))
    assert label is not None and "today" not in label[1]
    assert len(found.plot().axes[0].get_yticks()) == len(SHARES) - 1


def test_the_selection_s_page_has_the_decision(data, ranking):
    from gradientdice.evaluation.select import selected

    page = words(render_ranking(selected(ranking)))
    assert "Deploy &lt;b&gt;low&lt;/b&gt; It is shown to be better than the behaviour: +" in page
    kept = selected(gd.rank(data, {"High Risk": policy(0.6)}, 0.9))
    assert kept.keeps_baseline
    page = words(render_ranking(kept))
    assert "Keep the behaviour No candidate is shown to be better" in page


def test_the_curve_s_page(data):
    curve = gd.evaluate(data, policy(0.2), discount=[0.5, 0.9, 1])
    page = render_curve(curve)
    require_sound(page)
    assert [row in words(page) for row in ("at discount 0.5", "at discount 0.9", "at discount 1")] == [True] * 3
    assert curve.band is not None and "for all at once" in page


def test_plots_are_figures(data, ranking):
    from gradientdice.evaluation.select import selected

    curve = gd.evaluate(data, policy(0.2), discount=[0.9, 0.5])
    assert len(ranking.plot().axes) == 2 and len(selected(ranking).plot().axes) == 1
    axis = curve.plot().axes[0]
    # From the shortest horizon to the longest, whatever the order that was given.
    assert [text.get_text() for text in axis.get_xticklabels()] == ["0.5\n2", "0.9\n10"]
    np.testing.assert_array_equal(np.asarray(axis.get_lines()[-1].get_ydata()), [curve[1].value, curve[0].value])


def test_many_policies_are_drawn_as_the_best_of_them(data):
    found = gd.rank(data, {f"policy {k}": policy(0.2 + 0.02 * k) for k in range(MOST + 3)}, 0.5)
    page = render_ranking(found)
    assert f"The best {MOST} are shown." in page and page.count('<th scope="row">') == MOST + 3
    assert len(found.plot().axes[1].get_yticks()) == MOST


def test_reports_are_not_overwritten_by_accident(ranking, data, tmp_path):
    from gradientdice.evaluation.select import selected

    for found in (ranking, selected(ranking), gd.evaluate(data, policy(0.2), discount=[0.5, 0.9])):
        path = tmp_path / f"{type(found).__name__}.html"
        found.report(path)
        with pytest.raises(gd.InputError, match="force"):
            found.report(path)
        found.report(path, force=True)
        with pytest.raises(gd.InputError, match="force"):
            found.report(path, force="yes")  # pyright: ignore[reportArgumentType]
        with pytest.raises(gd.InputError, match="path"):
            found.report(None)  # pyright: ignore[reportArgumentType]
