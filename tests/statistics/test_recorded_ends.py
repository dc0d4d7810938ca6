"""A log that does not say how its episodes end, or loses what they came to, is not trusted."""

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.statistics.checks import Verdict
from gradientdice.statistics.log_tests import dropped_rows_check, unrecorded_ends, unrecorded_ends_check
from problems import known

UNRECORDED, DROPPED = "ends that are not recorded", "rewards of rows that were dropped"


def verdicts(data: gd.Transitions) -> dict[str, Verdict]:
    found = unrecorded_ends_check(data), dropped_rows_check(data)
    return {check.name: check.verdict for check in found if check is not None}


def chain(seed: int, episodes: int = 300, limit: int = 1_000, end: float = 0.08, paid_at_end: float = 0.0) -> dict:
    """Rows of a chain of six states whose episodes end with a chance at each step, or at a limit."""
    rng, rows = np.random.default_rng(seed), []
    for episode in range(episodes):
        state = int(rng.integers(0, 6))
        for step in range(limit):
            action = int(rng.integers(0, 2))
            ended = rng.random() < end
            reward = 0.1 * state * action + 0.3 * rng.normal() + (paid_at_end if ended else 0.0)
            rows.append((state, action, reward, ended, step == limit - 1 and not ended, episode))
            if ended:
                break
            state = int((state + rng.integers(0, 3)) % 6)
    columns = (np.array(column) for column in zip(*rows, strict=True))
    return dict(zip(("state", "action", "reward", "terminated", "truncated", "episode"), columns, strict=True))


def without(columns: dict, *names: str) -> dict:
    return {name: array for name, array in columns.items() if name not in names}


def with_next(columns: dict) -> dict:
    return {**columns, "next_state": np.append(columns["state"][1:], 0)}


class TestEnds:
    def test_recorded_ends_are_fine(self):
        for limit in (1_000, 10):
            data = gd.load(with_next(chain(0, limit=limit)))
            assert unrecorded_ends(data) == 0 and verdicts(data)[UNRECORDED] is Verdict.TRUST

    @pytest.mark.parametrize("make", [with_next, dict])
    def test_no_column_of_ends_and_many_lengths(self, make):
        data = gd.load(make(without(chain(1), "terminated", "truncated")))
        assert unrecorded_ends(data) == pytest.approx(1, abs=0.05)
        estimate = gd.evaluate(data, gd.TabularPolicy([[0.5, 0.5]] * 6), discount=0.9)
        assert estimate.verdict is Verdict.DO_NOT_TRUST
        assert any("episode_ends='terminated'" in reason for reason in estimate.reasons)

    def test_only_some_ends_are_marked(self):
        columns = with_next(chain(2))
        dead = columns["terminated"] & (columns["episode"] % 4 == 0)
        data = gd.load({**without(columns, "truncated"), "terminated": dead})
        assert known(unrecorded_ends(data)) > 0.6 and verdicts(data)[UNRECORDED] is Verdict.DO_NOT_TRUST
        # Said that the others were cut, they are.
        cut = gd.load({**without(columns, "truncated"), "terminated": dead}, episode_ends="truncated")
        assert unrecorded_ends(cut) == 0
        ended = gd.load({**without(columns, "truncated"), "terminated": dead}, episode_ends="terminated")
        np.testing.assert_array_equal(known(ended.terminated), columns["terminated"])

    def test_a_limit_that_episodes_share_needs_no_column(self):
        columns = with_next(chain(3, limit=10))
        assert unrecorded_ends(gd.load(without(columns, "truncated"))) == 0
        assert unrecorded_ends(gd.load(without(chain(4, limit=10, end=0.0), "truncated", "terminated"))) == 0

    def test_few_lengths_are_enough(self):
        columns = with_next(chain(9, episodes=600, limit=2, end=0.4))
        assert known(unrecorded_ends(gd.load(without(columns, "terminated", "truncated")))) > 0.3
        assert unrecorded_ends(gd.load(columns)) == 0

    def test_rows_after_an_end_are_an_alarm_where_they_are_not_refused(self, tmp_path):
        data = gd.load(with_next(chain(12)))
        early = np.array(known(data.terminated))
        early[::15] = True
        fields = {name: getattr(data, name) for name in ("states", "actions", "rewards", "next_states", "episodes")}
        wrong = gd.Transitions(**fields, terminated=early)
        wrong.save(tmp_path / "log.parquet")
        for log in (wrong, gd.load(tmp_path / "log.parquet"), gd.scan(tmp_path / "log.parquet")):
            estimate = gd.evaluate(log, gd.TabularPolicy([[0.5, 0.5]] * 6), discount=0.9)
            found = {check.name: check.verdict for check in estimate.checks}
            assert found["rows after the end of their episode"] is Verdict.DO_NOT_TRUST
        fine = gd.evaluate(data, gd.TabularPolicy([[0.5, 0.5]] * 6), discount=0.9)
        assert {check.name: check.value for check in fine.checks}["rows after the end of their episode"] == 0

    def test_the_last_episodes_of_a_recording_may_stop_anywhere(self):
        columns = with_next(chain(5))
        stops = columns["episode"] >= 297
        data = gd.load({**columns, "terminated": columns["terminated"] & ~stops})
        assert verdicts(data)[UNRECORDED] is Verdict.TRUST

    def test_last_rows_that_count_nothing_still_end_their_episode(self):
        columns = with_next(chain(8))
        weights = np.random.default_rng(0).integers(0, 3, len(columns["state"])).astype(float)
        assert unrecorded_ends(gd.load({**columns, "weights": weights})) == 0

    def test_one_step_does_not_depend_on_ends(self):
        data = gd.load(with_next(without(chain(6), "terminated", "truncated")))
        estimate = gd.evaluate(data, gd.TabularPolicy([[0.5, 0.5]] * 6), discount=0.0)
        assert UNRECORDED not in [check.name for check in estimate.checks]

    def test_a_scanned_log_is_asked_too(self, tmp_path, monkeypatch):
        names = {"state": "states", "next_state": "next_states", "action": "actions", "reward": "rewards"}
        names |= {"episode": "episodes", "terminated": "terminated", "truncated": "truncated"}
        monkeypatch.setattr("gradientdice.log.scanning.log.SAMPLE_ROWS", 600)
        monkeypatch.setattr("gradientdice.log.scanning.opening.PART_ROWS", 1)
        import pyarrow as pa
        import pyarrow.parquet as pq

        for drop, expected in (((), Verdict.TRUST), (("terminated", "truncated"), Verdict.DO_NOT_TRUST)):
            columns = with_next(without(chain(7), *drop))
            table = pa.table({names[name]: array for name, array in columns.items()})
            pq.write_table(table, tmp_path / "log.parquet", row_group_size=100)
            estimate = gd.evaluate(gd.scan(tmp_path / "log.parquet"), gd.TabularPolicy([[0.5, 0.5]] * 6), discount=0.9)
            assert {check.name: check.verdict for check in estimate.checks}[UNRECORDED] is expected


