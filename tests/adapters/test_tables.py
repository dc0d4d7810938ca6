"""polars, Hugging Face datasets and D4RL's HDF5 layout, with the real libraries."""

import numpy as np
import pytest

import gradientdice as gd
from problems import known
from walks import assert_same, by_hand, walk

pytestmark = pytest.mark.adapters


def test_polars():
    polars = pytest.importorskip("polars")
    log = walk()
    lists = polars.DataFrame({name: list(array) if array.ndim == 2 else array for name, array in log.items()})
    arrays = polars.DataFrame(log)  # vectors of a fixed length
    numbers = {f"observations_{k}": log["observations"][:, k] for k in range(2)}
    numbers |= {f"next_observations_{k}": log["next_observations"][:, k] for k in range(2)}
    flat = polars.DataFrame({**{name: array for name, array in log.items() if array.ndim == 1}, **numbers})
    for frame in (lists, arrays, flat):
        assert_same(gd.load(frame), by_hand(log))
    assert_same(gd.load(flat.lazy()), by_hand(log))
    words = flat.with_columns(
        polars.Series("actions", np.array(["a", "b", "c"])[log["actions"]], dtype=polars.Categorical)
    )
    assert gd.load(words).action_names == ("a", "b", "c")


def test_hugging_face_datasets():
    datasets = pytest.importorskip("datasets")
    log = walk()
    table = datasets.Dataset.from_dict({name: array.tolist() for name, array in log.items()})
    found = gd.load(table)
    np.testing.assert_array_equal(found.states.astype(np.float32), log["observations"])
    assert_same(gd.load(table.select(range(8))), by_hand({name: array[:8] for name, array in log.items()}))
    with pytest.raises(gd.InputError, match="choose one"):
        gd.load(datasets.DatasetDict({"train": table}))
    episodes = datasets.Dataset.from_dict(
        {
            name: array.reshape(12, 8, *array.shape[1:]).tolist()
            for name, array in log.items()
            if name not in ("next_observations", "episode_id")
        }
    )
    assert_same(gd.load(episodes), by_hand(log), ~log["timeouts"])


@pytest.mark.parametrize("stored", [True, False])
def test_d4rl(tmp_path, stored):
    h5py = pytest.importorskip("h5py")
    log = walk()
    with h5py.File(tmp_path / "log.hdf5", "w") as file:
        for name, array in log.items():
            if name != "episode_id" and (stored or name != "next_observations"):
                file[name] = array
        file["infos/action_log_probs"] = np.full(len(log["rewards"]), -1.5)
        file["metadata/version"] = "2"
    found = gd.load(tmp_path / "log.hdf5")
    assert_same(found, by_hand(log), slice(None) if stored else ~log["timeouts"])
    assert (known(found.behavior_log_probs) == -1.5).all()
    (tmp_path / "broken.h5").write_bytes(b"nothing of the kind")
    with pytest.raises(gd.InputError, match="not a readable HDF5 file"):
        gd.load(tmp_path / "broken.h5")
