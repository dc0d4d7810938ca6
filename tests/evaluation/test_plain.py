"""Estimates as plain data: a schema that holds, floats for trackers, a row for tables."""

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.evaluation.baseline import BehaviorSide

MDP, TARGET = gd.mdp.boyan_chain("continuing"), gd.TabularPolicy(np.tile([0.1, 0.9], (13, 1)))
DATA = MDP.sample(1000, np.full((13, 2), 1 / 26), np.random.default_rng(0))
ROLLED = MDP.rollout(np.full((13, 2), 0.5), 60, 20, np.random.default_rng(0))
ESTIMATES = {
    "table": gd.evaluate(DATA, TARGET, discount=0.9),
    "average": gd.evaluate(DATA, TARGET, discount=1.0),
    "episodes": gd.evaluate(ROLLED, TARGET, discount=0.9),
    "trajectories": gd.evaluate(ROLLED, TARGET, gd.WDR(0.9)),
}
KINDS: dict[str, Any] = {"object": dict, "array": list, "string": str, "null": type(None), "integer": int}


def assert_valid(value: Any, schema: dict[str, Any], whole: dict[str, Any], where: str = "estimate") -> None:
    """The part of JSON schema that ours uses."""
    if "$ref" in schema:
        return assert_valid(value, whole["$defs"][schema["$ref"].rpartition("/")[2]], whole, where)
    if "anyOf" in schema:
        for option in schema["anyOf"]:
            try:
                return assert_valid(value, option, whole, where)
            except AssertionError:
                continue
        raise AssertionError(f"{where}: {value!r}")
    assert "const" not in schema or value == schema["const"], where
    assert "enum" not in schema or value in schema["enum"], where
    kinds = schema.get("type", [])
    for_any = [kinds] if isinstance(kinds, str) else kinds
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    assert not for_any or any(number if kind == "number" else isinstance(value, KINDS[kind]) for kind in for_any), where
    if number:
        assert schema.get("minimum", -math.inf) <= value <= schema.get("maximum", math.inf), where
    if isinstance(value, dict):
        assert not set(schema.get("required", ())) - set(value), where
        for name, part in schema.get("properties", {}).items():
            if name in value:
                assert_valid(value[name], part, whole, f"{where}.{name}")
    if isinstance(value, list):
        assert schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", math.inf), where
        for item in value:
            assert_valid(item, schema.get("items", {}), whole, f"{where}[]")
    return None


@pytest.mark.parametrize("name", ESTIMATES)
def test_to_dict_follows_the_schema(name):
    schema, estimate = gd.Estimate.schema(), ESTIMATES[name]
    plain = estimate.to_dict()
    assert json.loads(estimate.to_json()) == plain, "JSON and back is the same"
    assert_valid(plain, schema, schema)
    assert set(schema["required"]) <= set(plain) and plain["schema_version"] == 1
    assert set(plain) <= set(schema["properties"]), "every field is described"


def test_a_behaviour_without_an_interval():
    """As after a single episode: it has a value, and nothing says how large its error is."""
    behavior = ESTIMATES["episodes"].behavior_seen
    assert behavior is not None
    without = replace(behavior, interval=None)
    estimate = replace(
        ESTIMATES["episodes"], behavior_seen=without, behavior_side=BehaviorSide.known(None), sources=None
    )
    assert estimate.behavior is without and estimate.to_dict()["behavior_value"] == behavior.value
    assert estimate.to_dict()["behavior_interval"] is None
    assert_valid(estimate.to_dict(), gd.Estimate.schema(), gd.Estimate.schema())


def test_the_check_itself_finds_what_is_wrong():
    schema = gd.Estimate.schema()
    for change in ({"value": "3"}, {"verdict": "maybe"}, {"interval": [1.0]}, {"confidence": None}):
        with pytest.raises(AssertionError):
            assert_valid({**ESTIMATES["table"].to_dict(), **change}, schema, schema)


@pytest.mark.parametrize("name", ESTIMATES)
def test_metrics_are_plain_finite_floats(name):
    estimate = ESTIMATES[name]
    found = estimate.metrics()
    assert all(type(value) is float and math.isfinite(value) for value in found.values())
    assert found["value"] == estimate.value and found["verdict"] in (0.0, 1.0, 2.0)
    if estimate.interval is not None:
        assert (found["low"], found["high"]) == estimate.interval
    assert ("total" in found) == (estimate.discount < 1)


def test_a_frame_has_one_row():
    frame = ESTIMATES["table"].to_frame()
    assert len(frame) == 1
    row = frame.iloc[0]
    assert row["value"] == ESTIMATES["table"].value and row["verdict"] == str(ESTIMATES["table"].verdict)
    assert row["num_rows"] == 1000 and row["discount"] == 0.9
