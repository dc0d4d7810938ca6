"""From wherever a log or a policy lives to an answer in three lines, with the numbers of arrays by hand."""

import gzip
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gradientdice as gd
from walks import assert_same, by_hand, walk

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("ignore")]
WEIGHTS = np.random.default_rng(3).normal(size=(2, 3)).astype(np.float32)


def softmax(states):
    exponents = np.exp(np.asarray(states) @ WEIGHTS.astype(float))
    return exponents / exponents.sum(axis=1, keepdims=True)


def lists(log):
    return {name: list(array) if array.ndim == 2 else array for name, array in log.items()}


def flat(log):
    columns = {name: array for name, array in log.items() if array.ndim == 1}
    for name in ("observations", "next_observations"):
        columns |= {f"{name}_{k}": log[name][:, k] for k in range(2)}
    return pd.DataFrame(columns)


def parquet_folder(log, folder):
    for episode, rows in flat(log).groupby("episode_id"):
        (folder / f"episode_id={episode:02d}").mkdir()
        rows.drop(columns="episode_id").to_parquet(folder / f"episode_id={episode:02d}" / "part.parquet")
    return folder


def csv_gz(log, folder):
    flat(log).to_csv(folder / "log.csv.gz", index=False)
    return folder / "log.csv.gz"


def json_lines(log, folder):
    with gzip.open(folder / "log.jsonl.gz", "wt") as file:
        for row in range(len(log["rewards"])):
            print(json.dumps({name: array[row].tolist() for name, array in log.items()}), file=file)
    return folder / "log.jsonl.gz"


def npz(log, folder):
    np.savez(folder / "log.npz", **log)
    return folder / "log.npz"


def parquet(log, folder):
    pq.write_table(pa.table(lists(log)), folder / "log.parquet")
    return folder / "log.parquet"


def hdf5(log, folder):
    with pytest.importorskip("h5py").File(folder / "log.hdf5", "w") as file:
        for name, array in log.items():
            file[name] = array
    return folder / "log.hdf5"


SOURCES = {
    "pandas": lambda log, folder: flat(log),
    "polars": lambda log, folder: pytest.importorskip("polars").DataFrame(log),
    "Arrow": lambda log, folder: pa.table(lists(log)),
    "mapping": lambda log, folder: log,
    "datasets": lambda log, folder: pytest.importorskip("datasets").Dataset.from_dict(lists(log)),
    "Parquet": parquet,
    "partitions": parquet_folder,
    "CSV": csv_gz,
    "npz": npz,
    "HDF5": hdf5,
    "JSON lines": json_lines,
}


@pytest.mark.parametrize("source", SOURCES)
def test_logs(source, tmp_path):
    log = {name: array.astype(float) if array.ndim == 2 else array for name, array in walk().items()}
    expected = gd.evaluate(by_hand(log), gd.DiscretePolicy(softmax, 3), discount=0.9, effort="quick")
    found = SOURCES[source](log, tmp_path)

    data = gd.load(found)
    policy = gd.policy(softmax, num_actions=3)
    estimate = gd.evaluate(data, policy, discount=0.9, effort="quick")

    assert_same(data, by_hand(log))
    assert estimate.value == expected.value and estimate.interval == expected.interval


def torch_module():
    torch = pytest.importorskip("torch")
    network = torch.nn.Linear(2, 3, bias=False)
    with torch.no_grad():
        network.weight.copy_(torch.as_tensor(WEIGHTS.T))
    return network


def torch_distributions():
    torch, network = pytest.importorskip("torch"), torch_module()

    class Choice(torch.nn.Module):
        def forward(self, states):
            return torch.distributions.Categorical(logits=network(states))

    return Choice()


def flax_module():
    return pytest.importorskip("flax").linen.Dense(3, use_bias=False).bind({"params": {"kernel": WEIGHTS}})


def equinox_module():
    import equinox as eqx
    import jax

    network = eqx.nn.Linear(2, 3, use_bias=False, key=jax.random.key(0))
    return eqx.tree_at(lambda layer: layer.weight, network, WEIGHTS.T)


def classifier():
    model = pytest.importorskip("sklearn.linear_model").LogisticRegression()
    model.fit(np.eye(3, 2), [0, 1, 2])
    model.coef_, model.intercept_ = WEIGHTS.T.astype(float), np.zeros(3)
    return model


POLICIES = {
    "function": (lambda: softmax, {"num_actions": 3}),
    "PyTorch": (torch_module, {"num_actions": 3, "outputs": "logits"}),
    "distributions": (torch_distributions, {"num_actions": 3}),
    "Flax": (flax_module, {"num_actions": 3, "outputs": "logits"}),
    "Equinox": (equinox_module, {"num_actions": 3, "outputs": "logits"}),
    "scikit-learn": (classifier, {}),
}


@pytest.mark.parametrize("kind", POLICIES)
def test_policies(kind):
    make, said = POLICIES[kind]
    expected = gd.evaluate(by_hand(walk()), gd.DiscretePolicy(softmax, 3), discount=0.9, effort="quick")
    model = make()

    data = gd.load(walk())
    policy = gd.policy(model, **said)
    estimate = gd.evaluate(data, policy, discount=0.9, effort="quick")

    assert estimate.value == pytest.approx(expected.value, rel=1e-5)  # networks have floats of 32 bits


def test_tables():
    data = gd.mdp.boyan_chain("continuing").sample(500, np.full((13, 2), 1 / 26), np.random.default_rng(0))
    table = np.tile([0.1, 0.9], (13, 1))

    log = gd.load({name: getattr(data, name) for name in ("states", "actions", "rewards", "next_states")})
    policy = gd.policy(table)
    estimate = gd.evaluate(log, policy, discount=1.0)

    assert estimate.value == gd.evaluate(data, gd.TabularPolicy(table), discount=1.0).value
