"""The control suite: actors, logs, Monte Carlo, the run, and the page from a made-up table."""

import json
import re
from importlib.resources import files

import numpy as np
import pandas as pd
import pytest
from safetensors import safe_open

from gradientdice.base.errors import InputError
from gradientdice.log.formats.load import load
from gradientdice.policies import DiscretePolicy, SamplingPolicy
from gradientdice_studies.control import run as experiment
from gradientdice_studies.control.actors import Actor, draw, mixed_choices, mixed_draws, uniform_choices
from gradientdice_studies.control.d3rlpy_table import all_methods, d3rlpy_rows
from gradientdice_studies.control.figures import draw_all
from gradientdice_studies.control.memory import peak_memory
from gradientdice_studies.control.methods import methods, previous_answers
from gradientdice_studies.control.monte_carlo import after_burn_in, by_episodes, discounted
from gradientdice_studies.control.run import QUICK, Cell, Scale, answers, cells
from gradientdice_studies.control.simulate import Chains, make_log, run_chains
from gradientdice_studies.control.summary import judged, pooled, summarised
from gradientdice_studies.control.tasks import TASKS, Task
from gradientdice_studies.control.truth import truths
from gradientdice_studies.frames import records, rows_where
from gradientdice_studies.store import ResultStore
from problems import known, linear_system

DATA = files("gradientdice_studies.control").joinpath("data")
ACTORS = sorted(path.name.removesuffix(".safetensors") for path in DATA.iterdir() if path.name.endswith(".safetensors"))


class TestActors:
    @pytest.mark.parametrize("name", ACTORS)
    def test_a_file_is_small_and_says_how_it_was_made(self, name):
        path = str(DATA.joinpath(f"{name}.safetensors"))
        with safe_open(path, "numpy") as stored:
            about = stored.metadata()
        # The module had the first of these names when the committed networks were trained.
        assert re.match(r"python -m gradientdice(\.experiments|_studies)\.control\.train ", about["command"])
        assert float(about["mean_return"]) == pytest.approx(float(about["mean_return"]))
        assert len(DATA.joinpath(f"{name}.safetensors").read_bytes()) < 300_000

    def test_it_computes_what_its_layers_say(self):
        actor = Actor.load("hopper")
        state = np.linspace(-1, 1, 11)
        values = state
        for number, (weight, bias) in enumerate(actor.layers):
            values = np.array([sum(values[i] * weight[i, j] for i in range(len(values))) for j in range(len(bias))])
            values = values + bias if number == len(actor.layers) - 1 else np.tanh(values + bias)
        assert actor(state[None])[0] == pytest.approx(values)

    def test_no_noise_gives_the_mean_and_no_action_is_beyond_the_bound(self):
        actor = Actor.load("hopper")
        states = np.random.default_rng(0).normal(size=(50, 11))
        still = actor.noisy(0.0, 1.0).sample(states, np.random.default_rng(1))
        assert np.array_equal(still, np.clip(actor(states), -1, 1))
        assert np.abs(actor.noisy(5.0, 1.0).sample(states, np.random.default_rng(1))).max() == 1.0

    def test_mixtures_have_both_parts(self):
        states, rng = np.zeros((20_000, 1)), np.random.default_rng(0)
        one = DiscretePolicy(lambda s: np.tile([1.0, 0.0], (len(s), 1)), 2)
        mixed = mixed_choices(one, uniform_choices(2), 0.4)
        assert mixed.probabilities_at(states[:1]) == pytest.approx(np.array([[0.7, 0.3]]))
        assert draw(mixed, states, rng).mean() == pytest.approx(0.3, abs=0.02)
        constant = {k: SamplingPolicy(lambda s, r, k=k: np.full((len(s), 1), k)) for k in (1.0, 2.0)}
        assert mixed_draws(constant[1.0], constant[2.0], 0.4).sample(states, rng).mean() == pytest.approx(1.6, abs=0.02)

    @pytest.mark.slow
    def test_an_actor_earns_what_its_training_measured(self):
        """Evaluated by Stable-Baselines3 with all of its noise in twenty episodes of at most 1,000 steps."""
        pytest.importorskip("mujoco")
        with safe_open(str(DATA.joinpath("hopper.safetensors")), "numpy") as stored:
            measured = float(stored.metadata()["mean_return"])
        task = TASKS["hopper"]()
        chains = run_chains(task, Actor.load("hopper").noisy(1.0, 1.0), 40, 1_000, 5)
        first = np.cumsum(np.pad(chains.ended, ((0, 0), (1, 0)))[:, :-1], axis=1) == 0
        returns = (chains.rewards * first).sum(axis=1)
        assert abs(returns.mean() - measured) < 4 * returns.std() * np.sqrt(1 / 40 + 1 / 20)


