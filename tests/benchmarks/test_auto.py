"""What AUTO loses is measured with the work that algorithms do for their neighbours, or leave to them."""

import pytest

from benchmarks.auto import with_normalization
from pydtconv.profiling.profile import Timing


def timing(node, kind, direction, seconds, algorithm=""):
    return Timing(0, node, kind, direction, seconds, algorithm=algorithm)


def test_normalization_belongs_to_the_pass_that_may_do_it():
    step = [
        timing("norm", "batchnorm", "forward", 1.0),
        timing("conv", "conv", "forward", 2.0, "im2col"),
        timing("conv", "conv", "forward_moments", 4.0),
        timing("next", "batchnorm", "forward", 8.0),
        timing("norm", "batchnorm", "recompute", 16.0),
        timing("conv", "conv", "backward_weights", 32.0, "direct"),
        timing("conv", "conv", "backward_data", 64.0, "direct"),
        timing("conv", "conv", "update", 128.0),
        timing("norm", "batchnorm", "backward", 256.0),
        timing("norm", "batchnorm", "mean terms", 512.0),
        timing("norm", "batchnorm", "update", 1024.0),
        timing("first", "conv", "backward_weights", 2048.0, "direct"),
    ]
    passes = {part.direction: with_normalization(step, i) for i, part in enumerate(step[:-1]) if part.algorithm}
    assert passes == {"forward": 1 + 2 + 4, "backward_weights": 16 + 32, "backward_data": 64 + 256 + 512}
    assert with_normalization(step, len(step) - 1) == pytest.approx(2048)
