"""Names for the types of arrays that every part speaks in."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

IndexArray = npt.NDArray[np.int32]
"""Numbers of nodes or topics within a workload."""
IdArray = npt.NDArray[np.uint64]
"""Identifiers on the ring."""
IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
