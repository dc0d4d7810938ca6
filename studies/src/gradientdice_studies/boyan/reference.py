"""Final MSE(τ) of an independent trial of the same grid, for comparison with ours.

30 runs per case, learning rate (and ridge at discount 1) chosen by final error, weights from U(±1/√features).
"""

REFERENCE: dict[tuple[str, str], tuple[float, ...]] = {
    ("tabular", "GradientDICE"): (0.016, 0.018, 0.018, 0.096, 1.04, 0.046),
    ("tabular", "GenDICE"): (0.12, 0.11, 0.14, 0.19, 0.45, 0.17),
    ("tabular", "DualDICE"): (0.007, 0.025, 0.13, 1.44, 8.8, 2.4),
    ("linear", "GradientDICE"): (0.0049, 0.038, 0.200, 0.91, 4.5, 0.158),
    ("linear", "GenDICE"): (0.23, 0.25, 0.33, 0.59, 2.4, 0.45),
}
