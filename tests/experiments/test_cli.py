"""The command line as a user runs it."""

import subprocess
import sys


def gradientdice(*arguments: str) -> subprocess.CompletedProcess:
    code = "import sys; from gradientdice.cli import main; sys.argv = ['gradientdice', *sys.argv[1:]]; main()"
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=300)


def test_hard_example_writes_its_page_and_a_copy(tmp_path):
    page = tmp_path / "docs" / "hard.md"
    page.parent.mkdir()
    done = gradientdice("reproduce", "hard-example", "-o", str(tmp_path / "out"), "--page", str(page))
    assert done.returncode == 0, done.stderr
    assert "never" in page.read_text() and (tmp_path / "docs" / "hard" / "hard_example.png").exists()
    assert (tmp_path / "out" / "hard_example.csv").exists()


def test_a_refusal_is_one_line_and_exit_code_2(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    done = gradientdice("reproduce", "hard-example", "-o", str(tmp_path))
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "--force" in done.stderr and "Traceback" not in done.stderr
    debug = gradientdice("--debug", "reproduce", "hard-example", "-o", str(tmp_path))
    assert "Traceback" in debug.stderr


def test_importing_the_package_is_light():
    code = (
        "import sys, gradientdice as gd; gd.GradientDICE, gd.Moments, gd.solve, gd.mdp, gd.Transitions, gd.ClosedForm;"
        "heavy = [m for m in ('jax', 'pandas', 'matplotlib', 'equinox') if m in sys.modules];"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    code = "import jax, gradientdice as gd; gd.sweep, gd.PrimalDual; import sys; sys.exit(jax.config.jax_enable_x64)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_every_public_name_resolves():
    import gradientdice as gd

    for name in gd.__all__:
        assert getattr(gd, name) is not None
