"""The first tutorial as a newcomer meets it: `python benchmarks/first_tutorial.py gradientdice-1.2.3-py3-none-any.whl`.

Makes an empty environment, installs the wheel there with pip, and runs the page's cells in it, in a folder of their own
and without what earlier runs compiled. Prints the seconds of each part. Reading takes longer than that, and is not timed.
"""

import ast
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs/tutorials/first_answer.md"
PROMISED = 300.0  # seconds: the five minutes of the page's title


def cells(text: str) -> dict[str, list[str]]:
    """The cells of a page by the heading above them, those that it does not show left out."""
    found: dict[str, list[str]] = {}
    for section in re.split(r"^## ", text, flags=re.M):
        heading = section.partition("\n")[0]
        for options, code in re.findall(r"```\{code-cell\} python\n((?::[^\n]*\n)*)(.*?)```", section, re.S):
            if "remove-cell" not in options:
                found.setdefault(heading, []).append(code)
    return found


def run(parts: dict[str, list[str]]) -> dict[str, float]:
    """Runs the cells as a notebook does, which shows what their last line gives; the seconds of each part."""
    names: dict[str, object] = {}
    seconds = {}
    for heading, codes in parts.items():
        started = time.perf_counter()
        for code in codes:
            tree = ast.parse(code)
            last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
            exec(compile(tree, heading, "exec"), names)
            if isinstance(last, ast.Expr):
                shown = eval(compile(ast.Expression(last.value), heading, "eval"), names)
                getattr(shown, "_repr_html_", shown.__repr__)()
        seconds[heading] = time.perf_counter() - started
    return seconds


def newcomer(wheel: Path) -> dict[str, float]:
    """The seconds of each part, from an empty environment on."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        started = time.perf_counter()
        venv.create(home / "env", with_pip=True)
        python = home / "env" / ("Scripts" if os.name == "nt" else "bin") / "python"
        made = time.perf_counter()
        subprocess.run([python, "-m", "pip", "install", "--quiet", wheel.resolve()], check=True)
        installed = time.perf_counter()
        settings = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "JAX"))}
        settings |= {"MPLBACKEND": "agg", "MPLCONFIGDIR": str(home / "matplotlib")}  # its list of fonts is made anew
        line = [python, Path(__file__).resolve(), "--cells", PAGE]
        done = subprocess.run(line, check=True, cwd=home, env=settings, stdout=subprocess.PIPE, text=True)
        return {
            "a new environment": made - started,
            "pip install": installed - made,
            **json.loads(done.stdout.splitlines()[-1]),
        }


def main() -> int:
    if sys.argv[1:2] == ["--cells"]:
        print(json.dumps(run(cells(Path(sys.argv[2]).read_text(encoding="utf-8")))))
        return 0
    seconds = newcomer(Path(sys.argv[1]))
    for part, own in seconds.items():
        print(f"{own:7.1f} s  {part}")
    print(f"{sum(seconds.values()):7.1f} s  in all")
    return 0 if sum(seconds.values()) < PROMISED else 1


if __name__ == "__main__":
    sys.exit(main())
