"""Old modules of Keras, and where their names are now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydtconv.compat.keras2 import extra, files, images, merging, sequences, texts

#: old modules in `keras`, by the module that has their names now
MODULES: dict[str, tuple[str, ...]] = {
    "layers": (
        "layers.advanced_activations",
        "layers.attention",
        "layers.containers",
        "layers.convolutional",
        "layers.convolutional_recurrent",
        "layers.core",
        "layers.cudnn_recurrent",
        "layers.dense_attention",
        "layers.embeddings",
        "layers.experimental",
        "layers.experimental.preprocessing",
        "layers.local",
        "layers.merge",
        "layers.merging",
        "layers.noise",
        "layers.normalization",
        "layers.normalization.batch_normalization",
        "layers.normalization.layer_normalization",
        "layers.pooling",
        "layers.preprocessing",
        "layers.preprocessing.image_preprocessing",
        "layers.recurrent",
        "layers.regularization",
        "layers.reshaping",
        "layers.wrappers",
        "legacy.layers",
        "engine",
        "engine.base_layer",
        "engine.input_layer",
        "engine.topology",
        "engine.input_spec",
        "engine.keras_tensor",
        "engine.functional",
        "engine.network",
        "engine.sequential",
        "engine.training",
        "layers.normalization_v2",
        "layers.activation",
        *(
            f"layers.convolutional.{name}"
            for name in ("conv1d", "conv2d", "conv2d_transpose", "depthwise_conv2d", "separable_conv2d")
        ),
        "layers.core.dense",
        "layers.core.dropout",
        "layers.core.flatten",
        "layers.core.lambda_layer",
    ),
    "applications.mobilenet_v2": ("applications.mobilenetv2",),
    "models": ("engine.saving",),
    "utils": (
        "utils.conv_utils",
        "utils.data_utils",
        "utils.generic_utils",
        "utils.image_utils",
        "utils.io_utils",
        "utils.layer_utils",
        "utils.losses_utils",
        "utils.metrics_utils",
        "utils.multi_gpu_utils",
        "utils.np_utils",
        "utils.test_utils",
        "utils.tf_utils",
        "utils.training_utils",
        "utils.vis_utils",
        "utils.visualize_util",
        "utils.dataset_utils",
    ),
    "backend": ("backend.common", "backend.load_backend", "backend.tensorflow_backend"),
    "callbacks": ("callbacks.callbacks", "callbacks.experimental", "callbacks.tensorboard_v1"),
    "initializers": ("initializations",),
    "losses": ("objectives",),
    "optimizers": (
        "optimizers.experimental",
        "optimizers.legacy",
        "optimizer_v1",
        "optimizer_v2",
        "optimizers.optimizer_v2",
        *(f"optimizer_v2.{name}" for name in ("adam", "gradient_descent", "learning_rate_schedule", "rmsprop")),
    ),
    "optimizers.schedules": ("optimizers.learning_rate_schedule",),
    "saving": ("saving.save", "saving.hdf5_format"),
    "": ("api", "experimental", "legacy", "_tf_keras", "_tf_keras.keras"),
}
WHERE = {old: new for new, olds in MODULES.items() for old in olds}
#: other packages, and modules of tensorflow, that are `keras`, or a part of it
ROOTS = {
    "keras_preprocessing": "keras.preprocessing",
    "keras_applications": "keras.applications",
    "tensorflow.python.keras": "tensorflow.keras",
    "tensorflow.contrib.keras.python.keras": "tensorflow.keras",
    "tensorflow.contrib.keras.api.keras": "tensorflow.keras",
    "tensorflow.contrib.keras.python": "tensorflow.keras",
    "tensorflow.contrib.keras.api": "tensorflow.keras",
    "tensorflow.contrib.keras": "tensorflow.keras",
    "tensorflow.compat.v1.keras": "tensorflow.keras",
    "tensorflow.compat.v2.keras": "tensorflow.keras",
}


def present(fullname: str) -> str | None:
    """The module of Keras 3 that has the names of an old one; None for what is no old module."""
    name = fullname
    for root, new in ROOTS.items():
        if name == root or name.startswith(f"{root}."):
            name = new + name[len(root) :]
            break
    head = next((root for root in ("tensorflow.keras", "tf_keras", "keras") if name.startswith(f"{root}.")), None)
    inner = name[len(head) + 1 :] if head else ""
    if head and inner in WHERE:
        name = f"{head}.{WHERE[inner]}".rstrip(".")
    return None if name == fullname else name


#: modules that are not in pydtconv, by the one that they were in: all their names are in NAMES
GONE: dict[str, tuple[str, ...]] = {"pydtconv.preprocessing": ("text",)}
#: names that a module of Keras had, by the module of pydtconv
NAMES: dict[str, Callable[[], dict[str, Any]]] = {
    "pydtconv.layers": lambda: {**merging.table(), **extra.layers()},
    "pydtconv.models": lambda: {**files.table(), **extra.models()},
    "pydtconv.utils": extra.utils,
    "pydtconv.ops.image": extra.ops_image,
    "pydtconv.preprocessing.image": images.table,
    "pydtconv.preprocessing.sequence": sequences.table,
    "pydtconv.preprocessing.text": texts.table,
    "pydtconv.regularizers": extra.regularizers,
    "pydtconv.constraints": extra.constraints,
    "pydtconv.initializers": extra.initializers,
    "pydtconv.losses": extra.losses,
    "pydtconv.metrics": extra.metrics,
    "pydtconv.optimizers": extra.optimizers,
    "pydtconv.callbacks": extra.callbacks,
    "pydtconv.applications.imagenet_utils": extra.imagenet_utils,
}


def is_gone(module: str) -> bool:
    """Whether pydtconv has no such module, but Keras had it."""
    parent, _, name = module.rpartition(".")
    return name in GONE.get(parent, ())


def names(module: str) -> dict[str, Any]:
    """Old names of a module of pydtconv."""
    return NAMES[module]() if module in NAMES else {}


def moved(fullname: str) -> dict[str, Any]:
    """Names of an old module that are in several modules now, and what its call was where it was a function."""
    if fullname.endswith("layers.merge"):
        return {"__call__": merging.merge, "_Merge": merging._Merge}
    return extra.engine() if "engine" in fullname.split(".") else {}
