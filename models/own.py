"""How the zoo's own networks get the arguments that all networks have.

A network is a function of images and of its own options.  It returns its features: a tensor, or a list of layers, which
makes a Sequential model.  With a tuple (features, steps) it says, too, what stands between them and the classes, and
with a third part what follows them without a top.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Sequence
from typing import Any

from pydtconv import Input, layers
from pydtconv.applications.assembly import Arguments, assembled, check

_LAST = ("include_top", "input_tensor", "pooling", "classifier_activation", "name")
_ABOUT = """

weights: None for random ones, or the path of a file; see `Model.load_weights`.  Where the file has other classes, the
layer of the classes is new, and a line says so.  include_top: whether the layers of the classes are part of it.
pooling: without a top None, "avg" or "max".  input_tensor: a symbolic tensor in the place of an Input.  classes,
classifier_activation: of the top.  Returns a model that is not compiled.  Raises ValueError for arguments that do not
fit, FileNotFoundError without the file.
"""


def own(
    input_shape: tuple[int, ...],
    classes: int = 1000,
    *,
    pool: Any = layers.GlobalAveragePooling2D,
    classifier: Callable[..., Any] = layers.Dense,
    activation: str | None = "softmax",
    name: str | None = None,
    order: Sequence[str] = ("input_shape", "classes", "weights"),
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: makes a function with the arguments that all networks have of one of images and options.

    input_shape, classes, activation, name: defaults; the name is else the function's.  pool: class of the layer before
    the classes where the function does not say steps.  classifier: makes the layer of the classes of their number and
    an activation.  order: of the first arguments.
    """

    def decorated(features: Callable[..., Any]) -> Callable[..., Any]:
        options = dict(list(inspect.signature(features).parameters.items())[1:])
        first = dict.fromkeys(order)
        default: dict[str, Any] = {key: option.default for key, option in options.items()}
        default |= {"input_shape": input_shape, "classes": classes, "weights": None, "include_top": True}
        default |= {"input_tensor": None, "pooling": None, "classifier_activation": activation}
        default["name"] = name or features.__name__.lower()
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        names = dict.fromkeys([*first, *options, *_LAST])
        signature = inspect.Signature([inspect.Parameter(key, kind, default=default[key]) for key in names])

        @functools.wraps(features)
        def build(*args: Any, **kwargs: Any) -> Any:
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError as error:
                raise TypeError(f"{features.__name__}: {error}") from None
            values = default | bound.arguments
            given = Arguments(**{key: values[key] for key in Arguments._fields})
            images = _images(given, input_shape)
            found = features(images, **{key: values[key] for key in options})
            body, steps, *bottom = found if isinstance(found, tuple) else (found, [pool()])
            top_layers = 1 + sum(isinstance(step, layers.Dense) for step in steps)
            if given.include_top:
                steps = [*steps, classifier(given.classes, activation=given.classifier_activation)]
            return assembled(given, images, body, steps, bottom=bottom[0] if bottom else [], top_layers=top_layers)

        build.__signature__ = signature  # type: ignore[attr-defined]
        build.__doc__ = (features.__doc__ or "").rstrip() + _ABOUT
        return build

    return decorated


def _images(given: Arguments, default: tuple[int, ...]) -> Any:
    """The input.  Raises ValueError for a shape that is none, FileNotFoundError without the file of weights."""
    check(given)
    if given.weights is not None and not os.path.exists(given.weights):
        raise FileNotFoundError(f"{given.name}: weights: there is no file {given.weights}")
    shape = default if given.input_shape is None else tuple(given.input_shape)
    shape = shape if given.input_tensor is None else tuple(given.input_tensor.shape[1:])
    if len(shape) != len(default) or None in shape:
        axes = {2: "(steps, channels)", 3: "(height, width, channels)", 4: "(depth, height, width, channels)"}
        raise ValueError(f"{given.name}: input_shape: expected {axes[len(default)]}, got {shape}")
    return Input(shape=shape) if given.input_tensor is None else given.input_tensor
