import pytest

from pydtconv import config, microkernels


@pytest.fixture
def threads():
    """Sets the number of threads for one test."""
    before = config.num_threads()
    yield config.set_num_threads
    config.set_num_threads(before)


@pytest.fixture
def kernel():
    """Makes a micro-kernel active for one test."""
    yield microkernels.select
    for dtype in ("float32", "float64"):
        microkernels.select(None, dtype)
