"""Is what a call returned an answer? Finite numbers, wherever it says that all went well."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import gradientdice as gd


def is_sound(found: Any) -> bool:
    """Whether a result has only finite numbers, as far as it is numbers."""
    if isinstance(found, gd.Estimate):
        return not found.status.ok or is_sound([found.value, *(found.interval or ())])
    if isinstance(found, gd.Solution):
        return not found.status.ok or is_sound([found.ratio_params, found.critic_params])
    if isinstance(found, gd.Transitions):
        return all(is_sound(getattr(found, name)) for name in found.__dataclass_fields__)
    if isinstance(found, pd.DataFrame):
        return is_sound(found.loc[found["note"] == "", "value"].to_numpy()) if "note" in found else True
    if isinstance(found, (list, tuple)):
        return all(is_sound(one) for one in found)
    if isinstance(found, np.ndarray) and found.dtype.kind == "f":
        return bool(np.isfinite(found).all())
    return not isinstance(found, float) or bool(np.isfinite(found))
