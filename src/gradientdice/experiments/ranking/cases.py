"""All cases by name: tables first, those to develop on before those to report."""

from __future__ import annotations

from collections.abc import Callable

from gradientdice.experiments.ranking.case import Case
from gradientdice.experiments.ranking.control import CONTROL
from gradientdice.experiments.ranking.tables import TABLES

CASES: dict[str, Callable[[], Case]] = {**TABLES, **CONTROL}
