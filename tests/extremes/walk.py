"""Each number of each layer, operator and function as a size that no memory holds, in a process of its own with limits.

`python -m tests.extremes.walk layers` prints a line for each case that is neither a clear error nor a working result.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import inspect
import os
import pathlib
import re
import resource
import signal
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np

import pydtconv
from pydtconv import layers, ops, saving
from tests.ops.keras_calls import calls_of

VALUES = (-1, 0, 2**31, 2**62, 2**63, 10**30)
#: seconds of a case, and bytes of the whole process
SECONDS, BYTES = 5, 6 << 30
#: what a clear error is, and what NumPy's words of one are
CLEAR = (ValueError, TypeError, NotImplementedError)
OF_NUMPY = (
    "Maximum allowed",
    "array is too big",
    "too large to convert",
    "negative dimensions",
    "int too big",
    "cannot reshape",
    "Unable to allocate",
    "unexpected keyword",
    "positional argument",
    "object is not",
)
#: of errors of functions that take no symbolic tensors
OF_ARRAYS = ("here for arrays only", "depends on values", "has no value yet")

#: arguments that are places, no sizes: axes, indices
OF_PLACES = re.compile("ax[ei]s|dims|indices|key|kth|scatter|binomial.*counts")

#: an argument of this name, where it has no default
BY_NAME: dict[str, Any] = {
    "activation": "relu", "output_size": 2, "rate": 0.5, "pool_size": 2, "height": 4, "width": 4, "filters": 4,
    "kernel_size": 2, "units": 3, "axes": 1, "equation": "...x,xy->...y", "input_dim": 9, "output_dim": 4,
    "stddev": 0.1, "num_bins": 7, "max_number": 3, "num_heads": 2, "key_dim": 3, "dims": (2, 1), "factor": 0.2,
    "height_factor": 0.2, "width_factor": 0.2, "n": 3, "scale": 2.0, "target_shape": (3, 6), "head_dim": 4,
    "num_query_heads": 4, "num_key_value_heads": 2,
}  # fmt: skip
#: further arguments, and shapes of inputs, by layer
ARGUMENTS: dict[str, dict[str, Any]] = {
    "EinsumDense": {"output_shape": 4},
    "CategoryEncoding": {"num_tokens": 5},
    "Discretization": {"bin_boundaries": [0.0, 0.5]},
    "IntegerLookup": {"vocabulary": [3, 4, 5], "output_mode": "multi_hot"},
    "GroupNormalization": {"groups": 3},
    "STFTSpectrogram": {"frame_length": 8, "frame_step": 4, "fft_length": 8},
    "MelSpectrogram": {"fft_length": 16, "sequence_stride": 8, "sequence_length": 16, "num_mel_bins": 6},
    "BatchNormalization": {"axis": -1},
    "RandomPosterization": {"factor": 4},
    **{name: {"units": 3} for name in ("SimpleRNN", "LSTM", "GRU")},
    **{f"ConvLSTM{rank}D": {"filters": 2, "kernel_size": 2} for rank in (1, 2, 3)},
}
PAIRS = ("Attention", "AdditiveAttention", "MultiHeadAttention", "Dot", "GroupQueryAttention", "GroupedQueryAttention")
SEPARATE = ("MultiHeadAttention", "GroupQueryAttention", "GroupedQueryAttention")
PAIRS += ("Add", "Average", "Concatenate", "Maximum", "Minimum", "Multiply", "Subtract")
SHAPES: dict[str, Any] = {
    **dict.fromkeys(("Dense", "EinsumDense", "RepeatVector", "Discretization", "ActivityRegularization"), (6,)),
    **dict.fromkeys(("CategoryEncoding", "Embedding", "ReversibleEmbedding", "IntegerLookup", "Hashing"), (6,)),
    "Permute": (6, 3),
    "Reshape": (6, 3),
    "Masking": (6, 3),
    **dict.fromkeys(("SimpleRNN", "LSTM", "GRU"), (6, 3)),
    **{f"ConvLSTM{rank}D": (3, *[4] * rank, 2) for rank in (1, 2, 3)},
    "STFTSpectrogram": (40, 1),
    "MelSpectrogram": (64,),
    **{name: [(6, 4), (6, 4)] for name in PAIRS},
}
INTEGERS = ("CategoryEncoding", "Embedding", "ReversibleEmbedding", "IntegerLookup", "Hashing", "HashedCrossing")
#: what is no layer, wraps one, or reads text or boxes
LEFT_OUT = {"InputLayer", "InputSpec", "Lambda", "Layer", "MaxNumBoundingBoxes", "NumpyLayer", "Pipeline"}
LEFT_OUT |= {"RNN", "Bidirectional", "StackedRNNCells", "SimpleRNNCell", "LSTMCell", "GRUCell"}
LEFT_OUT |= {
    "SpectralNormalization",
    "StringLookup",
    "TextVectorization",
    "TimeDistributed",
    "Wrapper",
    "HashedCrossing",
}


class TooLong(Exception):
    """A case has taken its seconds."""


def changed(data: Any, values: tuple[Any, ...] = VALUES) -> Iterator[tuple[str, Any, Any]]:
    """(where, value, the data with this value there): each number in it, in turn."""
    if isinstance(data, dict):
        items: Any = data.items()
    elif isinstance(data, (list, tuple)):
        items = enumerate(data)
    else:
        if isinstance(data, int) and not isinstance(data, bool):
            yield from (("", value, value) for value in values)
        return
    for key, item in items:
        for where, value, other in changed(item, values):
            made = dict(data) if isinstance(data, dict) else list(data)
            made[key] = other
            yield f".{key}{where}", value, tuple(made) if isinstance(data, tuple) else made


def verdict(call: Any, name: str) -> str | None:
    """None for a clear error and a working result, else what came; of an axis Python's and NumPy's errors will do.

    What nothing was changed of has to work, but where it is of arrays alone.
    """
    signal.alarm(SECONDS)
    try:
        call()
    except (IndexError, OverflowError) as error:
        return None if OF_PLACES.search(name) else f"{type(error).__name__}: {str(error)[:150]}"
    except CLEAR as error:
        if " = " in name or (" symbolic" in name and any(part in str(error) for part in OF_ARRAYS)):
            text = str(error)
            return f"{type(error).__name__}: {text[:150]}" if any(part in text for part in OF_NUMPY) else None
        return f"does not work as it is: {type(error).__name__}: {str(error)[:150]}"
    except BaseException as error:
        return f"{type(error).__name__}: {str(error)[:150]}"
    finally:
        signal.alarm(0)
    return None


def layer_cases() -> Iterator[tuple[str, Any]]:
    for name in layers.__all__:
        made = getattr(layers, name)
        if not inspect.isclass(made) or name in LEFT_OUT or made.__name__ != name:
            continue
        parameters = inspect.signature(made.__init__).parameters.values()
        needed = [p.name for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD][1:]
        arguments = {key: BY_NAME[key] for key in needed if key in BY_NAME} | ARGUMENTS.get(name, {})
        rank = int((re.findall("([123])D", name) or "2")[0])
        shapes = SHAPES.get(name, (*(6,) * rank, 3))
        config = made(**arguments).get_config()
        yield (
            name,
            lambda made=made, config=config, shapes=shapes, name=name: run(made, config, shapes, name in INTEGERS),
        )
        for where, value, other in changed(config):
            if where not in (".name", ".dtype"):
                yield f"{name}{where} = {value}", lambda m=made, c=other, s=shapes, n=name: run(m, c, s, n in INTEGERS)


def run(made: Any, config: dict[str, Any], shapes: Any, integers: bool) -> None:
    layer = made.from_config(copy.deepcopy(config))
    shapes = shapes if isinstance(shapes, list) else [shapes]
    inputs = [pydtconv.Input(shape, dtype="int32" if integers else None) for shape in shapes]
    x = [np.ones((2, *shape), "int32" if integers else "float32") for shape in shapes]
    if made is layers.Hashing:  # of arrays alone
        layer(x[0])
        return
    model = pydtconv.Model(
        inputs, layer(*inputs) if made.__name__ in SEPARATE else layer(inputs if len(inputs) > 1 else inputs[0])
    )
    model.predict(x if len(x) > 1 else x[0], verbose=0)


#: an operator, and the shapes of its inputs
IMAGE, LINE, CUBE = (2, 6, 6, 3), (2, 6, 3), (1, 4, 4, 4, 2)
OPERATORS: list[tuple[Any, list[tuple[int, ...]]]] = [
    (ops.AdaptiveAveragePool((2, 3)), [IMAGE]),
    (ops.AdaptiveMaxPool((2,)), [LINE]),
    (ops.AdaptiveMaxPool((2, 2, 2)), [CUBE]),
    (ops.ArgMax(1), [IMAGE]),
    (ops.Attention(), [(2, 6, 2, 4)] * 3),
    *(
        (pool((3, 2), (2, 2), padding), [IMAGE])
        for pool in (ops.AveragePool, ops.MaxPool)
        for padding in ("same", "valid", ((1, 1), (0, 1)))
    ),
    *((pool((3,), (1,), "same"), [LINE]) for pool in (ops.AveragePool, ops.MaxPool)),
    *((pool((2, 3, 2), (1, 1, 1), "same"), [CUBE]) for pool in (ops.AveragePool, ops.MaxPool)),
    (ops.AveragePool((3, 3), (1, 1), ((1, 1), (1, 1)), count_include_pad=True), [IMAGE]),
    (ops.Concatenate(1), [IMAGE, IMAGE]),
    (ops.Conv((1, 1), ((1, 1), (1, 1)), (1, 1), groups=1), [IMAGE, (3, 3, 3, 4)]),
    (ops.Conv(2, "same", 1), [IMAGE, (3, 3, 3, 4)]),
    (ops.DepthwiseConv((1, 1), ((1, 1), (1, 1)), (2, 1)), [IMAGE, (3, 3, 3, 2)]),
    (ops.ConvTranspose((2, 2), "valid", (1, 1), output_padding=(1, 0)), [IMAGE, (3, 3, 4, 3)]),
    (ops.ConvTranspose(2, ((1, 1), (1, 1)), 1), [IMAGE, (3, 3, 4, 3)]),
    (ops.SoftmaxCrossEntropy("sparse", axis=-1, ignore_class=1), [(4, 3), (4,)]),
    (ops.Dropout(0.5, (2, 1, 1, 3), 7, True), [IMAGE]),
    (ops.GaussianNoise(0.5, 7, True), [IMAGE]),
    (ops.ElementwiseLoss(axis=-1), [(4, 3), (4, 3)]),
    (ops.LayerNorm(-1), [IMAGE, (3,), (3,)]),
    (ops.Softmax(1), [IMAGE]),
    (ops.LogSoftmax(1), [IMAGE]),
    *((reduction((1, 2)), [IMAGE]) for reduction in (ops.Max, ops.Mean, ops.Min, ops.Sum)),
    (ops.Pad(((0, 0), (1, 1), (0, 2), (0, 0))), [IMAGE]),
    (ops.Pad(((0, 0), (1, 1), (0, 2), (0, 0)), "reflect"), [IMAGE]),
    (ops.RandomCrop(4, 4, 7, True), [IMAGE]),
    (ops.RandomCrop(4, 4), [IMAGE]),
    (ops.RandomFlip(seed=7, always=True), [IMAGE]),
    (ops.Reshape((2, 36, 3)), [IMAGE]),
    (ops.Slice((0, 1, 1, 0), (2, 4, 4, 3)), [IMAGE]),
    (ops.Transpose((0, 2, 1, 3)), [IMAGE]),
    (ops.Separable((1, 2), (("resize", 3, "linear", True), ("move", 4, 0.5, 1.0, "cubic", False))), [IMAGE]),
    (ops.Separable((1, 2), (("filter", (0.5, 0.5)),) * 2, (6, 6)), [IMAGE]),
    (ops.Upsample((2, 2)), [IMAGE]),
    (ops.Upsample((2, 2), "bilinear"), [IMAGE]),
    (ops.Upsample((2, 2, 2)), [CUBE]),
]


def operator_cases() -> Iterator[tuple[str, Any]]:
    for op, shapes in OPERATORS:
        arrays = [np.ones(shape, "float32") for shape in shapes]
        specs = [pydtconv.Input(batch_shape=shape) for shape in shapes]
        fields = {field.name: getattr(op, field.name) for field in dataclasses.fields(op) if field.init}

        def run(fields: dict[str, Any], op: Any = op, arrays: Any = arrays, specs: Any = specs) -> None:
            made = type(op)(**fields)
            if "always" in fields:
                model = pydtconv.Model(specs, made(*specs))
                model.predict(arrays, verbose=0)
                return
            made(*specs)
            made(*arrays)

        yield str(op), lambda run=run, fields=fields: run(fields)
        for where, value, other in changed(fields):
            yield f"{op} {where} = {value}", lambda run=run, other=other: run(other)


IMAGES, SIGNALS = np.ones((2, 6, 6, 3), "float32"), np.ones((2, 6, 3), "float32")
PROBABILITIES = np.full((2, 3), 1 / 3, "float32")
#: calls of functions, arguments by name, that `tests.ops.keras_calls` has not
CALLS: dict[str, dict[str, Any]] = {
    **{key: {"inputs": IMAGES, "output_size": (2, 3)} for key in ("adaptive_average_pool", "adaptive_max_pool")},
    **{key: {"inputs": IMAGES, "pool_size": (3, 2), "strides": (1, 2)} for key in ("average_pool", "max_pool")},
    "conv": {"inputs": IMAGES, "kernel": np.ones((3, 3, 3, 2), "float32"), "strides": (1, 2), "dilation_rate": (1, 1)},
    "depthwise_conv": {"inputs": IMAGES, "kernel": np.ones((3, 3, 3, 2), "float32"), "strides": (1, 1)},
    "conv_transpose": {"inputs": IMAGES, "kernel": np.ones((3, 3, 2, 3), "float32"), "strides": 2, "output_padding": 1},
    "separable_conv": {
        "inputs": IMAGES,
        "depthwise_kernel": np.ones((3, 3, 3, 2), "float32"),
        "pointwise_kernel": np.ones((1, 1, 6, 2), "float32"),
    },
    "arange": {"start": 0, "stop": 7, "step": 1},
    "argpartition": {"x": SIGNALS, "kth": 1},
    "empty": {"shape": (2, 3)},
    "multi_hot": {"inputs": np.ones((2, 3), "int32"), "num_classes": 4},
    "moments": {"x": IMAGES, "axes": (0, 1)},
    "segment_prod": {"data": SIGNALS[0], "segment_ids": np.array([0, 0, 1, 1, 2, 2]), "num_segments": 3},
    "slice_along": {"x": IMAGES, "axis": 1, "start": 1, "stop": 3},
    "sparsemax": {"x": SIGNALS, "axis": -1},
    "batch_normalization": {"x": IMAGES, "mean": np.ones(3), "variance": np.ones(3), "axis": -1},
    "crop_images": {"images": IMAGES, "top_cropping": 1, "left_cropping": 1, "target_height": 3, "target_width": 3},
    "pad_images": {"images": IMAGES, "top_padding": 1, "left_padding": 1, "target_height": 9, "target_width": 9},
    "extract_patches": {"images": IMAGES, "size": (2, 2), "strides": (1, 1), "dilation_rate": 1},
    "extract_patches_3d": {"volumes": np.ones((1, 4, 4, 4, 2), "float32"), "size": (2, 2, 2), "strides": (1, 1, 1)},
    "gaussian_blur": {"images": IMAGES, "kernel_size": (3, 3)},
    "map_coordinates": {"inputs": SIGNALS[0], "coordinates": np.ones((2, 4), "float32"), "order": 1},
    "resize": {"images": IMAGES, "size": (4, 5)},
    "scale_and_translate": {
        "images": IMAGES,
        "output_shape": (2, 4, 5, 3),
        "scale": np.ones(2, "float32"),
        "translation": np.ones(2, "float32"),
        "spatial_dims": (1, 2),
        "method": "linear",
    },
    "ssim": {"image1": IMAGES, "image2": IMAGES, "filter_size": 3},
    "beta": {"shape": (2, 3), "alpha": 1.0, "beta": 1.0, "seed": 3},
    "binomial": {"shape": (2, 3), "counts": 3, "probabilities": 0.5, "seed": 3},
    "categorical": {"logits": PROBABILITIES, "num_samples": 4, "seed": 3},
    "dropout": {"inputs": SIGNALS, "rate": 0.5, "noise_shape": (2, 1, 3), "seed": 3},
    "gamma": {"shape": (2, 3), "alpha": 1.0, "seed": 3},
    "randint": {"shape": (2, 3), "minval": 0, "maxval": 9, "seed": 3},
    **{name: {"shape": (2, 3), "seed": 3} for name in ("normal", "uniform", "truncated_normal")},
}


def calls(function: Any, name: str) -> Iterator[dict[str, Any]]:
    """Arguments by name, with their defaults."""
    given = [((), CALLS[name])] if name in CALLS else []
    with contextlib.suppress(KeyError):  # no numbers among the arguments
        given = given or calls_of(name, function)
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        return
    for args, kwargs in given:
        bound = inspect.signature(function).bind(*args, **kwargs)
        bound.apply_defaults()
        yield dict(bound.arguments)


def function_cases() -> Iterator[tuple[str, Any]]:
    """Functions, of arrays and of symbolic tensors."""
    for module in (ops, ops.image, pydtconv.random):
        for name in sorted(vars(module)):
            function = getattr(module, name)
            if not inspect.isfunction(function) or name[0] == "_" or name[0].isupper():
                continue
            for given in calls(function, name):
                symbolic = {
                    key: pydtconv.Input(batch_shape=value.shape, dtype=value.dtype)
                    if isinstance(value, np.ndarray) and value.ndim and value.dtype.name in ("float32", "int32")
                    else value
                    for key, value in given.items()
                }
                for how, values in (("", given), (" symbolic", symbolic)):
                    yield name + how, lambda f=function, values=values: f(**values)
                    for where, value, other in changed(values):
                        yield f"{name}{how}{where} = {value}", lambda f=function, other=other: f(**other)


#: operators of ONNX with extents among their attributes
OF_ONNX: dict[str, dict[str, Any]] = {
    "AveragePool": {"kernel_shape": [3, 2], "strides": [1, 1]},
    "MaxPool": {"kernel_shape": [3, 2], "strides": [1, 1], "pads": [0, 0, 0, 0], "dilations": [1, 1]},
    "SpaceToDepth": {"blocksize": 2},
    "DepthToSpace": {"blocksize": 1},
    "LpPool": {"kernel_shape": [3, 2], "p": 2},
    "Flatten": {"axis": 1},
}


def onnx_cases() -> Iterator[tuple[str, Any]]:
    """Files of one operator."""
    import onnx

    def run(kind: str, attributes: dict[str, Any]) -> None:
        node = onnx.helper.make_node(kind, ["x"], ["y"], **attributes)
        x, y = (onnx.helper.make_tensor_value_info(name, 1, ["n", 4, 6, 6]) for name in "xy")
        model = onnx.helper.make_model(onnx.helper.make_graph([node], "g", [x], [y]))
        model.ir_version = 8
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "model.onnx"
            path.write_bytes(model.SerializeToString())
            saving.load_onnx(path).predict(np.ones((1, 4, 6, 6), "float32"), verbose=0)

    for kind, attributes in OF_ONNX.items():
        for where, value, other in changed(attributes, tuple(v for v in VALUES if v < 2**63)):
            yield f"{kind}{where} = {value}", lambda kind=kind, other=other: run(kind, other)


ROOMS = {"layers": layer_cases, "operators": operator_cases, "functions": function_cases, "onnx": onnx_cases}


def main(room: str) -> None:
    def too_long(*_: Any) -> None:
        raise TooLong

    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGALRM, too_long)
    count = 0
    for name, call in ROOMS[room]():
        os.write(3, f"{name}\n".encode()) if len(sys.argv) > 2 else None
        found = verdict(call, name)
        count += 1
        if found is not None:
            print(f"{name}: {found}", flush=True)
    print(f"{count} cases")


if __name__ == "__main__":
    main(sys.argv[1])
