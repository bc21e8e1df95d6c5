"""Names that scripts find under `pydtconv run`."""

import sys

import pytest

from pydtconv import hooks
from pydtconv.compat import keras_names
from pydtconv.compat.tensorflow.arrays import as_tensor


@pytest.fixture
def tf():
    """tensorflow as scripts have it; what other tests have loaded of the real one, or of Keras, is back afterwards."""
    own = {name: module for name, module in sys.modules.items() if name.split(".")[0] in keras_names.ROOTS}
    for name in own:
        del sys.modules[name]
    keras_names.install()
    hooks.as_result.fill(as_tensor)
    import tensorflow

    yield tensorflow
    hooks.as_result.reset()
    keras_names.uninstall()
    sys.modules.update(own)
