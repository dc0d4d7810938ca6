"""The commands rank and select: the same answers as the library, and refusals in words."""

import json
import sys

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.cli.main import main
from problems import known, random_problem

SHARES = {"low": 0.2, "high": 0.8}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("rank")
    mdp, _, _ = random_problem(3)
    mdp.rollout(np.full((5, 2), 0.5), 60, 25, np.random.default_rng(0)).save(found / "log.npz")
    for name, share in SHARES.items():
        np.save(found / f"{name}.npy", np.tile([share, 1 - share], (5, 1)))
    return found


@pytest.fixture
def command(monkeypatch, capsys, folder):
    """Runs a command on the log with both policies, in this process."""

    def run(name: str, *arguments: object, log: object = "log.npz"):
        policies = [part for own in SHARES for part in ("--policy", f"{own}={folder / own}.npy")]
        line = [name, folder / str(log), *(arguments if "--policy" in arguments else (*policies, *arguments))]
        monkeypatch.setattr(sys, "argv", ["gradientdice", *map(str, line)])
        with pytest.raises(SystemExit) as end:
            main()
        return end.value.code or 0, *capsys.readouterr()

    return run


@pytest.fixture(scope="module")
def ranking(folder):
    policies = {name: gd.TabularPolicy(np.tile([share, 1 - share], (5, 1))) for name, share in SHARES.items()}
    return gd.rank(gd.load(folder / "log.npz"), policies, 0.9)


def test_rank_prints_the_librarys_answer(command, ranking):
    assert command("rank", "--discount", 0.9) == (0, f"{ranking}\n", "")
    code, text, _ = command("rank", "--discount", 0.9, "--json")
    assert code == 0 and json.loads(text)["policies"] == ranking.to_dict()["policies"]


def test_rank_takes_a_baseline_and_several_discounts(command):
    code, text, _ = command("rank", "--discount", 0.9, "--discount", 0.5, "--baseline", "low", "--json")
    found = json.loads(text)["rankings"]
    assert code == 0 and [own["discount"] for own in found] == [0.9, 0.5]
    assert {own["baseline"] for own in found} == {"low"}


def test_the_verdict_is_printed_and_strict_sees_it(command, tmp_path):
    mdp, _, _ = random_problem(3)
    mdp.rollout(np.full((5, 2), 0.5), 4, 5, np.random.default_rng(0)).save(tmp_path / "few.npz")
    for name in ("rank", "select"):
        code, text, _ = command(name, "--discount", 0.9, "--strict", log=tmp_path / "few.npz")
        assert code == 4 and "verdict    do not trust\n  because  " in text
        code, text, _ = command(name, "--discount", 0.9, "--json", log=tmp_path / "few.npz")
        found = json.loads(text)
        assert code == 0 and found["overall_verdict"] == "do not trust" and found["reasons"][0].split(":")[0] in SHARES
    one = "--policy", tmp_path / "p.npy"
    np.save(tmp_path / "p.npy", np.tile([0.2, 0.8], (5, 1)))
    code, text, _ = command(
        "evaluate", *one, "--discount", 0.9, "--discount", 0.5, "--strict", log=tmp_path / "few.npz"
    )
    assert code == 4 and "verdict    do not trust\n  because  discount 0." in text
    code, text, _ = command("evaluate", *one, "--discount", 0.9, "--discount", 0.5, "--json", log=tmp_path / "few.npz")
    assert json.loads(text)["overall_verdict"] == "do not trust"


def test_select_prints_the_choice(command, ranking):
    code, text, _ = command("select", "--discount", 0.9, "--json")
    found = json.loads(text)
    assert code == 0 and found["choice"] in (None, *SHARES)
    assert found["ranking"]["policies"] == ranking.to_dict()["policies"]
    code, text, _ = command("select", "--discount", 0.9, "--baseline", "low")
    assert code == 0 and text.startswith(("Deploy", "Keep"))


def test_strict_says_that_a_verdict_is_bad(command, folder, ranking):
    """A policy whose action was hardly logged is not to be trusted."""
    never = np.array([[0.0, 1.0]] * 5)
    np.save(folder / "never.npy", never)
    log = gd.load(folder / "log.npz")
    rare = np.flatnonzero(known(log.actions) == 0)[: len(log)]
    gd.Transitions(
        log.states[rare], log.actions[rare], log.rewards[rare], log.next_states[rare], initial_states=[0, 1, 2] * 20
    ).save(folder / "rare.npz")
    options = ("--policy", f"never={folder}/never.npy", "--discount", 0.9, "--baseline", "never")
    assert command("rank", *options, log="rare.npz")[0] == 0
    assert command("rank", *options, "--strict", log="rare.npz")[0] == 4


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--policy", "low.npy"), "write NAME=POLICY"),
        (("--policy", "a=no_such_module:policy"), "no_such_module"),
        (("--baseline", "other"), "baseline must be one of"),
    ],
)
def test_what_cannot_be_ranked_is_refused_in_words(command, arguments, text):
    for name in ("rank", "select"):
        code, _, error = command(name, "--discount", 0.9, *arguments)
        assert code == 2 and text in error


def test_a_name_given_twice_is_refused(command, folder):
    twice = [part for _ in range(2) for part in ("--policy", f"a={folder}/low.npy")]
    code, _, error = command("rank", "--discount", 0.9, *twice)
    assert code == 2 and "two policies of the name 'a'" in error


def test_evaluate_prints_a_curve_for_several_discounts(monkeypatch, capsys, folder):
    line = ["evaluate", folder / "log.npz", "--policy", folder / "low.npy", "--discount", 0.5, "--discount", 0.9]
    for extra in ((), ("--json",), ("--report", folder / "report.html")):
        monkeypatch.setattr(sys, "argv", ["gradientdice", *map(str, (*line, *extra))])
        with pytest.raises(SystemExit) as end:
            main()
        out, error = capsys.readouterr()
        if "--report" in extra:
            assert not end.value.code and "The value over discounts" in (folder / "report.html").read_text()
        elif extra:
            assert json.loads(out)["discounts"] == [0.5, 0.9]
        else:
            assert not end.value.code and "band" in out


@pytest.mark.parametrize(("name", "words"), [("rank", "Which policy is the best?"), ("select", "should be deployed?")])
def test_a_report_is_written_and_not_replaced_by_accident(command, tmp_path, name, words):
    path = tmp_path / "report.html"
    code, _, error = command(name, "--discount", 0.9, "--report", path)
    assert code == 0 and f"Wrote {path}." in error and words in path.read_text()
    code, text, error = command(name, "--discount", 0.9, "--report", path)
    assert code == 2 and "--force" in error and not text
    assert command(name, "--discount", 0.9, "--report", path, "--force")[0] == 0


def test_a_report_of_a_ranking_is_for_one_discount(command, tmp_path):
    code, _, error = command("rank", "--discount", 0.9, "--discount", 0.5, "--report", tmp_path / "report.html")
    assert code == 2 and "one discount" in error
