"""The ranking experiment: its cases and their truths, a log's answers, the summary, and the page."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from gradientdice.policies import DiscretePolicy
from gradientdice_studies.control.tasks import TASKS
from gradientdice_studies.frames import column, records, rows_where
from gradientdice_studies.ranking import control
from gradientdice_studies.ranking import run as experiment
from gradientdice_studies.ranking.case import BEHAVIOR, COPY, best_of
from gradientdice_studies.ranking.cases import CASES
from gradientdice_studies.ranking.control import CONTROL, candidates
from gradientdice_studies.ranking.d3rlpy_table import with_d3rlpy
from gradientdice_studies.ranking.figures import draw_all
from gradientdice_studies.ranking.run import Cell, Scale, answers, cells
from gradientdice_studies.ranking.summary import Coverage, Picks, calibration, judged
from gradientdice_studies.ranking.tables import TABLES
from gradientdice_studies.ranking.truth import gathered, jobs, one_round
from gradientdice_studies.store import ResultStore


class TestCases:
    def test_both_kinds_have_both_halves_and_ten_candidates(self):
        for kind in (TABLES, CONTROL):
            made = [make() for make in kind.values()]
            assert sorted(case.half for case in made) == ["develop", "develop", "report", "report"]
            assert all(len(case.candidates) == 10 and COPY in case.candidates for case in made)
        discrete = [isinstance(CASES[name]().candidates[COPY], DiscretePolicy) for name in CONTROL]
        assert discrete.count(True) == discrete.count(False) == 2

    @pytest.mark.parametrize("name", CASES)
    def test_what_is_called_no_better_is_no_better(self, name):
        case = CASES[name]()
        worth = case.worth()
        assert set(worth) == {*case.candidates, BEHAVIOR}
        assert worth[COPY] == worth[BEHAVIOR]
        assert all(worth[policy].value <= worth[BEHAVIOR].value for policy in case.no_better)
        assert max(known.value for known in worth.values()) > worth[BEHAVIOR].value

    @pytest.mark.parametrize("name", ["chain", "hospital"])
    def test_the_log_earns_what_the_behaviour_is_worth(self, name):
        """Nearly all episodes end within the limit: their discounted rewards are the truth, give or take chance."""
        case = CASES[name]()
        log = case.log(0)
        assert log.episodes is not None
        _, first, episode = np.unique(log.episodes, return_index=True, return_inverse=True)
        step = np.arange(len(log)) - first[episode]
        returns = np.bincount(episode, (1 - case.discount) * case.discount**step * log.rewards)
        error = returns.std() / np.sqrt(len(returns))
        assert abs(returns.mean() - case.worth()[BEHAVIOR].value) < 4 * error

    def test_discrete_logs_know_the_behaviours_probabilities(self, monkeypatch):
        pytest.importorskip("gymnasium")
        monkeypatch.setattr(control, "ROWS", 300)
        log, behavior = CASES["cart-pole"]().log(0), TASKS["cart-pole"]().behavior
        assert isinstance(behavior, DiscretePolicy) and log.behavior_log_probs is not None
        row = 17
        probability = behavior.probabilities_at(log.states[row : row + 1])[0, log.actions[row]]
        assert np.exp(log.behavior_log_probs[row]) == pytest.approx(probability)

    @pytest.mark.parametrize("name", CONTROL)
    def test_control_candidates_differ_from_each_other(self, name):
        task = TASKS[name]()
        states = np.random.default_rng(0).normal(size=(200, task.dimension))
        seen = set()
        for policy in candidates(task).values():
            if isinstance(policy, DiscretePolicy):
                chosen = policy.probabilities_at(states)
                assert chosen.sum(axis=1) == pytest.approx(1)
            else:
                chosen = policy.sample(states, np.random.default_rng(1))
            seen.add(chosen.tobytes())
        assert len(seen) == 10


class TestTruth:
    def test_rounds_together_are_one_sample(self):
        rng = np.random.default_rng(0)
        samples = [rng.normal(2.0, 3.0, size=size) for size in (50, 80, 20)]
        rounds = [
            {"task": "t", "candidate": "c", "count": len(s), "mean": s.mean(), "squares": ((s - s.mean()) ** 2).sum()}
            for s in samples
        ]
        found, whole = gathered(rounds)["t"]["c"], np.concatenate(samples)
        assert found["value"] == pytest.approx(whole.mean()) and found["chains"] == 150
        assert found["error"] == pytest.approx(whole.std(ddof=1) / np.sqrt(150))

    def test_a_round_counts_rewards_until_the_first_end(self):
        """Uniform pushes let the pole fall soon; the value of a life of k upright steps is below 1 − γᵏ."""
        pytest.importorskip("gymnasium")
        found = one_round("cart-pole", "uniform", 0, chains=25)
        assert found == one_round("cart-pole", "uniform", 0, chains=25)
        assert found["count"] == 25 and 0.2 < found["mean"] < 1 - 0.95**40

    def test_there_is_a_round_for_everything_but_the_copy(self):
        found = list(jobs(2))
        assert len(found) == len(set(found)) == 2 * 4 * 10
        assert {task for task, _, _ in found} == set(CONTROL) and COPY not in {name for _, name, _ in found}


class TestRun:
    def test_a_log_has_plain_answers_for_all_candidates(self):
        cell = Cell("hospital", 0)
        found = answers(cell)
        assert json.loads(json.dumps(found)) == found
        by_policy = {row["policy"]: row for row in found}
        assert set(by_policy) == set(CASES["hospital"]().candidates)
        assert sum(row["chosen"] for row in found) == 1
        for row in found:
            assert row["simultaneous_low"] <= row["difference_low"] <= row["difference"] <= row["difference_high"]
            assert row["difference_high"] - row["difference_low"] < row["unpaired"]
        # All weights are 1: the mean of the log's episodes.
        assert by_policy[COPY]["importance"] == pytest.approx(by_policy[COPY]["baseline"], rel=0.05)

    def test_the_grid_has_its_parts_and_they_are_not_computed_again(self, tmp_path, monkeypatch):
        scale = Scale(logs=2, control_logs=1)
        assert len(list(cells(scale))) == 4 * 2 + 4
        store = ResultStore(tmp_path, "ranking", {"cases": list(CASES)})
        frame = made_up(2)
        for cell in cells(Scale(logs=2, control_logs=0)):
            own = records(rows_where(frame, case=cell.case, seed=cell.seed))
            store.part(f"{cell.name}.json").write_text(json.dumps(own))
        monkeypatch.setattr(experiment, "answers", None)
        _, again = experiment.run(tmp_path, Scale(logs=2, control_logs=0))
        assert len(again) == len(frame) and (tmp_path / "ranking.csv").exists()


def made_up(logs, error=0.0, names=tuple(TABLES)):
    """Answers whose values are off by `error` times a random sign; intervals reach one unit to both sides."""
    rng, rows = np.random.default_rng(0), []
    for name in names:
        case = CASES[name]()
        worth = case.worth()
        for seed in range(logs):
            values = {p: worth[p].value + error * rng.choice([-1, 1]) for p in case.candidates}
            best = max(values, key=lambda p: values[p])
            for policy, value in values.items():
                apart = value - worth[BEHAVIOR].value
                rows.append(
                    {
                        **{"case": name, "seed": seed, "rows": 100, "episodes": 10, "cpu_seconds": 1.0},
                        **{"baseline": worth[BEHAVIOR].value, "policy": policy, "value": value, "low": value - 1},
                        **{"high": value + 1, "difference": apart, "difference_low": apart - 1},
                        **{"difference_high": apart + 1, "simultaneous_low": apart - 2},
                        **{"simultaneous_high": apart + 2, "probability_best": 0.91 if policy == best else 0.01},
                        **{"in_best_set": policy == best, "verdict": "trust", "unpaired": 4.0},
                        **{"chosen": policy == best, "shown_better": False, "mistaken": False, "importance": -value},
                    }
                )
    return pd.DataFrame(rows)


class TestSummary:
    def test_coverage(self):
        right = Coverage.of(judged(made_up(3)))
        assert (right.logs, right.differences, right.simultaneous, right.best_set) == (12, 1.0, 1.0, 1.0)
        assert right.width == pytest.approx(0.5) and right.truth_error == 0
        # The baseline's interval is √12 wide, the value's 2.
        assert right.two_intervals == pytest.approx(2 / (2 + np.sqrt(12)))
        wrong = Coverage.of(judged(made_up(3, error=1.5)))
        assert (wrong.differences, wrong.simultaneous) == (0.0, 1.0)

    def test_one_miss_is_a_miss_of_all_at_once(self):
        frame = made_up(4)
        frame.loc[frame.index[3], ["difference_low", "simultaneous_low"]] = [5.0, 5.0]
        found = Coverage.of(judged(frame))
        assert found.differences == pytest.approx(1 - 1 / 160) and found.simultaneous == pytest.approx(1 - 1 / 16)

    def test_picks(self):
        rows = judged(made_up(3).assign(fitted=float("nan")))
        for method in ("select", "highest value"):
            found = Picks.of(rows, method)
            assert found is not None
            assert (found.logs, found.regret, found.regret_of_three, found.false) == (12, 0.0, 0.0, 0.0)
            assert found.correlation == pytest.approx(1)
        # Importance sampling has the order turned round here, and deploys the worst.
        reversed_order = Picks.of(rows, "WIS")
        assert reversed_order is not None
        assert reversed_order.correlation == pytest.approx(-1) and reversed_order.false == 1
        assert reversed_order.regret > 1 and reversed_order.mistaken == 1
        assert Picks.of(rows, "FQE of d3rlpy") is None

    def test_keeping_the_baseline_is_a_missed_deployment(self):
        found = Picks.of(judged(made_up(2).assign(chosen=False)), "select")
        assert found is not None and (found.missed, found.regret, found.false) == (1.0, pytest.approx(1.0), 0.0)

    def test_calibration(self):
        low, high = calibration(judged(made_up(5)))
        assert (low.count, low.said, low.best) == (180, pytest.approx(0.01), 0)
        assert (high.count, high.said, high.best) == (20, pytest.approx(0.91), 20)
        assert high.interval == (pytest.approx(20 / (20 + 1.96**2), abs=1e-3), 1.0)

    def test_a_case_whose_best_is_not_known_is_left_out(self, monkeypatch):
        case = CASES["random"]()
        close = {**case.worth(), "first part": replace(case.worth()["second part"], error=0.01)}
        assert best_of(close)[0] in ("first part", "second part") and len(best_of(close)) == 2
        monkeypatch.setitem(CASES, "random", lambda: replace(case, worth=lambda: close))
        assert sum(found.count for found in calibration(judged(made_up(5)))) == 150

    def test_values_of_d3rlpy_join_the_logs_that_it_was_given(self, tmp_path):
        table = tmp_path / "d3rlpy.csv"
        lines = [f"random,1,{policy},0.5,60.0,2.8.1" for policy in CASES["random"]().candidates]
        table.write_text("\n".join(["case,seed,policy,value,seconds,version", *lines]) + "\n")
        found = with_d3rlpy(made_up(2), table)
        given = [(row["case"], row["seed"]) for row in records(found) if row["fitted"] == 0.5]
        assert given == [("random", 1)] * 10
        picks = Picks.of(judged(found), "FQE of d3rlpy")
        assert picks is not None and picks.logs == 1 and picks.correlation == 0
        nothing = column(with_d3rlpy(made_up(1), tmp_path / "none.csv"), "fitted")
        assert np.isnan(nothing.to_numpy(dtype=float)).all()


def test_the_page_and_its_figures(tmp_path, page):
    frame = made_up(3, error=0.01, names=tuple(CASES))
    figures = draw_all(ResultStore(tmp_path, "ranking", {}), frame)
    assert all(path.exists() and path.with_suffix(".pdf").exists() for path in figures.values())
    text = page("ranking", frame, Scale(logs=3, control_logs=3), figures)
    assert "| tables | paired differences covered, 0.93 to 0.97 | 1.000 | **no** |" in text
    assert "3 logs of each of 4 tables and 3 logs of each of 4 control tasks" in " ".join(text.split())
