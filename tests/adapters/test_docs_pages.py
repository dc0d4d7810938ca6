"""The pages of adapters whose libraries are here: their code runs as it stands."""

import gc
import re
from pathlib import Path

import pytest

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("ignore")]
DOCS = Path(__file__).parents[2] / "docs" / "adapters"


def run(page, folder, monkeypatch, last_first=False):
    """Runs a page's blocks of code; `last_first` where the last one makes what the others read."""
    monkeypatch.chdir(folder)
    code = re.findall(r"```python\n(.*?)```", (DOCS / f"{page}.md").read_text(), re.S)
    names: dict = {}
    exec("\n".join(code[-1:] + code[:-1] if last_first else code), names)
    return names


def test_stable_baselines3(tmp_path, monkeypatch):
    pytest.importorskip("stable_baselines3")
    names = run("stable_baselines3", tmp_path, monkeypatch)
    assert names["estimate"].interval is not None and len(names["watch"].history) >= 3


def test_minari(tmp_path, monkeypatch):
    pytest.importorskip("minari")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    names = run("minari", tmp_path, monkeypatch, last_first=True)
    assert names["estimate"].interval is not None
    names.clear()
    gc.collect()  # Minari leaves a folder to the garbage collector, which warns: here, where that is no error
