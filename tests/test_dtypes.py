"""What is no dtype of ours is refused by its name, wherever a dtype comes in."""

import inspect
import json
import re
import zipfile

import numpy as np
import pytest

import pydtconv
from pydtconv import dtypes, initializers, layers, losses, metrics, ops, preprocessing, random, utils
from pydtconv.files.reading import BadFileError

#: names that NumPy takes, some of memory that holds addresses, and names that it does not take
NONE_OF_OURS = (
    "object",
    "O",
    "str",
    "S1000000000",
    "V8",
    "datetime64[s]",
    "longdouble",
    "(2,)f4",
    "f4,i4",
    "f4,",
    "nine",
)
VALUES = {
    "shape": (2, 3),
    "num_classes": 3,
    "N": 3,
    "n": 3,
    "x": np.array([1, 2]),
    "num": 3,
    "start": 2,
    "fill_value": 1.0,
    "logits": np.ones((2, 3)),
    "num_samples": 2,
    "recall": 0.5,
    "precision": 0.5,
    "specificity": 0.5,
    "sensitivity": 0.5,
}
ABSTRACT = initializers.Initializer.__call__
REFUSED = r"dtype.*: expected .*got .*{}"


def refuses(name, function, *args, **kwargs):
    with pytest.raises((TypeError, ValueError), match=REFUSED.format(re.escape(name))):
        function(*args, **kwargs)


def with_dtype(module):
    """[(name, function)] of what takes a dtype."""
    found = [(name, getattr(module, name)) for name in dir(module) if not name.startswith("_")]
    found = [(name, value) for name, value in found if callable(value) and value.__module__ != "pydtconv.dtypes"]
    return [(name, value) for name, value in found if "dtype" in inspect.signature(value).parameters]


def given(function):
    """Values of the arguments without a default, but for self and dtype."""
    parameters = inspect.signature(function).parameters.values()
    names = [p.name for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
    return {name: VALUES.get(name, np.ones(3)) for name in names if name not in ("self", "dtype")}


def test_names():
    for name in (
        "bool",
        "int8",
        "uint64",
        "float16",
        "bfloat16",
        "float64",
        "complex64",
        np.float32,
        np.dtype(">i4"),
        int,
    ):
        assert dtypes.in_memory(dtypes.name_of(name)).kind in "biufc"
    for name in (*NONE_OF_OURS, np.dtype("O"), None, 3, {}, object):
        with pytest.raises(TypeError, match=r"dtype: expected one of bool, int8, .* got "):
            dtypes.name_of(name)
    with pytest.raises(TypeError, match="got 'object'"):
        dtypes.in_memory("object")


@pytest.mark.parametrize("dtype", NONE_OF_OURS)
def test_functions_of_ops(dtype):
    walked = with_dtype(ops)
    assert len(walked) > 20
    for name, function in walked:
        if name not in ("Spec", "multi_hot"):  # a graph refuses the first; the second wants a keyword argument
            refuses(dtype, function, **given(function), dtype=dtype)
    refuses(dtype, ops.multi_hot, [1], num_classes=2, dtype=dtype)
    x = pydtconv.Input((3,), dtype="int32")
    for symbolic in (lambda: ops.Cast(dtype)(x), lambda: ops.one_hot(x, 4, dtype=dtype), lambda: ops.cast(x, dtype)):
        refuses(dtype, symbolic)
    refuses(dtype, lambda: ops.TableOp("one_hot", (("num_classes", 3), ("dtype", dtype))))


@pytest.mark.parametrize("dtype", NONE_OF_OURS)
def test_layers_variables_and_initializers(dtype):
    for make in (
        lambda: pydtconv.Input((3,), dtype=dtype),
        lambda: pydtconv.KerasTensor((None, 3), dtype=dtype),
        lambda: pydtconv.Variable(np.zeros(3), dtype=dtype),
        lambda: pydtconv.layers.Dense(3).add_weight((3,), dtype=dtype),
        lambda: pydtconv.DTypePolicy(dtype),
        lambda: layers.InputSpec(dtype=dtype),
        lambda: pydtconv.config.set_floatx(dtype),
    ):
        with pytest.raises((TypeError, ValueError), match="expected"):
            make()
    for name, layer in with_dtype(layers):
        if name not in ("Input", "InputLayer", "InputSpec"):
            with pytest.raises((TypeError, ValueError), match="expected"):
                layer(**dict.fromkeys(given(layer.__init__), 2), dtype=dtype)
    for made in vars(initializers).values():
        if inspect.isclass(made) and issubclass(made, initializers.Initializer) and made.__call__ is not ABSTRACT:
            shape = (3, 1, 4) if made is initializers.STFT else (3, 3)
            refuses(dtype, made(), shape, dtype)


@pytest.mark.parametrize("dtype", NONE_OF_OURS)
def test_random_losses_metrics_and_utilities(dtype):
    for _, function in with_dtype(random):
        refuses(dtype, function, **given(function), dtype=dtype)
    for module in (losses, metrics):
        for _, made in with_dtype(module):
            if inspect.isclass(made):
                refuses(dtype, made, **given(made.__init__), dtype=dtype)
    for call in (
        lambda: utils.img_to_array(np.zeros((2, 2, 3)), dtype=dtype),
        lambda: utils.array_to_img(np.zeros((2, 2, 3)), dtype=dtype),
        lambda: preprocessing.image.ImageDataGenerator(dtype=dtype),
        lambda: utils.standardize_dtype(dtype),
        lambda: pydtconv.backend.is_float_dtype(dtype),
    ):
        refuses(dtype, call)


def places_of_dtypes(data, found):
    """All dictionaries in a config that have a dtype."""
    if isinstance(data, dict):
        found += [data] * isinstance(data.get("dtype"), str)
        data = list(data.values())
    for item in data if isinstance(data, list) else ():
        places_of_dtypes(item, found)
    return found


def test_files(tmp_path):
    """Each dtype of a model's config is another one, in turn: refused when the file is loaded."""
    x = pydtconv.Input((4,), dtype="int32", name="x")
    y = ops.add(ops.Cast("float32")(x), ops.sum(ops.one_hot(x, 4, dtype="float32"), 1))
    y = ops.prod(ops.expand_dims(layers.Dense(3)(y), 0), axis=0, dtype="float32")
    model = pydtconv.Model(x, y)
    model.save(tmp_path / "whole.keras")
    with zipfile.ZipFile(tmp_path / "whole.keras") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    text = members["config.json"].decode()
    count = len(places_of_dtypes(json.loads(text), []))
    assert count > 8
    for index in range(count):
        for dtype in ("object", "S1000000000", "longdouble", "nine"):
            config = json.loads(text)
            place = places_of_dtypes(config, [])[index]
            if "keras_history" in place:
                continue  # says of which dtype a tensor was; nobody reads it
            place["dtype"] = dtype
            with zipfile.ZipFile(tmp_path / "changed.keras", "w") as archive:
                for name, data in members.items():
                    archive.writestr(name, json.dumps(config) if name == "config.json" else data)
            with pytest.raises(BadFileError, match=rf"changed\.keras.*got .*{dtype}"):
                pydtconv.saving.load_model(tmp_path / "changed.keras")
