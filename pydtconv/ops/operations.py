"""Functions of `ops` as operations of functional models: each is the one operation that it is in Keras.

A function may be made of several operators here.  On symbolic tensors that wait for their values it is recorded as a
whole, under the name of Keras's class, so that models have the same operations in both libraries.  The order of
layers and weights, the names, and the numbering in files follow from that.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydtconv import tree
from pydtconv.config import image_data_format
from pydtconv.naming import to_snake_case
from pydtconv.ops.parts import PLACES

#: functions of these modules that are no operations: they make arrays, or other functions
_NO_OPERATIONS = frozenset(
    "bartlett blackman empty eye hamming hanning identity kaiser ones tri vectorize zeros".split()  # noqa: SIM905
)
#: classes that are not named as their functions are
_CLASSES = {
    "abs": "Absolute",
    "allclose": "AllClose",
    "batch_normalization": "BatchNorm",
    "cdist": "CDist",
    "conj": "Conjugate",
    "ctc_decode": "CTCDecode",
    "ctc_loss": "CTCLoss",
    "extract_patches_3d": "ExtractPatches",
    "general_relu": "ReLU",
    "hard_swish": "HardSilu",
    "hsv_to_rgb": "HSVToRGB",
    "isin": "IsIn",
    "jvp": "JVP",
    "layer_normalization": "LayerNorm",
    "psnr": "PSNR",
    "rgb_to_grayscale": "RGBToGrayscale",
    "rgb_to_hsv": "RGBToHSV",
    "rms_normalization": "RMSNorm",
    "searchsorted": "SearchSorted",
    "ssim": "SSIM",
    "svd": "SVD",
    "swish": "Silu",
    **{name: name.upper() for name in ("fft", "fft2", "ifft2", "irfft", "istft", "rfft", "stft")},
}
#: functions whose class keeps other arguments than those with a default
_CONFIGS: dict[str, str] = {
    "adaptive_average_pool": "output_size data_format",
    "adaptive_max_pool": "output_size data_format",
    "arange": "dtype",
    "argpartition": "kth axis",
    "array_split": "indices_or_sections axis",
    "average": "axis",
    "average_pool": "pool_size strides padding data_format",
    "batch_normalization": "axis epsilon",
    "broadcast_to": "shape",
    "cast": "dtype",
    "clip": "x_min x_max",
    "depth_to_space": "block_size data_format",
    "dot_product_attention": "is_causal flash_attention attn_logits_soft_cap",
    "dsplit": "indices_or_sections",
    "einsum": "subscripts",
    "expand_dims": "axis",
    "extract_patches": "size strides dilation_rate padding data_format",
    "extract_patches_3d": "size strides dilation_rate padding data_format",
    "extract_sequences": "sequence_length sequence_stride",
    "fold": "output_size kernel_size dilation padding stride",
    "fori_loop": "lower upper body_fun",
    "full": "shape dtype",
    "hsplit": "indices_or_sections",
    "in_top_k": "k",
    "isclose": "equal_nan",
    "istft": "sequence_length sequence_stride fft_length length window center",
    "layer_normalization": "axis epsilon rms_scaling",
    "map_coordinates": "order fill_mode fill_value",
    "max_pool": "pool_size strides padding data_format",
    "moments": "axes keepdims synchronized",
    "moveaxis": "source destination",
    "one_hot": "num_classes axis dtype sparse",
    "pad": "pad_width mode",
    "psnr": "max_val",
    "repeat": "repeats axis",
    "reshape": "newshape",
    "resize": "size interpolation antialias data_format crop_to_aspect_ratio pad_to_aspect_ratio fill_mode fill_value",
    "rms_normalization": "axis epsilon",
    "roll": "shift axis",
    "saturate_cast": "dtype",
    "scale_and_translate": "spatial_dims method antialias",
    "scan": "length reverse unroll",
    "scatter": "shape",
    "select": "",
    "slice": "shape",
    "space_to_depth": "block_size data_format",
    "split": "indices_or_sections axis",
    "stft": "sequence_length sequence_stride fft_length window center",
    "swapaxes": "axis1 axis2",
    "threshold": "threshold default_value",
    "tile": "repeats",
    "top_k": "k sorted",
    "unfold": "kernel_size dilation padding stride",
    "unravel_index": "shape",
    "vectorized_map": "function",
    "vsplit": "indices_or_sections",
    "where": "",
    "while_loop": "cond body maximum_iterations",
}


class Card:
    """What Keras knows of a function.

    module, class_name: of its operation, behind "keras.src.".  config: the arguments that the operation keeps; the
    others are those of a call.  function: what computes it.
    """

    def __init__(self, name: str, module: str, function: Callable[..., Any]) -> None:
        self.name = name
        self.module = module
        self.class_name = _CLASSES.get(name) or "".join(part.capitalize() for part in name.split("_"))
        self.function = function

    @functools.cached_property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        return self.signature.parameters

    @functools.cached_property
    def signature(self) -> inspect.Signature:
        return inspect.signature(self.function)

    @functools.cached_property
    def config(self) -> frozenset[str]:
        if self.name in _CONFIGS:
            return frozenset(_CONFIGS[self.name].split())
        return frozenset(name for name, each in self.parameters.items() if each.default is not each.empty)

    @functools.cached_property
    def call_names(self) -> list[str]:
        """The arguments of a call, in order; none where their number is free."""
        if any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in self.parameters.values()):
            return []
        return [name for name in self.parameters if name not in self.config]

    @functools.cached_property
    def takes_functions(self) -> bool:
        return any("Callable" in str(each.annotation) for each in self.parameters.values())

    def split(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments of the function as those of an operation's call, and the operation's config."""
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        call: list[Any] = []
        config: dict[str, Any] = {}
        for name, value in bound.arguments.items():
            if name == "data_format" and value is None:
                value = image_data_format()
            if name in self.config:
                config[name] = value
            elif self.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL:
                call.extend(value)
            elif self.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
                config.update(value)
            else:
                call.append(value)
        return call, config

    def apply(self, args: Sequence[Any], kwargs: Mapping[str, Any], config: Mapping[str, Any]) -> Any:
        """The function of what `split` gives; kwargs: arguments of either kind by name."""
        if any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in self.parameters.values()):
            named = {key: config[key] for key in config if self.parameters[key].kind is inspect.Parameter.KEYWORD_ONLY}
            placed = [value for key, value in config.items() if key not in named]
            return self.function(*placed, *args, **named, **kwargs)
        names = self.call_names
        if len(args) > len(names):
            raise TypeError(f"{self.name}: expected the arguments {', '.join(names)}, got {len(args)}")
        return self.function(**dict(zip(names, args, strict=False)), **config, **kwargs)

    def __reduce__(self) -> tuple[Callable[[str], Any], tuple[str]]:
        return card_of, (self.name,)


