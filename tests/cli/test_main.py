"""The command line: what it imports, what it refuses, and commands that other packages add to it."""

import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest
import typer

from gradientdice.cli import extensions
from gradientdice.cli.main import main

other = typer.Typer(help="Another package's commands.", add_completion=False)


@other.command()
def first(number: int) -> None:
    """Say a number."""
    typer.echo(f"{number} was given")


@other.command()
def second() -> None:
    """Say nothing."""


@pytest.fixture
def gradientdice(monkeypatch, capsys):
    """Arguments -> (exit code, stdout, stderr)."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["gradientdice", *map(str, arguments)])
        with pytest.raises(SystemExit) as done:
            main()
        return done.value.code, *capsys.readouterr()

    return run


@pytest.fixture
def installed(monkeypatch):
    """Sets the entry points that packages have: name -> what it leads to."""

    def install(**commands):
        found = [EntryPoint(name, value, extensions.GROUP) for name, value in commands.items()]
        monkeypatch.setattr(extensions, "entry_points", lambda *, group: found if group == extensions.GROUP else [])

    return install


def test_the_command_of_another_package_is_listed_and_run(gradientdice, installed, monkeypatch):
    monkeypatch.setitem(sys.modules, "another", sys.modules[__name__])
    installed(other="another:other")
    code, text, _ = gradientdice("--help")
    assert code == 0 and "Another package's commands." in text and " other " in text
    code, text, _ = gradientdice("other", "--help")
    assert code == 0 and " other [OPTIONS]" in text and "Say a number." in text
    assert gradientdice("other", "first", 7) == (0, "7 was given\n", "")
    assert gradientdice("other", "third")[0] == 2


def test_a_package_is_imported_for_its_own_command_only(gradientdice, installed):
    installed(other="nowhere.to_be_found:app", doctor="nowhere.to_be_found:app")
    assert gradientdice("doctor", "--help")[0] == 0
    code, _, stderr = gradientdice("other")
    assert code == 1 and "nowhere" in stderr and stderr.count("\n") == 1


@pytest.mark.parametrize("arguments", [(), ("--help",), ("boyan", "--quick")])
def test_without_the_studies_reproduce_says_how_to_install_them(gradientdice, installed, arguments):
    installed()
    code, stdout, stderr = gradientdice("reproduce", *arguments)
    assert code == 2 and stdout == "" and stderr.count("\n") == 1
    assert "pip install gradientdice-studies" in stderr and "pip install ./studies" in stderr
    code, text, _ = gradientdice("--help")
    assert code == 0 and "doctor" in text and "reproduce" not in text
    assert gradientdice("produce")[0] == 2


def test_a_wrong_column_is_refused_with_an_example(gradientdice):
    code, _, stderr = gradientdice(
        "evaluate", "log.csv", "--policy", "columns", "--discount", "0.9", "--column", "states"
    )
    assert code == 2 and "--column states=observation" in stderr


def test_importing_the_package_is_light():
    light = (
        "import sys, gradientdice as gd; gd.GradientDICE, gd.Moments, gd.solve, gd.mdp, gd.Transitions, gd.ClosedForm;"
        "import gradientdice.cli.main;"
        "heavy = [m for m in ('jax', 'pandas', 'matplotlib', 'equinox', 'gradientdice_studies') if m in sys.modules];"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", light], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    own = "import jax, gradientdice as gd; gd.sweep, gd.PrimalDual; import sys; sys.exit(jax.config.jax_enable_x64)"
    done = subprocess.run([sys.executable, "-c", own], timeout=300)
    assert done.returncode == 0


def test_every_public_name_resolves():
    import gradientdice as gd

    assert {"evaluate", "GradientDICE", "ESTIMATORS"} <= set(dir(gd))
    assert [name for name in dir(gd) if getattr(gd, name) is None] == []
