"""What `gd.mdp` shows to someone who explores it."""

import types

import gradientdice as gd


def test_it_shows_problems_and_types_and_no_module_names():
    names = dir(gd.mdp)
    assert "boyan_chain" in names and "TabularMDP" in names
    assert not [name for name in names if isinstance(getattr(gd.mdp, name), types.ModuleType)]
