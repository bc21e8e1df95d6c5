"""California housing: 20640 rows of 8 features, and prices in dollars (R. Pace, R. Barry, 1997)."""

from __future__ import annotations

import numpy as np

from pydtconv.datasets.tables import Split, load, read, shuffled

#: how many rows each version has
_ROWS = {"small": 600, "large": None}


def load_data(
    version: str = "large", path: str = "california_housing.npz", test_split: float = 0.2, seed: int = 113
) -> tuple[Split, Split]:
    """`(x_train, y_train), (x_test, y_test)`: x float32 (n, 8), y float32 (n,).  version: "small" has 600 rows.

    Raises FileNotFoundError that says where to put which file, and ValueError for a damaged one.
    """
    if version not in _ROWS:
        raise ValueError(f"load_data: version: expected 'small' or 'large', got {version!r}")
    x, y = read("California housing", path, "1a2e3a52e0398de6463aebe6f4a8da34fb21fbb6b934cf88c3425e766f2a1a6f", 8)
    x, y = shuffled(np.random.RandomState(seed), x[: _ROWS[version]], y[: _ROWS[version]])
    return load(x, y, test_split)
