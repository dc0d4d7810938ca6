"""The first tutorial as a newcomer meets it: `python benchmarks/first_tutorial.py gradientdice-1.2.3-py3-none-any.whl`.

Makes an empty environment, installs the wheel there with pip, and runs the page's cells in it, in a folder of their own
and without what earlier runs compiled. Prints the seconds of each part, and beside them those of the processor, which
do not grow where others use the machine too. Reading takes longer than that, and is not timed.
"""

import ast
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
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


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """The seconds that some work takes, and those of the processor, here and in processes that it waited for."""
    before, started = os.times(), time.perf_counter()
    work()
    after, seconds = os.times(), time.perf_counter() - started
    return seconds, sum(after[:4]) - sum(before[:4])


def run(parts: dict[str, list[str]]) -> dict[str, tuple[float, float]]:
    """Runs the cells as a notebook does, which shows what their last line gives; what each part took."""
    names: dict[str, object] = {}

    def run_part(heading: str, codes: list[str]) -> None:
        for code in codes:
            tree = ast.parse(code)
            last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
            exec(compile(tree, heading, "exec"), names)
            if isinstance(last, ast.Expr):
                shown = eval(compile(ast.Expression(last.value), heading, "eval"), names)
                getattr(shown, "_repr_html_", shown.__repr__)()

    return {heading: timed(lambda own=(heading, codes): run_part(*own)) for heading, codes in parts.items()}


def newcomer(wheel: Path) -> dict[str, tuple[float, float]]:
    """What each part took, from an empty environment on."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        python = home / "env" / ("Scripts" if os.name == "nt" else "bin") / "python"
        settings = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "JAX"))}
        settings |= {"MPLBACKEND": "agg", "MPLCONFIGDIR": str(home / "matplotlib")}  # its list of fonts is made anew
        lines = {
            "a new environment": [sys.executable, "-m", "venv", home / "env"],
            "pip install": [python, "-m", "pip", "install", "--quiet", wheel.resolve()],
        }
        took = {part: timed(lambda own=line: subprocess.run(own, check=True)) for part, line in lines.items()}
        line = [python, Path(__file__).resolve(), "--cells", PAGE]
        done = subprocess.run(line, check=True, cwd=home, env=settings, stdout=subprocess.PIPE, text=True)
        return took | json.loads(done.stdout.splitlines()[-1])


def main() -> int:
    if sys.argv[1:2] == ["--cells"]:
        print(json.dumps(run(cells(Path(sys.argv[2]).read_text(encoding="utf-8")))))
        return 0
    took = newcomer(Path(sys.argv[1]))
    took["in all"] = tuple(map(sum, zip(*took.values(), strict=True)))
    print("seconds   of the processor")
    for part, (seconds, of_processor) in took.items():
        print(f"{seconds:7.1f} {of_processor:7.1f}  {part}")
    return 0 if took["in all"][1] < PROMISED else 1


if __name__ == "__main__":
    sys.exit(main())
