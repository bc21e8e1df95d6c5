"""Networks: those of `keras.applications` by Keras's names and arguments, and those that papers train on small images.

`applications.ResNet50(weights=None, classes=10)` is Keras's ResNet50, layer by layer.  `SmallResNet50`, `ResNet34`,
`VGG16BN` and others are the zoo's own: their stems and classifiers suit images below 64 pixels, and their files are
Keras-style scripts that run.  `applications.build("resnet34", ...)` makes either kind by name.

One file per family.  A family lists its functions in `__all__`; a new one is one file and one line in FAMILIES.  This
folder is installed as `pydtconv.applications`; the classes that its networks are made of, such as `Model` and
`Sequential`, are in `pydtconv/models/`.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any

from pydtconv.suggest import one_of, refusal

#: modules of `keras.applications`, with `preprocess_input` and `decode_predictions` of their own
KERAS = (
    "convnext",
    "densenet",
    "efficientnet",
    "efficientnet_v2",
    "inception_resnet_v2",
    "inception_v3",
    "mobilenet",
    "mobilenet_v2",
    "mobilenet_v3",
    "nasnet",
    "resnet",
    "resnet_v2",
    "vgg16",
    "vgg19",
    "xception",
)
#: the zoo's own
FAMILIES = (
    "alexnet",
    "cosmoflow",
    "googlenet",
    "mlp",
    "mnist_convnet",
    "resnet1d",
    "small_densenet",
    "small_mobilenet",
    "small_resnet",
    "small_vgg",
    "unet",
    "vit",
)
#: axes of what a network takes, of those that do not take images
AXES = {"cosmoflow": 3, "resnet1d": 1, "unet3d": 3}


def _builders(families: tuple[str, ...]) -> dict[str, Callable[..., Any]]:
    modules = [importlib.import_module(f"{__name__}.{family}") for family in families]
    return {name: getattr(module, name) for module in modules for name in module.__all__ if name[0].isupper()}


_OURS = _builders(FAMILIES)
_BUILDERS = {**_builders(KERAS), **_OURS}
globals().update(_BUILDERS)
for _module in ("imagenet_utils", "resnet50"):
    importlib.import_module(f"{__name__}.{_module}")
__all__ = ["axes", "build", "names", *_BUILDERS]


def names(own: bool = False) -> list[str]:
    """The names that `build` takes, in lower case.  own: only those of the zoo's own networks, without Keras's."""
    return sorted(name.lower() for name in (_OURS if own else _BUILDERS))


def axes(name: str) -> int:
    """How many axes the inputs of a network have besides the channels: 2 for images, 1 for signals, 3 for volumes.

    Raises ValueError for an unknown name, with the near ones.
    """
    _builder(name)
    return AXES.get(_key(name), 2)


def _key(name: str) -> str:
    return str(name).lower().replace("-", "").replace("_", "")


def _builder(name: str) -> Callable[..., Any]:
    """The function that makes a network.  Raises ValueError for an unknown name, with the near ones."""
    by_name = {key.lower(): function for key, function in _BUILDERS.items()}
    key = _key(name)
    if key not in by_name:
        raise ValueError(f"applications: no model is called {name!r}{one_of(key, names())}")
    return by_name[key]


def build(name: str, input_shape: tuple[int, ...], classes: int, **options: Any) -> Any:
    """A model by its name, in any case: build("mnistconvnet", input_shape=(28, 28, 1), classes=10).

    input_shape: (height, width, channels) of an image, or as many axes as `axes` says.  classes: number of classes.
    options: the family's own; weights are random where they do not say otherwise.
    Returns a model that has not been compiled.  Raises ValueError for an unknown name or option, with the near ones.
    """
    builder = _builder(name)
    known = inspect.signature(builder).parameters
    for option in options:
        if option not in known:
            raise ValueError(f"applications.build: {name} has no option {option!r}{one_of(option, known)}")
    return builder(**{"weights": None, **options, "input_shape": input_shape, "classes": classes})


__getattr__ = refusal("pydtconv.applications", __all__)