class TestDroppedRows:
    def test_an_outcome_in_last_rows_is_not_lost_in_silence(self):
        columns = without(chain(10, paid_at_end=1.0), "terminated", "truncated")
        data = gd.load(columns)
        assert verdicts(data)[DROPPED] is Verdict.DO_NOT_TRUST
        assert known(data.dropped_rows).count == 300 and known(data.dropped_rows).mean > 1
        kept = gd.load(columns, episode_ends="terminated")
        assert kept.dropped_rows is None and DROPPED not in verdicts(kept)

    def test_a_rare_outcome_is_seen(self):
        columns = without(chain(11), "terminated", "truncated")
        last = np.append(columns["episode"][1:] != columns["episode"][:-1], True)
        deaths = last & (columns["episode"] % 12 == 0)
        data = gd.load({**columns, "reward": np.where(deaths, -1.0, 0.0)})
        assert verdicts(data)[DROPPED] is Verdict.DO_NOT_TRUST

    def test_wins_and_losses_that_average_to_nothing(self):
        columns = without(chain(13, limit=6, end=0.0), "terminated", "truncated")
        last = np.append(columns["episode"][1:] != columns["episode"][:-1], True)
        data = gd.load({**columns, "reward": np.where(last, np.where(columns["action"] == 1, 1.0, -1.0), 0.0)})
        assert verdicts(data)[DROPPED] is Verdict.DO_NOT_TRUST

    @pytest.mark.parametrize("seed", range(8))
    def test_time_limits_lose_nothing(self, seed):
        limited = without(chain(20 + seed, limit=12, end=0.0), "terminated")
        assert verdicts(gd.load(limited))[DROPPED] is Verdict.TRUST
        # Rewards that depend on the time in the episode, which is part of the state; and that come and go.
        step = np.tile(np.arange(12), 300)
        for state, rewards in ((step, step * 0.3), (step % 4, step * 0.3), (step % 4, (step % 2) * 1.0)):
            noise = np.random.default_rng(seed).normal(size=len(step))
            columns = {**limited, "state": state, "reward": rewards + 0.1 * noise}
            assert verdicts(gd.load(columns))[DROPPED] is Verdict.TRUST

    @pytest.mark.parametrize("seed", range(4))
    def test_drifting_continuous_states_lose_nothing(self, seed):
        rng, episodes, length = np.random.default_rng(seed), 60, 40
        x = np.cumsum(0.3 + 0.1 * rng.normal(size=(episodes, length)), axis=1)
        action = rng.integers(0, 2, (episodes, length))
        columns = {
            "obs": x.reshape(-1, 1),
            "action": action.ravel(),
            "reward": (np.sin(x / 3) + 0.2 * action).ravel(),
            "episode": np.repeat(np.arange(episodes), length),
        }
        assert verdicts(gd.load(columns))[DROPPED] is Verdict.TRUST
        won = np.tile(np.arange(length) == length - 1, episodes)
        columns["reward"] = columns["reward"] + 2.0 * won
        assert verdicts(gd.load(columns))[DROPPED] is Verdict.DO_NOT_TRUST
