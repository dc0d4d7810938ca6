"""Logs that are whole populations: every (s, a, s') with its probability for a weight, and the truth beside them."""

from dataclasses import dataclass

import numpy as np

import gradientdice as gd


@dataclass
class Problem:
    transition: np.ndarray  # (S, A, S)
    reward: np.ndarray  # (S, A)
    starts: np.ndarray  # initial states, each as often as it is likely
    target: np.ndarray  # (S, A)
    data_dist: np.ndarray  # (S, A)
    ending: np.ndarray  # (S, A) the probability that the episode ends there

    @property
    def policy(self):
        return gd.TabularPolicy(self.target)

    def truth(self, discount):
        return self.chain(discount).value(self.target_at(discount), discount)

    def target_at(self, discount):
        return self.target if discount == 1 else np.vstack([self.target, self.target[:1]])

    def chain(self, discount):
        """The MDP with ends made explicit: restarts at discount 1, a last state that absorbs below it."""
        states, actions, _ = self.transition.shape
        initial = np.bincount(self.starts, minlength=states) / len(self.starts)
        going_on = (1 - self.ending)[:, :, None] * self.transition
        if discount == 1:
            return gd.mdp.TabularMDP(going_on + self.ending[:, :, None] * initial, self.reward, initial)
        transition = np.zeros((states + 1, actions, states + 1))
        transition[:-1, :, :-1], transition[:-1, :, -1], transition[-1, :, -1] = going_on, self.ending, 1
        reward = np.vstack([self.reward, np.zeros((1, actions))])
        return gd.mdp.TabularMDP(transition, reward, np.append(initial, 0))

    def log(self):
        states, actions, _ = self.transition.shape
        s, a, t = (index.ravel() for index in np.indices(self.transition.shape))
        weights = (self.data_dist * (1 - self.ending))[:, :, None] * self.transition
        if not self.ending.any():
            return gd.Transitions(s, a, self.reward[s, a], t, self.starts, weights=weights.ravel())
        es, ea = (index.ravel() for index in np.indices(self.reward.shape))
        return gd.Transitions(
            np.append(s, es),
            np.append(a, ea),
            np.append(self.reward[s, a], self.reward[es, ea]),
            np.append(t, np.full(len(es), states - 1)),
            self.starts,
            terminated=np.append(np.zeros(len(s), bool), np.ones(len(es), bool)),
            weights=np.append(weights.ravel(), (self.data_dist * self.ending).ravel()),
        )

    def sample(self, n, rng, weights=None):
        states, actions, _ = self.transition.shape
        pair = rng.choice(states * actions, size=n, p=self.data_dist.ravel())
        s, a = np.divmod(pair, actions)
        following = (rng.random(n)[:, None] > np.cumsum(self.transition[s, a], axis=1)).sum(axis=1)
        ended = rng.random(n) < self.ending[s, a]
        return gd.Transitions(
            s,
            a,
            self.reward[s, a],
            np.minimum(following, states - 1),
            rng.choice(self.starts, size=n),
            terminated=ended if self.ending.any() else None,
            weights=weights,
        )


def problem(seed, ending=False, states=4, actions=2):
    rng = np.random.default_rng(seed)
    return Problem(
        rng.dirichlet(np.ones(states), size=(states, actions)),
        rng.normal(size=(states, actions)),
        rng.integers(0, states, size=7),
        rng.dirichlet(np.ones(actions), size=states),
        rng.dirichlet(np.full(states * actions, 3.0)).reshape(states, actions),
        rng.uniform(0.05, 0.4, size=(states, actions)) if ending else np.zeros((states, actions)),
    )


def boyan(variant):
    """Boyan's Chain; its last state in the episodic variant is an absorbing one of its own."""
    mdp = gd.mdp.boyan_chain(variant)
    return Problem(
        mdp.transition,
        mdp.reward,
        np.arange(13),
        np.tile([0.1, 0.9], (13, 1)),
        np.full((13, 2), 1 / 26),
        np.zeros((13, 2)),
    )
