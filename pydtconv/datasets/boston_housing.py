"""Boston housing: 506 rows of 13 features, and prices in thousands of dollars (D. Harrison, D. Rubinfeld, 1978).

One feature counts people by their skin: Keras keeps the table for old scripts, and recommends `california_housing`.
"""

from __future__ import annotations

import numpy as np

from pydtconv.datasets.tables import Split, load, read, shuffled


def load_data(path: str = "boston_housing.npz", test_split: float = 0.2, seed: int = 113) -> tuple[Split, Split]:
    """`(x_train, y_train), (x_test, y_test)`: x float64 (n, 13), y float64 (n,).

    Raises FileNotFoundError that says where to put which file, and ValueError for a damaged one.
    """
    x, y = read("Boston housing", path, "f553886a1f8d56431e820c5b82552d9d95cfcb96d1e678153f8839538947dff5", 13)
    x, y = shuffled(np.random.RandomState(seed), x, y)
    return load(x, y, test_split)
