"""The command line: the same answers as the library, and refusals in words."""

import json
import subprocess
import sys
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from typer.testing import CliRunner

import gradientdice as gd
from gradientdice import demo
from gradientdice.cli.main import app, main
from gradientdice.default import search
from problems import linear_system


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    demo.write(folder)
    return folder


@pytest.fixture(scope="module")
def estimate(files):
    return gd.evaluate(gd.load(files / demo.LOG), gd.TabularPolicy(demo.TARGET), discount=demo.DISCOUNT)


class Done(NamedTuple):
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def command(monkeypatch, capsys):
    """Runs a command in this process."""

    def run(*arguments: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["gradientdice", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        code = end.value.code or 0
        assert isinstance(code, int)
        return Done(code, *capsys.readouterr())

    return run


def test_the_module_is_the_command(files, estimate):
    """In a process of its own, as a user runs it."""
    arguments = ("evaluate", files / demo.LOG, "--policy", files / demo.POLICY, "--discount", demo.DISCOUNT)
    line = [sys.executable, "-m", "gradientdice", *map(str, arguments)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and f"{estimate.value:.6g}" in done.stdout, done.stderr
    refused = subprocess.run([*line, "--discount", "2"], capture_output=True, text=True, timeout=300)
    assert refused.returncode == 2 and refused.stderr.startswith("gradientdice: discount must lie in"), refused.stderr


class TestCommandLine:
    def test_evaluate(self, command, files, estimate, tmp_path):
        arguments = ("evaluate", files / demo.LOG, "--policy", files / demo.POLICY, "--discount", demo.DISCOUNT)
        done = command(*arguments, "--report", tmp_path / "report.html")
        assert done.returncode == 0, done.stderr
        assert f"{estimate.value:.6g}" in done.stdout and (tmp_path / "report.html").exists()
        again = command(*arguments, "--report", tmp_path / "report.html")
        assert again.returncode == 2 and "--force" in again.stderr
        plain = json.loads(command(*arguments, "--json", "--interval", "bootstrap").stdout)
        assert plain["value"] == pytest.approx(estimate.value)

    def test_policies_by_name_and_by_columns(self, command, monkeypatch, files, estimate, tmp_path):
        (tmp_path / "mine.py").write_text(
            "import gradientdice as gd, gradientdice.demo as d\npolicy = gd.TabularPolicy(d.TARGET)\nnumber = 3\n"
        )
        monkeypatch.syspath_prepend(tmp_path)
        base = ("evaluate", files / demo.LOG, "--discount", demo.DISCOUNT, "--json", "--policy")
        assert json.loads(command(*base, "mine:policy").stdout)["value"] == pytest.approx(estimate.value)
        for wrong, words in (
            ("mine:nothing", "has no 'nothing'"),
            ("nowhere:x", "no module"),
            ("mine:number", "is no policy. No policy can be made of int"),
            ("what", "module:name"),
        ):
            refused = command(*base, wrong)
            assert refused.returncode == 2 and words in refused.stderr, refused.stderr
        assert "none of the policy's columns" in command(*base, "columns").stderr
        data = gd.load(files / demo.LOG)
        extra = {name: getattr(data, name) for name in ("states", "actions", "rewards", "next_states", "episodes")}
        np.savez(
            tmp_path / "log.npz",
            **extra,
            next_probabilities=demo.TARGET[data.next_states],
            initial_probabilities=demo.TARGET[data.start_states],
        )
        done = command("evaluate", tmp_path / "log.npz", "--discount", demo.DISCOUNT, "--json", "--policy", "columns")
        assert json.loads(done.stdout)["value"] == pytest.approx(estimate.value), done.stderr

    def test_a_log_of_bandits(self, command, tmp_path):
        (tmp_path / "log.csv").write_text("states,actions,rewards\n" + "0,0,1\n0,1,3\n" * 20)
        (tmp_path / "policy.csv").write_text("0.5,0.5\n")
        base = ("evaluate", tmp_path / "log.csv", "--policy", tmp_path / "policy.csv", "--discount", "0", "--json")
        refused = command(*base)
        assert refused.returncode == 2 and "--column next_states=" in refused.stderr
        assert json.loads(command(*base, "--column", "next_states=").stdout)["value"] == pytest.approx(2.0)

    def test_other_column_names(self, command, files, estimate, tmp_path):
        import pandas as pd

        frame = pd.read_parquet(files / demo.LOG).rename(columns={"states": "obs", "rewards": "profit"})
        frame.to_csv(tmp_path / "log.csv", index=False)
        base = (
            "evaluate",
            tmp_path / "log.csv",
            "--policy",
            files / demo.POLICY,
            "--discount",
            demo.DISCOUNT,
            "--json",
        )
        done = command(*base, "--column", "states=obs", "--column", "rewards=profit")
        assert json.loads(done.stdout)["value"] == pytest.approx(estimate.value), done.stderr
        guessed = command(*base, "--column", "rewards=profit")
        assert json.loads(guessed.stdout)["value"] == pytest.approx(estimate.value), guessed.stderr
        assert "log.csv: columns were recognised by their names: states = obs." in guessed.stderr
        for wrong, words in (
            (("--column", "states"), "field=name"),
            (("--column", "sates=obs"), "no field"),
            ((), "lacks the field 'rewards'"),
            (("--column", "states=observations"), "no column 'observations'"),
        ):
            refused = command(*base, *wrong)
            assert refused.returncode == 2 and words in refused.stderr, refused.stderr

    def test_strict_and_compare(self, command, files, tmp_path):
        log = gd.Transitions(
            **{
                name: getattr(gd.load(files / demo.LOG), name)[:60]
                for name in ("states", "actions", "rewards", "next_states")
            }
        )
        log.save(tmp_path / "short.npz")
        policy = np.zeros((20, 3))
        policy[:, 0] = 1
        np.savetxt(tmp_path / "run.csv", policy, delimiter=",")
        base = (tmp_path / "short.npz", "--policy", tmp_path / "run.csv", "--discount", 1.0)
        compared = command("compare", *base)
        assert compared.returncode == 0, compared.stderr
        # Every estimator, the χ² choice of DualDICE, and the cross-fitted answer.
        heads = [line for line in compared.stdout.splitlines() if not line.startswith(" ")]
        assert len(heads) == len(gd.ESTIMATORS) + 2
        strict = command("evaluate", *base, "--strict")
        assert strict.returncode == 4 and "do not trust" in strict.stdout


def test_the_report_of_the_command_line_searches_once(tmp_path, monkeypatch):
    data, _ = linear_system(0, rows=400)
    discrete = replace(data, actions=(data.actions[:, 0] > 0).astype(int))
    discrete.save(tmp_path / "log.npz")
    (tmp_path / "own.py").write_text(
        "import numpy as np, gradientdice as gd\n"
        "policy = gd.DiscretePolicy(lambda states: np.full((len(states), 2), 0.5), 2)\n"
    )
    searches, original = [], search.search_functions
    monkeypatch.setattr(search, "search_functions", lambda *given: searches.append(given[0]) or original(*given))
    monkeypatch.syspath_prepend(tmp_path)
    arguments = [
        "evaluate",
        str(tmp_path / "log.npz"),
        "--policy",
        "own:policy",
        "--discount",
        "0.9",
        "--effort",
        "quick",
    ]
    result = CliRunner().invoke(app, [*arguments, "--report", str(tmp_path / "report.html")])
    assert result.exit_code == 0, result.output
    # The behaviour's own value, at the same discount, is a search of its own, without actions.
    assert [problem.policy.num_actions for problem in searches].count(2) == 1
    assert "Estimators compared" in (tmp_path / "report.html").read_text()


def test_a_policy_in_columns_goes_with_rows_that_are_sorted(command, tmp_path):
    mdp = gd.mdp.boyan_chain("continuing")
    data = mdp.rollout(np.full((13, 2), 0.5), 100, 12, np.random.default_rng(0))
    target = np.random.default_rng(1).dirichlet(np.ones(2), size=13)
    columns = {name: getattr(data, name) for name in ("states", "actions", "rewards", "next_states", "episodes")}
    probabilities, step = target[data.next_states], np.tile(np.arange(12), 100)
    order = np.random.default_rng(2).permutation(len(data))
    np.savez(
        tmp_path / "log.npz",
        **{name: array[order] for name, array in columns.items()},
        day=step[order],
        next_probabilities=probabilities[order],
        initial_probabilities=target[data.start_states],
    )
    arguments = ("evaluate", tmp_path / "log.npz", "--policy", "columns", "--discount", 1, "--json")
    found = json.loads(command(*arguments, "--column", "steps=day").stdout)
    expected = gd.evaluate(data, gd.TabularPolicy(target), discount=1.0)
    assert found["value"] == pytest.approx(expected.value, rel=1e-9)
    loaded = gd.load(tmp_path / "log.npz", columns={"steps": "day"})
    assert loaded.source_rows is not None
    np.testing.assert_array_equal(loaded.rewards, data.rewards[order][loaded.source_rows])


def test_ends_and_files_can_be_said(command, tmp_path):
    rows = "state,action,reward,episode\n" + "\n".join(f"{k % 3},{k % 2},{k % 5},{k // 4}" for k in range(400))
    (tmp_path / "log.csv").write_text(rows)
    (tmp_path / "policy.csv").write_text("0.5,0.5\n" * 3)
    line = ("evaluate", tmp_path / "log.csv", "--policy", tmp_path / "policy.csv", "--discount", 0.5, "--json")
    ended, cut = (json.loads(command(*line, "--episode-ends", how).stdout) for how in ("terminated", "truncated"))
    assert (ended["num_rows"], cut["num_rows"]) == (400, 300)
    refused = command(*line, "--episodes", "per file")
    assert refused.returncode == 2 and "several Parquet files" in refused.stderr
    assert command(*line, "--episode-ends", "done").returncode == 2
