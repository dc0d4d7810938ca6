"""Answers of several machines in one table."""

import json

import numpy as np
import pandas as pd
import pytest

import gradientdice as gd
from gradientdice_studies import gather
from gradientdice_studies.control.truth import truths
from gradientdice_studies.frames import records

KEYS = gather.KEYS["ranking"]


def answer(case: str, seed: int, policy: str, value: float) -> dict:
    return {"case": case, "seed": seed, "policy": policy, "value": value, "cpu_seconds": 3.0}


def lines(*rows: dict) -> list[str]:
    return [json.dumps({"name": "a log", "rows": list(rows)}), json.dumps({"name": "another", "error": "it failed"})]


def test_answers_of_one_experiment_are_read_and_costs_left_out_where_they_are_not_a_users():
    other = {"task": "cart-pole", "rows": 1000, "seed": 0, "method": "default", "discount": 0.9}
    found = gather.answers_in(lines(answer("chain", 0, "a", 1.5), other), KEYS)
    assert found == [answer("chain", 0, "a", 1.5)]
    (shared,) = gather.answers_in(lines(answer("chain", 0, "a", 1.5)), KEYS, costs=False)
    assert shared == {**answer("chain", 0, "a", 1.5), "cpu_seconds": None}


def test_a_newer_answer_replaces_the_one_that_is_known():
    known = pd.DataFrame([answer("chain", 0, "a", 1.0), answer("chain", 1, "a", 2.0)])
    frame = gather.gathered(known, [answer("chain", 0, "a", 1.5), answer("aisle", 0, "b", 0.5)], KEYS)
    found = [(row["case"], row["seed"], row["value"]) for row in records(frame)]
    assert found == [("aisle", 0, 0.5), ("chain", 0, 1.5), ("chain", 1, 2.0)]
    with pytest.raises(gd.InputError, match="--lines"):
        gather.gathered(None, [], KEYS)


def test_a_table_is_the_same_to_the_bit_and_grows(tmp_path):
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    first.write_text("\n".join(lines(answer("chain", 0, "a", 0.37361133933627544))))
    second.write_text("\n".join(lines(answer("chain", 1, "a", 0.1))))
    together, apart, after = (tmp_path / f"{name}.csv.gz" for name in ("together", "apart", "after"))
    gather.main(["ranking", str(together), "--lines", str(first), str(second)])
    gather.main(["ranking", str(apart), "--lines", str(first), "--lines", str(second)])
    gather.main(["ranking", str(after), "--lines", str(first)])
    gather.main(["ranking", str(after), "--lines", str(second)])
    assert together.read_bytes() == apart.read_bytes() == after.read_bytes()
    assert np.array_equal(gather.read_answers(after)["value"], [0.37361133933627544, 0.1])


def test_answers_on_control_tasks_have_the_truth_that_is_known_now(tmp_path):
    old = {"task": "cart-pole", "rows": 1_000, "seed": 0, "method": "default", "discount": 0.99, "value": 0.9}
    table, new = tmp_path / "answers.csv.gz", tmp_path / "new.jsonl"
    row = {**old, "truth": 7.0, "true_behavior": 6.0, "running_error": 5.0}
    new.write_text("\n".join(lines(row)), encoding="utf-8")
    gather.main(["control", str(table), "--lines", str(new)])
    (found,) = records(gather.read_answers(table))
    known = truths()["cart-pole"][0.99]
    assert found["value"] == 0.9 and (found["truth"], found["true_behavior"]) == (known.value, known.behavior)
    assert found["running_error"] == pytest.approx(known.step_error / 1_000**0.5)


def test_costs_are_those_of_one_measurement_and_change_no_answer(tmp_path):
    table, old, measured = tmp_path / "answers.csv.gz", tmp_path / "old.jsonl", tmp_path / "costs.jsonl"
    old.write_text("\n".join(lines(answer("chain", 0, "a", 1.5), answer("chain", 1, "a", 2.5))))
    new = {**answer("chain", 1, "a", 7.0), "cpu_seconds": 5.0}
    measured.write_text("\n".join(lines(new, {**new, "seed": 2})))
    gather.main(["ranking", str(table), "--lines", str(old)])
    gather.main(["ranking", str(table), "--costs", str(measured)])
    found = pd.read_csv(table)
    assert list(found["seed"]) == [0, 1, 2]
    # The second log's answer stays and has its cost; the first's, of another measurement, is forgotten; the third is new.
    assert list(found["value"]) == [1.5, 2.5, 7.0]
    assert np.array_equal(found["cpu_seconds"], [np.nan, 5.0, 5.0], equal_nan=True)
