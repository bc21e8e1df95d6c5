"""Modules of Keras that scripts import from: each that pydtconv has a part of is there under `pydtconv run`."""

import subprocess
import sys
import types

import pytest

from pydtconv.compat import keras_names
from tests.real_keras import import_keras

#: what is not planned, or says so by name
LEFT_OUT = {
    "keras.distillation", "keras.export", "keras.legacy", "keras.optimizers.legacy",
    "keras.quantizers", "keras.utils.legacy", "keras.visualization", "keras.wrappers",
}  # fmt: skip


def missing(module, name):
    """Public modules inside, as Keras has them, that are not found."""
    found = []
    for inner in dir(module):
        value = getattr(module, inner)
        public = isinstance(value, types.ModuleType) and not inner.startswith("_") and inner != "src"
        if public and value.__name__.startswith("keras.") and ".src" not in value.__name__:
            full = f"{name}.{inner}"
            found += missing(value, full) if inner in keras_names.submodules(name) else [full]
    return found


@pytest.mark.slow
def test_modules_of_keras_are_found():
    assert set(missing(import_keras(), "keras")) == LEFT_OUT


@pytest.mark.slow
def test_imports_that_scripts_begin_with(tmp_path):
    (tmp_path / "script.py").write_text(
        "from tensorflow.keras import mixed_precision\n"
        "from tensorflow.keras.applications.vgg16 import VGG16, preprocess_input, decode_predictions\n"
        "from tensorflow.keras.applications.resnet50 import preprocess_input as other\n"
        "from keras.applications import imagenet_utils\n"
        "from keras.ops import nn\n"
        "import keras, numpy as np\n"
        "mixed_precision.set_global_policy('float32')\n"
        "keras.config.disable_interactive_logging()\n"
        "assert not keras.utils.is_interactive_logging_enabled()\n"
        "image = preprocess_input(np.full((1, 2, 2, 3), 100.0))\n"
        "assert abs(image[0, 0, 0] - (100 - np.array([103.939, 116.779, 123.68]))).max() < 1e-3\n"
        "assert nn.relu(np.array([-1.0]))[0] == 0\n"
        "assert keras.backend.result_type('int32', 'float32') == 'float32'\n"
        "keras.config.enable_unsafe_deserialization()\n"
        "try:\n    keras.config.enable_traceback_filtering()\n"
        "except NotImplementedError as error:\n    print(error)\n"
    )
    command = [sys.executable, "-W", "error", "-m", "pydtconv", "run", "script.py"]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert result.returncode == 0, result.stderr[-2000:]
    assert "tracebacks are always whole" in result.stdout
