"""`gradientdice reproduce` as a user runs it."""

import subprocess
import sys

import pytest

from gradientdice.cli.main import main
from gradientdice_studies.registry import EXPERIMENTS


@pytest.fixture
def gradientdice(monkeypatch, capsys):
    """Arguments -> (exit code, stdout, stderr)."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["gradientdice", *map(str, arguments)])
        with pytest.raises(SystemExit) as done:
            main()
        return done.value.code, *capsys.readouterr()

    return run


def test_hard_example_writes_its_page_and_a_copy(gradientdice, tmp_path):
    page = tmp_path / "docs" / "hard.md"
    code, stdout, _ = gradientdice("reproduce", "hard-example", "-o", tmp_path / "out", "--page", page)
    assert code == 0 and stdout.splitlines()[0].startswith(f"Wrote {tmp_path / 'out' / 'hard_example.md'}")
    assert "never" in page.read_text() and (tmp_path / "docs" / "hard" / "hard_example.png").stat().st_size > 10_000
    assert (tmp_path / "out" / "hard_example.csv").exists()


def test_the_package_is_a_command():
    command = [sys.executable, "-m", "gradientdice", "reproduce", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and "hard-example" in done.stdout


def test_a_refusal_is_one_line_and_exit_code_2(gradientdice, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    code, _, stderr = gradientdice("reproduce", "hard-example", "-o", tmp_path)
    assert code == 2 and stderr.count("\n") == 1 and "--force" in stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_debug_shows_the_error(monkeypatch, tmp_path):
    import gradientdice as gd

    (tmp_path / "mine.txt").write_text("mine")
    monkeypatch.setattr(sys, "argv", ["gradientdice", "--debug", "reproduce", "hard-example", "-o", str(tmp_path)])
    with pytest.raises(gd.InputError, match="--force"):
        main()


def test_every_experiment_is_a_command_with_its_options(gradientdice, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    _, listed, _ = gradientdice("reproduce", "--help")
    for experiment in EXPERIMENTS.values():
        assert f" {experiment.name} " in listed and experiment.help in listed
        code, text, _ = gradientdice("reproduce", experiment.name, "--help")
        assert code == 0 and f"results/{experiment.name}" in text
        assert all(flag in text for flag in ("--output", "-o", "--force", "--page"))
        assert ("--quick" in text) == (experiment.quick is not None)
        for option in experiment.options:
            assert "--" + option.field.replace("_", "-") in text and str(option.default) in text


def test_the_options_reach_the_experiment(gradientdice, monkeypatch, tmp_path):
    from gradientdice_studies import reproduce as module

    calls = []

    def reproduce(experiment, folder, **given):
        calls.append((experiment.name, folder, given))
        return [folder / "page.md"]

    monkeypatch.setattr(module, "reproduce", reproduce)
    assert gradientdice("reproduce", "shootout", "--quick", "--large-seeds", 3, "-o", tmp_path)[0] == 0
    assert gradientdice("reproduce", "continuous", "--force", "--page", tmp_path / "c.md", "-o", tmp_path)[0] == 0
    assert calls == [
        ("shootout", tmp_path, {"quick": True, "force": False, "page": None, "options": {"large_seeds": 3}}),
        ("continuous", tmp_path, {"quick": False, "force": True, "page": tmp_path / "c.md", "options": {}}),
    ]
    assert gradientdice("reproduce", "shootout", "--large-seeds", 0, "-o", tmp_path)[0] == 2
