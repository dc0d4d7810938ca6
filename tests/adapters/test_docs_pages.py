"""The pages of adapters whose libraries are here: their code runs as it stands."""

import re
from pathlib import Path

import gymnasium
import pytest

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("ignore")]
DOCS = Path(__file__).parents[2] / "docs" / "adapters"


def run(page, folder, monkeypatch):
    monkeypatch.chdir(folder)
    code = re.findall(r"```python\n(.*?)```", (DOCS / f"{page}.md").read_text(), re.S)
    names: dict = {}
    exec("\n".join(code), names)
    return names


def test_stable_baselines3(tmp_path, monkeypatch):
    pytest.importorskip("stable_baselines3")
    names = run("stable_baselines3", tmp_path, monkeypatch)
    assert names["estimate"].interval is not None and len(names["watch"].history) >= 3


def test_minari(tmp_path, monkeypatch):
    minari = pytest.importorskip("minari")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    env = minari.DataCollector(gymnasium.make("CartPole-v1", max_episode_steps=40))
    env.action_space.seed(0)
    for episode in range(30):
        env.reset(seed=episode)
        over = False
        while not over:
            _, _, terminated, truncated, _ = env.step(env.action_space.sample())
            over = terminated or truncated
    env.create_dataset(
        "gd/cartpole-v0", algorithm_name="random", author="x", author_email="x@x.x", code_permalink="x", description="x"
    )
    assert run("minari", tmp_path, monkeypatch)["estimate"].interval is not None