class TestLogs:
    @pytest.mark.parametrize("name", ["cart-pole", "mountain-car"])
    def test_a_log_is_cut_at_the_limit_and_follows_itself(self, name):
        pytest.importorskip("gymnasium")
        task = TASKS[name]()
        log, again, other = make_log(task, 2_500, 3), make_log(task, 2_500, 3), make_log(task, 2_500, 4)
        assert len(log) == 2_500 and log.states.shape[1] == task.dimension
        assert np.array_equal(log.states, again.states) and not np.array_equal(log.states, other.states)
        assert log.terminated is not None and log.truncated is not None and log.episodes is not None
        over = log.terminated | log.truncated
        same = np.diff(log.episodes) == 0
        assert np.array_equal(~over[:-1], same) and over[-1]
        assert np.array_equal(log.next_states[:-1][same], log.states[1:][same])
        lengths = np.bincount(log.episodes)
        lengths = lengths[lengths > 0]
        assert lengths.max() == task.limit
        assert (lengths == task.limit).sum() <= log.truncated.sum() <= (lengths == task.limit).sum() + 2

    def test_an_end_at_the_limit_is_an_end(self):
        """An environment that ends after five steps, logged with a limit of five."""
        log = make_log(fake_task(limit=5), 20, 0)
        assert log.terminated is not None and log.truncated is not None
        assert log.terminated.sum() == 4 and log.truncated.sum() == 0
        assert log.rewards[:5].tolist() == [1.0, 1.0, 1.0, 1.0, 1.0]

    def test_a_reward_of_its_own(self):
        log = make_log(fake_task(limit=5, pay=lambda state, reward, ended: state[0] + 10 * ended), 10, 0)
        assert log.rewards[:5].tolist() == [1.0, 2.0, 3.0, 4.0, 15.0]

    def test_a_missing_simulator_is_named(self):
        pytest.importorskip("gymnasium")
        with pytest.raises(InputError, match=r"gradientdice\[gym\]"):
            fake_task(limit=5, environment="MissingSimulator-v0", fake=False).make()


class Counting:
    """An environment that counts its steps and ends after five."""

    def reset(self, seed=None):
        self.count = 0
        return np.zeros(1), {}

    def step(self, action):
        self.count += 1
        return np.array([float(self.count)]), 1.0, self.count == 5, False, {}


def fake_task(limit, pay=None, environment="Counting", fake=True):
    class Fake(Task):
        def make(self):
            return Counting() if fake else Task.make(self)

    if not fake:
        import gymnasium

        if environment not in gymnasium.registry:
            gymnasium.register(environment, entry_point="no_such_simulator:Environment")
    policy = SamplingPolicy(lambda states, rng: np.zeros((len(states), 1)))
    return Fake("fake", environment, "develop", 1, limit, policy, policy, pay=pay)


class TestMonteCarlo:
    def test_chains_start_again_when_they_end(self):
        task = fake_task(limit=3)
        chains = run_chains(task, task.target, 2, 12, 0)
        assert np.flatnonzero(chains.ended[0]).tolist() == [4, 9]

    def test_a_constant_reward_until_a_random_end(self):
        """Ends with probability q after each step, reward 1: (1−γ)/(1 − γ(1−q)), and 1 on average."""
        rng, end = np.random.default_rng(0), 0.2
        chains = Chains(np.ones((400, 300)), rng.random((400, 300)) < end)
        found = discounted(chains, 0.9)
        exact = 0.1 / (1 - 0.9 * (1 - end))
        assert abs(found.value - exact) < 4 * found.error and found.error < 0.01
        assert known(by_episodes(chains)).value == pytest.approx(1.0)

    def test_errors_are_those_of_repetitions(self):
        def once(seed):
            rng = np.random.default_rng(seed)
            return Chains(rng.normal(size=(40, 1_600)), rng.random((40, 1_600)) < 0.05)

        for mean in (lambda chains: discounted(chains, 0.9), by_episodes, after_burn_in):
            found = [known(mean(once(seed))) for seed in range(40)]
            spread = np.std([one.value for one in found])
            assert 0.7 < np.mean([one.error for one in found]) / spread < 1.4
        # White noise: the error of n steps is 1/√n.
        assert after_burn_in(once(0)).step_error == pytest.approx(1.0, rel=0.4)

    def test_chains_that_never_end_have_no_mean_over_episodes(self):
        rewards = np.random.default_rng(0).normal(size=(30, 1_600))
        never = Chains(rewards, np.zeros(rewards.shape, dtype=bool))
        assert by_episodes(never) is None
        drifting = Chains(rewards + np.linspace(0, 1, 1_600), never.ended)
        assert abs(after_burn_in(never).drift) < 4 < after_burn_in(drifting).drift


