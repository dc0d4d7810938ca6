"""`reproduce` on a small experiment of its own: scales, options, pages and copied figures."""

from dataclasses import dataclass

import pytest

import gradientdice as gd
from gradientdice_studies import reproduce as module
from gradientdice_studies.registry import Experiment
from gradientdice_studies.reproduce import reproduce
from gradientdice_studies.steps import Steps
from gradientdice_studies.store import ResultStore


@dataclass(frozen=True)
class Scale:
    rows: int = 100
    logs: int = 5


def run(folder, scale, *, force=False):
    return ResultStore(folder, "small", {"rows": scale.rows}, force=force), scale


def draw(store, scale):
    path = store.folder / "picture.png"
    path.write_bytes(b"figure")
    return {"picture": path}


@pytest.fixture
def small(monkeypatch):
    """The entry of an experiment whose results are its scale."""
    steps = Steps(full=Scale(), quick=Scale(rows=10), run=run, draw=draw, context=lambda scale, _: {"scale": scale})
    monkeypatch.setattr(Experiment, "load", lambda self: steps)
    monkeypatch.setattr(
        module, "render", lambda package, context, figures: f"{package} {context['scale']} {figures['picture']}"
    )
    return Experiment("a-small-one", "Small.", quick="Smaller.")


def test_the_page_is_beside_its_tables_and_where_it_was_asked_for(small, tmp_path):
    page = tmp_path / "docs" / "small.md"
    assert reproduce(small, tmp_path / "out", page=page) == [tmp_path / "out" / "a_small_one.md", page]
    assert (tmp_path / "out" / "a_small_one.md").read_text() == f"a_small_one {Scale()} picture.png"
    assert page.read_text() == f"a_small_one {Scale()} small/picture.png"
    assert (tmp_path / "docs" / "small" / "picture.png").read_bytes() == b"figure"


@pytest.mark.parametrize(("quick", "scale"), [(False, Scale(logs=7)), (True, Scale(rows=10, logs=7))])
def test_options_change_either_scale(small, tmp_path, quick, scale):
    [page] = reproduce(small, tmp_path / "out", quick=quick, options={"logs": 7})
    assert str(scale) in page.read_text()


def test_results_of_other_settings_are_replaced_by_force_alone(small, tmp_path):
    reproduce(small, tmp_path / "out")
    with pytest.raises(gd.InputError, match="--force"):
        reproduce(small, tmp_path / "out", quick=True)
    [page] = reproduce(small, tmp_path / "out", quick=True, force=True)
    assert str(Scale(rows=10)) in page.read_text()


def test_an_experiment_that_is_always_quick_has_no_quick_version(tmp_path):
    from gradientdice_studies.registry import EXPERIMENTS

    with pytest.raises(gd.InputError, match="no quick version"):
        reproduce(EXPERIMENTS["hard-example"], tmp_path / "out", quick=True)
    assert not (tmp_path / "out").exists()
