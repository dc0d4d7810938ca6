"""The flow residual tells a right ratio from a wrong one."""

import numpy as np

import gradientdice as gd


def test_the_flow_residual_tells_a_right_ratio_from_a_wrong_one():
    """On a linear Gaussian problem with target = behaviour at discount 1 the ratio is 1; any slope breaks the flow."""
    from gradientdice.statistics.flow import flow_residuals

    rng = np.random.default_rng(5)
    state = np.zeros((4001, 1))
    noise = rng.normal(size=4000)
    for step in range(4000):
        state[step + 1] = 0.8 * state[step] + noise[step]
    action = rng.normal(size=(4000, 1))
    data = gd.Transitions(state[:-1], action, state[:-1, 0], state[1:])
    policy = gd.SamplingPolicy(lambda s, r: r.normal(size=(len(s), 1)))
    right, wrong = np.ones(4000), 1 + 0.5 * state[:-1, 0]
    (residual, spread), (bad, _) = flow_residuals(gd.Problem(data, policy), 1.0, [right, wrong])
    assert abs(residual) < 4 * spread
    assert bad > 20 * spread
