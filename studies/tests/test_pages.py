"""Result pages: nothing undefined, wrapped prose, and committed pages that say what the templates say."""

import re
from pathlib import Path

import jinja2
import pytest

from gradientdice_studies import pages
from gradientdice_studies.registry import EXPERIMENTS

ROOT = Path(__file__).parents[2]
PACKAGES = [experiment.package for experiment in EXPERIMENTS.values()]


@pytest.mark.parametrize("package", PACKAGES)
def test_a_name_without_a_value_is_an_error(package):
    with pytest.raises(jinja2.UndefinedError):
        pages.render(package, {}, {})


def test_only_prose_is_wrapped():
    words, row = " ".join(["word"] * 50), "| " + " | ".join(["cell"] * 40) + " |"
    text = pages.wrap(f"# {words}\n\n{words}\n\n\n\n{row}\n|---|\n\n![{words}](a.png)\n")
    heading, prose, table, figure = text.rstrip("\n").split("\n\n")
    assert heading == f"# {words}" and table == f"{row}\n|---|" and figure == f"![{words}](a.png)"
    assert 90 < max(map(len, prose.splitlines())) <= 100 and " ".join(prose.split()) == words


def test_wrapping_splits_no_word_and_is_stable():
    address = "[a-b-c](https://example.org/" + "long-" * 30 + "name)"
    text = pages.wrap(f"before {address} after " + "word-by-word " * 30)
    assert address in text and pages.wrap(text) == text
    assert "word-by-word" in text and "word-\n" not in text


@pytest.mark.parametrize("package", PACKAGES)
def test_the_committed_page_has_the_sentences_of_the_template(package):
    template = (ROOT / "studies/src/gradientdice_studies" / package / "page.md.jinja").read_text()
    committed = (ROOT / "docs/results" / f"{package}.md").read_text()
    assert pages.wrap(committed) == committed, "wrapped as the command does it"
    said = " ".join(committed.split())
    fixed = [" ".join(part.split()) for part in re.split(r"\{\{.*?\}\}|\{%.*?%\}", template, flags=re.DOTALL)]
    long = [part for part in fixed if len(part) > 40]
    assert long and [part for part in long if part not in said] == []


def test_a_template_may_write_the_row_of_a_table_on_several_lines():
    assert pages.table_row("\n| one\n| two,\n  and more |\n") == "| one | two, and more |\n"
