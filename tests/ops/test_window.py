"""`Op.window`: what it says of an operator is what the operator computes."""

import numpy as np
import pytest

from pydtconv import ops
from pydtconv.ops.base import Window, spec_of

CASES = [
    (ops.Conv((2, 1), ((2, 1), (0, 0)), (2, 1)), (3, 1)),
    (ops.Conv((3, 1), "same"), (2, 1)),
    (ops.DepthwiseConv((2, 1), "same", (1, 1)), (3, 1)),
    (ops.ConvTranspose((2, 1), "same"), (3, 1)),
    (ops.ConvTranspose((3, 1), "valid", output_padding=(1, 0)), (2, 1)),
    (ops.ConvTranspose((2, 1), ((1, 1), (0, 0)), (2, 1)), (3, 1)),
    (ops.MaxPool((3, 1), (2, 1), "same"), None),
    (ops.MaxPool((2, 1), (3, 1)), None),
    (ops.AveragePool((3, 1), (2, 1), ((1, 2), (0, 0)), count_include_pad=True), None),
]


@pytest.mark.parametrize(("op", "filters"), CASES, ids=[f"{op.name}{i}" for i, (op, _) in enumerate(CASES)])
@pytest.mark.parametrize("extent", [7, 8])
def test_a_column_of_pixels(op, filters, extent):
    """Filters of ones: each output is a sum, a mean or a maximum of what the window says that it reads."""
    x = np.random.default_rng(1).uniform(1, 2, (1, extent, 1, 1))
    inputs = (x,) if filters is None else (x, np.ones((*filters, 1, 1)))
    window = op.window(1, *map(spec_of, inputs))
    y = op(*inputs)[0, :, 0, 0]
    reads = [[i * window.stride - window.before + k * window.dilation for k in range(window.kernel)] for i in range(99)]
    if window.transposed:
        want = np.zeros(len(y))
        for i in range(extent):
            for place in reads[i]:
                if 0 <= place < len(y):
                    want[place] += x[0, i, 0, 0]
        assert (extent - 1) * window.stride + window.reach - window.before - window.after <= len(y)
    else:
        assert window.outputs(extent) == len(y)
        assert max(reads[len(y) - 1]) < extent + window.after
        values = [[x[0, place, 0, 0] for place in row if 0 <= place < extent] for row in reads[: len(y)]]
        fold = max if isinstance(op, ops.MaxPool) else sum
        want = [fold(row) / (window.kernel if isinstance(op, ops.AveragePool) else 1) for row in values]
    np.testing.assert_allclose(y, want, rtol=1e-12)


def test_what_is_no_window():
    x = np.ones((1, 4, 4, 2))
    image = spec_of(x)
    assert ops.Softmax().window(1, image) is None
    assert ops.GlobalMaxPool().window(1, image) is None
    assert ops.MaxPool((2, 3)).window(3, image) is None
    assert ops.MaxPool((2, 3)).window(2, image) == Window(3, 3)
    assert ops.Conv().window(0, image, spec_of(np.ones((3, 3, 2, 5)))) is None
