"""How well would this policy do? Off-policy evaluation from logged data by stationary distribution correction.

Names are loaded when first used (SPEC 1), so that importing the package is quick and does not import JAX.
"""

import lazy_loader

from gradientdice.base import process as process  # from here on a fork knows what it was forked from

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__version__ = "0.2.0"
