"""All cases by name: tables first, those to develop on before those to report."""

from __future__ import annotations

from collections.abc import Callable

from gradientdice_studies.ranking.case import Case
from gradientdice_studies.ranking.control import CONTROL
from gradientdice_studies.ranking.tables import TABLES

CASES: dict[str, Callable[[], Case]] = {**TABLES, **CONTROL}
