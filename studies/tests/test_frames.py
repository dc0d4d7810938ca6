"""The typed helpers over pandas select what they say."""

import numpy as np
import pandas as pd
import pytest

from gradientdice_studies.frames import column, groups, kept, records, rows_where


@pytest.fixture
def frame():
    return pd.DataFrame({"name": ["b", "a", "b", "a"], "size": [1.0, np.nan, 2.0, np.nan], "value": [1, 2, 3, 4]})


def test_rows_where_takes_a_nan_for_a_nan(frame):
    assert column(rows_where(frame, name="a", size=np.nan), "value").tolist() == [2, 4]
    assert column(rows_where(frame, name="b", size=2), "value").tolist() == [3]
    assert rows_where(frame, name="c").empty and len(rows_where(frame)) == 4


def test_groups_come_in_the_order_of_their_first_row_with_tuples_as_keys(frame):
    found = {key: column(rows, "value").tolist() for key, rows in groups(frame, "name")}
    assert list(found.items()) == [(("b",), [1, 3]), (("a",), [2, 4])]
    assert [len(rows) for _, rows in groups(frame, "name", "size")] == [1, 2, 1], "a NaN is a group of its own"


def test_kept_ignores_the_index_of_the_mask(frame):
    later = kept(frame, frame["value"] > 2)
    assert column(kept(later, [False, True]), "value").tolist() == [4]
    assert records(later)[0] == {"name": "b", "size": 2.0, "value": 3}
