"""Names that scripts find under `pydtconv run`."""

import sys

import pytest

from pydtconv.compat import keras_names


@pytest.fixture
def tf():
    """tensorflow as scripts have it; what other tests have loaded of the real one, or of Keras, is back afterwards."""
    own = {name: module for name, module in sys.modules.items() if name.split(".")[0] in keras_names.ROOTS}
    for name in own:
        del sys.modules[name]
    keras_names.install()
    import tensorflow

    yield tensorflow
    keras_names.uninstall()
    sys.modules.update(own)
