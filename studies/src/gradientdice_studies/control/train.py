"""Trains an actor of the control suite: `python -m gradientdice_studies.control.train TASK`.

Proximal policy optimisation by Stable-Baselines3 with two hidden layers of 64 tanh units and standardised
observations, on one core within a few minutes per task. Champions are not needed, only a target that does clearly
better than what logs the data. For some tasks an early actor is kept beside the last one: it is part of the behaviour
policy. It needs the extra `sb3`.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from gradientdice.base.atomic import write_atomically
from gradientdice.base.errors import InputError

FOLDER = Path(__file__).parent / "data"
EVALUATION_EPISODES = 20


@dataclass(frozen=True)
class Training:
    """How an actor is trained.

    Attributes:
        environment: Gymnasium's name.
        steps: of training, all environments together.
        early: after how many of them the early actor is kept; None if no task needs one.
        options: of PPO, where they differ from `COMMON`.
        environment_options: of `gymnasium.make`.
    """

    environment: str
    steps: int
    early: int | None
    options: dict[str, Any] = field(default_factory=dict)
    environment_options: dict[str, Any] = field(default_factory=dict)


COMMON: dict[str, Any] = {"n_steps": 256, "batch_size": 256, "n_epochs": 8, "learning_rate": 5e-4, "gamma": 0.99}
ENVIRONMENTS = 8
# Small tasks are learned faster with larger steps and, where the reward is near, a shorter horizon.
FAST = {"learning_rate": 1e-3}
TRAININGS = {
    "cart-pole": Training("CartPole-v1", 50_000, 8_000, {**FAST, "n_steps": 128, "gamma": 0.98}),
    "acrobot": Training("Acrobot-v1", 60_000, None, FAST),
    "pendulum": Training("Pendulum-v1", 80_000, None, {**FAST, "gamma": 0.9}),
    "lunar-lander": Training("LunarLander-v3", 100_000, None, {"gae_lambda": 0.98, "ent_coef": 0.01}),
    "inverted-pendulum": Training("InvertedPendulum-v5", 40_000, 8_000, FAST),
    "inverted-double-pendulum": Training("InvertedDoublePendulum-v5", 60_000, None, FAST),
    "hopper": Training("Hopper-v5", 100_000, 30_000),
    "walker": Training("Walker2d-v5", 120_000, 40_000),
    "half-cheetah": Training("HalfCheetah-v5", 300_000, None, FAST),
    # Without the contact forces: 27 numbers.
    "ant": Training("Ant-v5", 120_000, 40_000, {}, {"include_cfrc_ext_in_observation": False}),
}


def main() -> None:
    """Trains one task's actor and writes TASK.safetensors, and for some tasks TASK-early.safetensors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=TRAININGS)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    train(options.task, options.folder, options.seed)


def train(task: str, folder: Path, seed: int) -> None:
    """Trains until the early actor is due, writes it, and trains on."""
    try:
        import torch  # pyright: ignore[reportMissingImports] - the extra is not among the tests' packages
        from stable_baselines3 import PPO  # pyright: ignore[reportMissingImports]
        from stable_baselines3.common.env_util import make_vec_env  # pyright: ignore[reportMissingImports]
        from stable_baselines3.common.vec_env import VecNormalize  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise InputError("Training needs Stable-Baselines3: pip install 'gradientdice[sb3]'.") from error

    torch.set_num_threads(1)
    training, started = TRAININGS[task], time.perf_counter()
    options = {**COMMON, **training.options}
    plain = make_vec_env(training.environment, n_envs=ENVIRONMENTS, seed=seed, env_kwargs=training.environment_options)
    environments = VecNormalize(plain, gamma=options["gamma"])
    network = {"net_arch": [64, 64], "activation_fn": torch.nn.Tanh}
    model = PPO("MlpPolicy", environments, policy_kwargs=network, seed=seed, device="cpu", **options)
    due = {training.steps: task} if training.early is None else {training.early: f"{task}-early", training.steps: task}
    for steps, name in due.items():
        model.learn(steps - model.num_timesteps, reset_num_timesteps=False)
        about = {
            "environment": training.environment,
            "command": f"python -m gradientdice_studies.control.train {task} --seed {seed}",
            "steps": str(model.num_timesteps),
            "mean_return": f"{_mean_return(model, environments, training):.1f}",
        }
        print(json.dumps({"task": name, **about, "seconds": round(time.perf_counter() - started)}), flush=True)
        place = folder / f"{name}.safetensors"
        write_atomically(place, lambda path, about=about: save_file(_weights(model, environments), path, about))


def _mean_return(model: Any, environments: Any, training: Training) -> float:
    """The mean return of episodes with the actor's own noise."""
    import gymnasium

    environment, returns = gymnasium.make(training.environment, **training.environment_options), []
    for episode in range(EVALUATION_EPISODES):
        observation, _ = environment.reset(seed=1_000_000 + episode)
        total, over = 0.0, False
        while not over:
            action, _ = model.predict(environments.normalize_obs(observation))
            observation, reward, terminated, truncated, _ = environment.step(action)
            total, over = total + float(reward), terminated or truncated
        returns.append(total)
    return float(np.mean(returns))


def _weights(model: Any, environments: Any) -> dict[str, np.ndarray]:
    """The actor's layers as weight (inputs × outputs) and bias; continuous actors also have their log-deviations.

    Standardising the observations is folded into the first layer; that SB3 cuts them at ten deviations is left out.
    """
    hidden = [layer for layer in model.policy.mlp_extractor.policy_net if hasattr(layer, "weight")]
    layers = [
        (layer.weight.detach().numpy().T.astype(np.float64), layer.bias.detach().numpy().astype(np.float64))
        for layer in (*hidden, model.policy.action_net)
    ]
    statistics = environments.obs_rms
    scale = 1 / np.sqrt(statistics.var + environments.epsilon)
    weight, bias = layers[0]
    layers[0] = (scale[:, None] * weight, bias - (scale * statistics.mean) @ weight)
    flat = {}
    for number, (weight, bias) in enumerate(layers):
        flat[f"layer{number}.weight"] = np.ascontiguousarray(weight, dtype=np.float32)
        flat[f"layer{number}.bias"] = bias.astype(np.float32)
    if hasattr(model.policy, "log_std"):
        flat["log_deviation"] = model.policy.log_std.detach().numpy().astype(np.float32)
    return flat


if __name__ == "__main__":
    main()