class TestTruth:
    def test_every_task_has_a_truth_at_each_of_its_discounts(self):
        for name, make in TASKS.items():
            assert set(truths()[name]) == set(make().discounts), name

    def test_target_and_behaviour_are_clearly_apart(self):
        for name, rows in truths().items():
            for discount, truth in rows.items():
                assert truth.gap_in_errors >= 10, (name, discount)

    def test_the_truth_is_known_well_against_the_gap(self):
        for name, rows in truths().items():
            for discount, truth in rows.items():
                assert truth.value_error <= 0.01 * truth.gap, (name, discount)
                assert truth.behavior_error <= 0.02 * truth.gap, (name, discount)

    def test_halves_are_both_there(self):
        halves = [make().half for make in TASKS.values()]
        assert len(halves) >= 12 and abs(halves.count("develop") - halves.count("report")) <= 1
        dimensions = [make().dimension for make in TASKS.values()]
        assert min(dimensions) == 2 and max(dimensions) == 27


def made_up(seeds=4, sizes=(1_000, 10_000)):
    """A table with made-up answers: the default's are right, the previous default's are far off and open."""
    rng, rows = np.random.default_rng(0), []
    for name in ("cart-pole", "long-pole"):
        task = TASKS[name]()
        for size in sizes:
            for seed in range(seeds):
                for method, error, half in (("default", 0.05, 0.2), ("previous default", 0.5, 2.0), ("FQE", 0.1, None)):
                    for discount in task.discounts:
                        truth = truths()[name][discount]
                        value = truth.value + error * truth.gap * rng.choice([-1, 1])
                        sign = 1 if truth.value > truth.behavior else -1
                        low = None if half is None else value - half * truth.gap
                        high = None if half is None else value + half * truth.gap
                        rows.append(
                            {
                                **{"task": name, "rows": size, "seed": seed, "half": task.half, "method": method},
                                **{"discount": discount, "truth": truth.value, "true_behavior": truth.behavior},
                                **{"running_error": truth.running_error(size), "episodes": 10, "mebibytes": 300.0},
                                **{"note": "", "value": value, "low": low, "high": high, "standard_error": None},
                                **{"behavior": truth.behavior, "difference": None, "difference_low": None},
                                **{"difference_high": None, "seconds": 1.5, "verdict": "caution"},
                                "decision": ("better" if sign > 0 else "worse") if method == "default" else "undecided",
                            }
                        )
    return pd.DataFrame(rows)


def test_values_of_d3rlpy_join_the_logs_that_it_was_given(tmp_path):
    table = tmp_path / "d3rlpy.csv"
    lines = ["task,rows,seed,discount,updates,value,seconds,mebibytes,version"]
    lines += ["cart-pole,1000,1,0.9,10000,0.7,12.5,410,2.8.1", "cart-pole,1000,1,0.9,100000,0.6,,,2.8.1"]
    table.write_text("\n".join([*lines, "cart-pole,1000,99,0.9,10000,0.7,12.5,410,2.8.1"]) + "\n")
    row, longer = records(d3rlpy_rows(made_up(), table))
    assert (row["method"], row["seed"], row["value"]) == ("FQE of d3rlpy", 1, 0.7)
    assert (row["seconds"], row["mebibytes"]) == (12.5, 410)
    assert (longer["method"], longer["value"]) == ("FQE of d3rlpy, 100,000 updates", 0.6)
    assert row["truth"] == truths()["cart-pole"][0.9].value and np.isnan(row["low"])
    assert len(d3rlpy_rows(made_up(), tmp_path / "none.csv")) == 0
    # All of them, the default first.
    found = all_methods(made_up(), table)
    assert len(found) == len(made_up()) + 2
    own = rows_where(found, task="cart-pole", rows=1_000, discount=0.9, seed=1)
    assert list(own["method"]) == ["default", "previous default", "FQE", row["method"], longer["method"]]


class TestSummary:
    def test_figures_of_a_cell(self):
        found = summarised(made_up())
        own = records(rows_where(found, method="default", task="cart-pole", rows=1_000))
        assert len(own) == 3
        for cell in own:
            assert cell["rmse"] == pytest.approx(0.05) and cell["width"] == pytest.approx(0.2)
            assert (cell["inside"], cell["right"], cell["wrong"]) == (4, 4, 0)
        truth = truths()["cart-pole"][0.9]
        expected = 0.2 * truth.gap / (1.96 * truth.running_error(1_000))
        assert own[0]["width_running"] == pytest.approx(expected)

    def test_methods_without_intervals_have_no_coverage(self):
        found = summarised(made_up())
        assert np.isnan(pooled(rows_where(found, method="FQE"))["coverage"])

    def test_bars(self):
        found = {(bar.rows, bar.sentence): bar for bar in judged(summarised(made_up()), "report")}
        by_word = {word: [bar for (_, s), bar in found.items() if word in s] for word in ("coverage", "RMSE", "wrong")}
        (coverage,) = by_word["coverage"]
        assert coverage.measured == 1.0 and coverage.holds is False
        small, large, worse = by_word["RMSE"]
        assert small.holds and worse.holds and worse.measured == pytest.approx(0.1)
        assert large.measured is None and large.holds is None
        assert by_word["wrong"][0].holds


