"""PyTorch, Flax and scikit-learn: the same numbers as the framework's own."""

import numpy as np
import pytest

import gradientdice as gd

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("ignore")]
STATES = np.random.default_rng(0).normal(size=(100, 3))


class TestTorch:
    @pytest.fixture(autouse=True)
    def library(self):
        self.torch = pytest.importorskip("torch")
        self.torch.manual_seed(0)

    def network(self, out):
        nn = self.torch.nn
        return nn.Sequential(nn.Linear(3, 16), nn.Dropout(0.5), nn.Tanh(), nn.Linear(16, out))

    def expected(self, network):
        network.eval()
        with self.torch.no_grad():
            found = network(self.torch.as_tensor(STATES, dtype=self.torch.float32))
        network.train()
        return found

    def test_logits_in_evaluation_mode(self):
        network = self.network(4)
        found = gd.policy(network, num_actions=4, outputs="logits").probabilities_at(STATES)
        own = self.torch.log_softmax(self.expected(network), dim=1).numpy()
        np.testing.assert_allclose(np.log(found), own, rtol=5e-7, atol=5e-7)
        assert network.training, "it is left as it was"
        best = gd.policy(network, num_actions=4, outputs="logits", deterministic=True).probabilities_at(STATES)
        np.testing.assert_array_equal(best.argmax(axis=1), own.argmax(axis=1))

    def test_double_precision(self):
        network = self.network(1).double().eval()
        found = gd.policy(network, deterministic=True).sample(STATES, np.random.default_rng(0))
        np.testing.assert_array_equal(found, network(self.torch.as_tensor(STATES)).detach().numpy())

    def test_distributions(self):
        distributions, network = self.torch.distributions, self.network(2)

        class Gaussian(self.torch.nn.Module):
            def __init__(self, torch):
                super().__init__()
                self.torch, self.network = torch, network

            def forward(self, states):
                mean, log_std = self.network(states).split(1, dim=1)
                normal = distributions.Independent(distributions.Normal(mean, log_std.exp()), 1)
                return distributions.TransformedDistribution(normal, distributions.TanhTransform())

        class Choice(Gaussian):
            def forward(self, states):
                return distributions.Categorical(logits=self.network(states))

        gaussian = Gaussian(self.torch)
        found = gd.policy(gaussian).sample(STATES, np.random.default_rng(4))
        gaussian.eval()
        self.torch.manual_seed(int(np.random.default_rng(4).integers(2**63 - 1)))
        with self.torch.no_grad():
            expected = gaussian(self.torch.as_tensor(STATES, dtype=self.torch.float32)).sample()
        np.testing.assert_array_equal(found, expected)
        best = gd.policy(gaussian, deterministic=True).sample(STATES, np.random.default_rng(4))
        np.testing.assert_array_equal(best, self.torch.tanh(self.expected(network)[:, :1]).numpy())
        choice = gd.policy(Choice(self.torch), num_actions=2).probabilities_at(STATES)
        np.testing.assert_allclose(choice, self.torch.softmax(self.expected(network), 1).numpy(), rtol=5e-7)
        with pytest.raises(gd.InputError, match="say how many there are"):
            gd.policy(Choice(self.torch)).sample(STATES, np.random.default_rng(0))

    def test_one_distribution_for_every_state(self):
        always = self.torch.distributions.Categorical(probs=self.torch.tensor([0.25, 0.75]))
        np.testing.assert_allclose(
            gd.policy(always).probabilities_at(STATES), np.tile([0.25, 0.75], (100, 1)), rtol=1e-7
        )
        normal = self.torch.distributions.Independent(
            self.torch.distributions.Normal(self.torch.zeros(2), self.torch.ones(2)), 1
        )
        assert gd.policy(normal).sample(STATES, np.random.default_rng(0)).shape == (100, 2)

    def test_what_must_be_said(self):
        with pytest.raises(gd.InputError, match='outputs="logits"'):
            gd.policy(self.network(4), num_actions=4).probabilities_at(STATES)
        with pytest.raises(gd.InputError, match="no policy: give a module"):
            gd.policy(self.torch.zeros(3))


