"""Trains the TD3 actor that the Reacher experiment evaluates: `python -m gradientdice_studies.reacher.train`.

Stable-Baselines Jax's TD3 with the sizes of the TD3 paper (400 and 300 units, batches of 100, exploration noise 0.1),
10⁶ steps of Gymnasium's Reacher-v5. After each episode of fifty steps there are fifty updates. There is a checkpoint
every 50,000 steps, from which an interrupted training continues; the mean return of 100 episodes without noise at each
checkpoint is the training curve. It needs the extra `sb3`.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from gradientdice.base.atomic import write_atomically

ENVIRONMENT = "Reacher-v5"
STEPS, INTERVAL = 1_000_000, 50_000
EVALUATION_EPISODES = 100


def main() -> None:
    """Trains, or continues training, and writes actor.safetensors and training.csv."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("results/reacher/td3"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=STEPS)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    train(options.folder, options.seed, options.steps)


def train(folder: Path, seed: int, steps: int) -> None:
    """Trains in intervals, each of which ends with a checkpoint."""
    import gymnasium
    from sbx import TD3  # pyright: ignore[reportMissingImports] - the extra is not among the tests' packages
    from stable_baselines3.common.noise import NormalActionNoise  # pyright: ignore[reportMissingImports]

    environment = gymnasium.make(ENVIRONMENT)
    record = folder / "progress.json"
    curve = json.loads(record.read_text()) if record.exists() else []
    if curve:
        last = folder / f"step-{curve[-1]['step']}"
        model = TD3.load(last / "model.zip", env=environment)
        model.load_replay_buffer(last / "buffer.pkl")
        # A restored generator would repeat the first interval's draws.
        model.set_random_seed(seed + curve[-1]["step"])
    else:
        model = TD3(
            "MlpPolicy",
            environment,
            learning_rate=1e-3,
            batch_size=100,
            learning_starts=10_000,
            train_freq=50,
            gradient_steps=50,
            action_noise=NormalActionNoise(np.zeros(2), 0.1 * np.ones(2)),
            policy_kwargs={"net_arch": [400, 300]},
            seed=seed,
        )
    while not curve or curve[-1]["step"] < steps:
        done, started = curve[-1]["step"] if curve else 0, time.perf_counter()
        model.learn(min(INTERVAL, steps - done), reset_num_timesteps=False)
        returns = _returns(model)
        point = {
            "step": int(model.num_timesteps),
            "mean_return": float(returns.mean()),
            "standard_error": float(returns.std(ddof=1) / np.sqrt(len(returns))),
            "seconds": time.perf_counter() - started,
        }
        print(point, flush=True)
        here = folder / f"step-{point['step']}"
        here.mkdir(exist_ok=True)
        model.save(here / "model.zip")
        model.save_replay_buffer(here / "buffer.pkl")
        write_atomically(folder / "actor.safetensors", lambda path: save_file(_weights(model), path))
        curve.append(point)
        write_atomically(record, lambda path: Path(path).write_text(json.dumps(curve, indent=1)))
        for older in folder.glob("step-*/buffer.pkl"):
            if older.parent != here:
                older.unlink()
    lines = ["step,mean_return,standard_error"]
    lines += [f"{point['step']},{point['mean_return']:.4f},{point['standard_error']:.4f}" for point in curve]
    write_atomically(folder / "training.csv", lambda path: Path(path).write_text("\n".join(lines) + "\n"))


def _returns(model: Any) -> np.ndarray:
    """Returns of episodes without noise, with seeds of their own."""
    import gymnasium

    environment, returns = gymnasium.make(ENVIRONMENT), []
    for episode in range(EVALUATION_EPISODES):
        observation, _ = environment.reset(seed=1_000_000 + episode)
        total, over = 0.0, False
        while not over:
            action, _ = model.predict(observation, deterministic=True)
            observation, reward, terminated, truncated, _ = environment.step(action)
            total, over = total + float(reward), terminated or truncated
        returns.append(total)
    return np.array(returns)


def _weights(model: Any) -> dict[str, np.ndarray]:
    """The actor's layers, first to last, as weight (inputs × outputs) and bias."""
    layers = model.policy.actor_state.params["params"]
    flat: dict[str, np.ndarray] = {}

    def collect(tree: dict) -> None:
        for name in sorted(tree, key=lambda name: int(name.rsplit("_", 1)[-1])):
            if "kernel" in tree[name]:
                number = len(flat) // 2
                flat[f"layer{number}.weight"] = np.asarray(tree[name]["kernel"])
                flat[f"layer{number}.bias"] = np.asarray(tree[name]["bias"])
            else:
                collect(tree[name])

    collect(layers)
    return flat


if __name__ == "__main__":
    main()