#: by the name of the function
CARDS: dict[str, Card] = {}
_BY_CLASS: dict[str, Card] = {}


def card_of(name: str) -> Card:
    """The card of a function of `ops`, or of `ops.image`."""
    return CARDS[name]


def card_of_class(class_name: str) -> Card | None:
    """The card of the operation that Keras has under a class name; None where there is no such function here."""
    return _BY_CLASS.get(class_name) or CARDS.get(to_snake_case(class_name))


class Waiting:
    """Base of symbolic tensors on which functions are recorded as operations."""

    def apply_function(self, card: Card, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        raise NotImplementedError


def operations_of(functions: Mapping[str, Any], module: str | None = None) -> dict[str, Callable[..., Any]]:
    """Those of these functions that are operations, by name, so that they are recorded on symbolic tensors.

    module: of Keras, where it is one for all.
    """
    modules = {name: f"ops.{place}" for place, names in PLACES.items() if place != "own" for name in names}
    modules |= dict.fromkeys(PLACES["activations"], "activations.activations")
    found = {}
    for name, function in functions.items():
        place = module or modules.get(name)
        if place is not None and name not in _NO_OPERATIONS and inspect.isfunction(function):
            card = CARDS[name] = Card(name, place, function)
            _BY_CLASS.setdefault(card.class_name, card)
            found[name] = as_operation(card, "pydtconv.ops" if module is None else f"pydtconv.{module}")
    return found


def as_operation(card: Card, module: str) -> Callable[..., Any]:
    """The function of a card, which is recorded as its operation on symbolic tensors."""
    function = card.function

    @functools.wraps(function)
    def operation(*args: Any, **kwargs: Any) -> Any:
        for waiting in _waiting(args):
            return _recorded(waiting, card, args, kwargs)
        for waiting in _waiting(kwargs.values()):
            return _recorded(waiting, card, args, kwargs)
        return function(*args, **kwargs)

    operation.__module__, operation.__name__, operation.__qualname__ = module, card.name, card.name
    return operation


def _waiting(values: Iterable[Any]) -> Iterator[Waiting]:
    for value in values:
        if isinstance(value, Waiting):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _waiting(value)
        elif isinstance(value, dict):
            yield from _waiting(value.values())


def _recorded(waiting: Waiting, card: Card, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """One operation, but where functions among the arguments use further symbolic tensors: these are traced."""
    if any(callable(each) and _uses_others(each) for each in tree.flatten((args, kwargs))):
        return card.function(*args, **kwargs)
    return waiting.apply_function(card, args, kwargs)


def _uses_others(function: Callable[..., Any]) -> bool:
    """Whether a function finds symbolic tensors around it."""
    if not inspect.isfunction(function):
        return False
    around = inspect.getclosurevars(function)
    return any(True for _ in _waiting((around.nonlocals, around.globals)))