class TestFlax:
    @pytest.fixture(autouse=True)
    def library(self):
        pytest.importorskip("flax")

    def test_linen_in_all_its_forms(self):
        import flax.linen as nn
        import jax
        import optax
        from flax.training.train_state import TrainState

        network = nn.Dense(3)
        variables = network.init(jax.random.key(0), STATES)
        state = TrainState.create(apply_fn=network.apply, params=variables["params"], tx=optax.sgd(0.1))
        expected = np.asarray(jax.nn.softmax(network.apply(variables, STATES.astype(np.float32)), axis=1))
        said = {"num_actions": 3, "outputs": "logits"}
        for policy in (
            gd.policy(network, params=variables, **said),
            gd.policy(network, params=variables["params"], **said),
            gd.policy(network.bind(variables), **said),
            gd.policy(state, **said),
        ):
            np.testing.assert_array_equal(policy.probabilities_at(STATES), expected)
        with pytest.raises(gd.InputError, match="give params="):
            gd.policy(network, **said)

    def test_nnx(self):
        from flax import nnx

        network = nnx.Linear(3, 2, rngs=nnx.Rngs(0))
        found = gd.policy(network).sample(STATES, np.random.default_rng(0))
        np.testing.assert_array_equal(found, network(STATES.astype(np.float32)))


class TestSklearn:
    @pytest.fixture(autouse=True)
    def library(self):
        pytest.importorskip("sklearn")

    def test_a_pipeline_over_words(self):
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        words = np.array(["hold", "treat", "wait"])[np.random.default_rng(1).integers(3, size=100)]
        model = make_pipeline(StandardScaler(), LogisticRegression()).fit(STATES, words)
        policy = gd.policy(model)
        np.testing.assert_array_equal(policy.probabilities_at(STATES), model.predict_proba(STATES))
        assert policy.action_names == ("hold", "treat", "wait")
        best = gd.policy(model, deterministic=True).probabilities_at(STATES)
        np.testing.assert_array_equal(np.array(policy.action_names)[best.argmax(axis=1)], model.predict(STATES))

    def test_the_log_knows_fewer_words(self):
        from sklearn.tree import DecisionTreeClassifier

        words = np.where(STATES[:, 0] > 1.5, "alarm", np.where(STATES[:, 1] > 0, "treat", "hold"))
        model = DecisionTreeClassifier(random_state=0).fit(STATES, words)
        quiet = STATES[words != "alarm"]
        actions = np.random.default_rng(0).integers(2, size=len(quiet) - 1)
        log = {
            "obs": quiet[:-1],
            "next_obs": quiet[1:],
            "action": np.array(["hold", "treat"])[actions],
            "reward": quiet[:-1, 0],
        }
        by_hand = gd.Transitions(quiet[:-1], actions + 1, quiet[:-1, 0], quiet[1:])
        data = gd.load(log)
        assert data.action_names == ("hold", "treat"), "the policy's first word is alarm"
        estimate = gd.evaluate(data, gd.policy(model), discount=1.0, effort="quick")
        expected = gd.evaluate(by_hand, gd.DiscretePolicy(model.predict_proba, 3), discount=1.0, effort="quick")
        assert estimate.value == expected.value

    def test_numbers_that_skip_one(self):
        from sklearn.tree import DecisionTreeClassifier

        classes = np.where(STATES[:, 0] > 0, 0, 2)
        policy = gd.policy(DecisionTreeClassifier().fit(STATES, classes))
        np.testing.assert_array_equal(policy.probabilities_at(STATES), np.eye(3)[classes])

    def test_a_regressor_is_a_deterministic_policy(self):
        from sklearn.linear_model import LinearRegression

        model = LinearRegression().fit(STATES, STATES[:, :2])
        np.testing.assert_array_equal(gd.policy(model).sample(STATES, np.random.default_rng(0)), model.predict(STATES))

    def test_one_that_is_not_fitted(self):
        from sklearn.linear_model import LogisticRegression

        with pytest.raises(gd.InputError, match="has not been fitted"):
            gd.policy(LogisticRegression())