class TestPreviousDefault:
    """Version 0.1's own figures on this log, with its own code: (discount, value, low, high)."""

    FIGURES = ((0.5, -0.505129, -1.38682, -0.222298), (0.95, -0.348626, -0.783307, -0.175589))

    def test_it_gives_what_version_0_1_gave(self):
        data, policy = linear_system(0)
        found = previous_answers(data, policy, [discount for discount, *_ in self.FIGURES], 0)
        for answered, (_, value, low, high) in zip(found, self.FIGURES, strict=True):
            estimate = answered.estimate
            assert (estimate.value, *known(estimate.interval)) == pytest.approx((value, low, high), rel=1e-4)
            assert "RandomFourier" in estimate.functions


class TestRun:
    def test_the_grid(self):
        found = list(cells(Scale(logs=2, large_logs=1)))
        assert len(found) == len(TASKS) * 5 and len({cell.name for cell in found}) == len(found)
        assert {cell.rows for cell in cells(Scale(largest=10_000))} == {1_000, 10_000}
        assert all(TASKS[cell.task]().half == "develop" for cell in cells(Scale(report=0)))
        assert {cell.task for cell in cells(QUICK)} == set(QUICK.tasks)

    def test_it_goes_on_where_it_was(self, tmp_path):
        """Parts that are there are not computed again: with all of them, nothing is."""
        scale = Scale(logs=1, large_logs=0, largest=1_000, tasks=("cart-pole",))
        store = ResultStore(tmp_path, "control", {"methods": list(methods())})
        rows = made_up(seeds=1, sizes=(1_000,)).query("task == 'cart-pole'")
        store.part("cart-pole-1000-0.json").write_text(json.dumps(rows.to_dict("records")))
        _, frame = experiment.run(tmp_path, scale)
        assert len(frame) == len(rows) and (tmp_path / "control.csv").exists()
        assert not list((tmp_path / "logs").iterdir())

    def test_a_log_is_kept_and_its_answers_have_differences(self, tmp_path):
        pytest.importorskip("gymnasium")
        found = answers(Cell("cart-pole", 1_000, 0), tmp_path, ["kernel closed form"])
        kept = load(tmp_path / "cart-pole-1000-0.npz")
        assert len(kept) == 1_000
        assert [row["discount"] for row in found] == [0.9, 0.99, 1.0]
        for row in found:
            assert row["low"] <= row["value"] <= row["high"]
            assert row["difference"] == pytest.approx(row["value"] - row["behavior"])
            assert row["difference_low"] <= row["difference"] <= row["difference_high"]
            assert row["mebibytes"] > 50 and row["seconds"] > 0
        assert json.loads(json.dumps(found)) == found

    def test_a_refusal_is_a_row(self, tmp_path, monkeypatch):
        pytest.importorskip("gymnasium")

        def refuse(*arguments):
            raise InputError("not with this log")

        monkeypatch.setattr(experiment, "methods", lambda: {"default": refuse})
        found = answers(Cell("cart-pole", 1_000, 0), tmp_path)
        assert [row["verdict"] for row in found] == ["refused"] * 3
        assert found[0]["note"] == "not with this log" and found[0]["value"] is None

    def test_memory_of_some_work(self):
        with peak_memory() as small:
            pass
        with peak_memory() as large:
            np.ones(25_000_000).sum()
        assert large.mebibytes - small.mebibytes > 150


def test_the_page_and_its_figure(tmp_path, page):
    frame = made_up()
    figures = draw_all(ResultStore(tmp_path, "control", {}), frame)
    assert figures["control"].exists() and figures["control"].with_suffix(".pdf").exists()
    text = page("control", frame, Scale(logs=4, large_logs=0), figures)
    assert "| 10,000 | coverage of 95% intervals between 92% and 98% | 1 | **no** |" in text
    assert "not run" in text and "mountain-car" in text
    assert "4 logs of 1,000 rows of each, 4 logs of 10,000 rows of each" in text.replace("\n", " ")
    # What each verdict is worth; methods without intervals decide nothing.
    assert "| 1,000 | caution | 12 | 1.00 | 0.05 |" in text
    assert (
        '"FQE" is ours, with networks; it has no interval, and was run on 4 logs of 1,000 rows and 4 logs of 10,000 rows'
        in text.replace("\n", " ")
    )
    assert '"model alone" was not run.' in text.replace("\n", " ")
    assert "| FQE | 0.1 | – | – | – | – | – | 1.5 | 300 |" in text
