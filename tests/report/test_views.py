"""Every result that has `plot`, `report` or a notebook's cell has its view in the report room's table."""

from importlib import import_module
from pkgutil import walk_packages

import pytest

from gradientdice import evaluation
from gradientdice.evaluation.ranking import Ranking
from gradientdice.report.views import VIEWS, views_of

METHODS = {"plot": "plot", "report": "report", "cell": "_repr_html_"}


def results() -> set[type]:
    """The classes of `gradientdice.evaluation` that draw themselves."""
    modules = [import_module(found.name) for found in walk_packages(evaluation.__path__, "gradientdice.evaluation.")]
    own = {each for module in modules for each in vars(module).values() if isinstance(each, type)}
    return {each for each in own if each.__module__.startswith("gradientdice.evaluation") and hasattr(each, "plot")}


def test_the_table_has_every_result():
    assert set(VIEWS) == results()


@pytest.mark.parametrize("kind", VIEWS, ids=lambda kind: kind.__name__)
def test_a_result_has_the_methods_of_its_views(kind):
    for view, method in METHODS.items():
        assert (getattr(VIEWS[kind], view) is not None) == hasattr(kind, method), method


def test_a_class_of_ones_own_is_shown_as_its_base_class_is():
    class Own(Ranking):
        pass

    assert views_of(Own.__new__(Own)) is VIEWS[Ranking]
