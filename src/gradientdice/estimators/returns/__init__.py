"""The distribution of the target's return: from weighted episodes, doubly robust, or from simulated paths."""
