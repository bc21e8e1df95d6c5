"""What the configs of files may hold: every argument of everything that a file may name, at values made to harm."""

import inspect
import json
import os

import numpy as np
import pytest

import pydtconv
from pydtconv import config, layers, ops, saving
from pydtconv.files.reading import BadFileError
from tests.serialization import trying
from tests.serialization.calls import VECTORS
from tests.serialization.members import Member, members, network
from tests.traced import memory_below

ALL = members()
KINDS = {kind: [i for i, member in enumerate(ALL) if member.kind == kind] for kind in {m.kind for m in ALL}}
#: parts of the walk that are about as long
PARTS = {
    **{f"layers {i}": KINDS["layer"][i::3] for i in range(3)},
    **{f"functions {i}": KINDS["function"][i::6] for i in range(6)},
    "operators": KINDS["operator"],
    "losses and metrics": [*KINDS["loss"], *KINDS["metric"]],
    "others": [
        i
        for kind in sorted(KINDS)
        if kind not in ("layer", "function", "operator", "loss", "metric")
        for i in KINDS[kind]
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
def test_each_argument_at_values_made_to_harm(part):
    """BadFileError that names the file and the value, or a model that works, in 1 GiB and 20 s."""
    count, bad = trying.walk(PARTS[part])
    assert count > 8 * len(PARTS[part])
    assert not bad, "\n".join(bad)


def loaded(tmp_path, model, **arguments):
    path = tmp_path / "a.keras"
    text = model if isinstance(model, str) else json.dumps(model)
    trying.write(path, text)
    return saving.load_model(path, **arguments)


@pytest.fixture
def refused(tmp_path):
    """Loads a model that must be refused within 64 MiB, by an error that names the file and `told`."""

    def load(model, told):
        with memory_below(1 << 26), pytest.raises(BadFileError, match=told) as found:
            loaded(tmp_path, model)
        assert "a.keras" in str(found.value)

    return load


def layer(name, **arguments):
    return Member("layer", "layers", name, {**arguments, "name": "it"}, (VECTORS,)).model()


def function(name, args, **arguments):
    return network(
        {"module": "keras.src.ops.any", "class_name": name, "config": arguments}, (VECTORS,), lambda x: args(x)
    )


# --- no other file is read --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["StringLookup", "IntegerLookup"])
@pytest.mark.parametrize("path", ["words.txt", "/etc/passwd", "/dev/zero", "pipe"])
def test_a_vocabulary_of_a_file_is_no_path(name, path, refused, tmp_path, monkeypatch):
    """SECURITY.md: no other file is read."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "words.txt").write_text("1\n2\n")
    os.mkfifo(tmp_path / "pipe")
    refused(layer(name, vocabulary=path), "vocabulary.*may name no file")
    place = {"module": "keras.layers", "class_name": name, "config": {"vocabulary": path}}
    for hidden in ({"kernel_initializer": place}, {"activation": place}, {"kernel_regularizer": place}):
        refused(layer("Dense", units=3, **hidden), "kernel|may name no file")


def test_a_vocabulary_is_read_where_the_file_is_trusted(tmp_path, monkeypatch):
    path = tmp_path / "words.txt"
    path.write_text("a\nb\n")
    assert layers.StringLookup(vocabulary=str(path)).get_vocabulary() == ["[UNK]", "a", "b"]
    data = {"module": "keras.layers", "class_name": "StringLookup", "config": {"vocabulary": str(path)}}
    for read in (layers.deserialize, saving.deserialize_keras_object):
        with pytest.raises(ValueError, match="may name no file"):
            read(data)
    assert saving.deserialize_keras_object(data, safe_mode=False).vocabulary == ["a", "b"]
    monkeypatch.setattr(config, "_unsafe_deserialization", True)
    assert layers.deserialize(data).vocabulary == ["a", "b"]


@pytest.mark.parametrize("name", ["pipe", "/dev/zero", "."])
def test_a_vocabulary_is_a_regular_file(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadFileError, match="expected a regular file"):
        layers.StringLookup(vocabulary=name)


# --- no code runs, and no call but those of the graph -----------------------------------------------------------------


LOOPS = {
    "WhileLoop": {"cond": "relu", "body": "relu"},
    "ForiLoop": {"lower": 0, "upper": 10**12, "body_fun": "relu"},
    "Scan": {"f": "relu", "length": 10**9},
    "Map": {"f": "relu"},
    "VectorizedMap": {"function": "relu"},
    "Cond": {"true_fn": "relu", "false_fn": "relu"},
    "Switch": {"branches": ["relu"]},
    "AssociativeScan": {"f": "relu"},
    "CustomGradient": {"f": "relu"},
    "Jvp": {"fun": "relu"},
    "Compute": {"op": "relu"},
}


@pytest.mark.parametrize("name", LOOPS)
def test_functions_that_call_others_are_not_called(name, refused):
    refused(function(name, lambda x: x, **LOOPS[name]), "pydtconv.ops does not have")


def test_no_function_takes_a_function():
    """Whatever `ops` will have: a file names operators of the graph alone."""
    from pydtconv.models.keras_operations import operation_of

    for member in ALL:
        if member.kind == "function" and any(
            "Callable" in str(each.annotation) for each in inspect.signature(member.target).parameters.values()
        ):
            with pytest.raises(ValueError, match=r"which pydtconv\.ops does not have"):
                operation_of({"module": "keras.src.ops", "class_name": member.name, "config": {}})


CONSTANTS = {
    "Ones": [[20000, 20000]],
    "Zeros": [[20000, 20000]],
    "Full": [[20000, 20000], 1.0],
    "Eye": [20000],
    "Identity": [20000],
    "Tri": [20000],
    "Arange": [0, 10**9],
    "Linspace": [0.0, 1.0, 10**9],
    "Logspace": [0.0, 1.0, 10**9],
    "Hamming": [10**9],
    "Tile": [[1.0], [10**9]],
    "Repeat": [[1.0], 10**9],
    "OneHot": [[1], 10**9],
    "ConvertToTensor": [[1.0]],
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_calls_without_a_tensor_of_the_model_are_no_operators(name, refused):
    refused(function(name, lambda x: CONSTANTS[name]), "expected a tensor of the model|expected")


@pytest.mark.parametrize(("name", "shape"), [("Diag", ()), ("Diagflat", VECTORS)])
def test_diagonals_far_from_the_main_one_claim_their_matrix(name, shape, refused):
    data = {"module": "keras.src.ops.any", "class_name": name, "config": {"k": 10**6}}
    refused(network(data, (shape,), lambda x: [x[0]]), "a diagonal 1000000 beside the main one")


def test_a_number_that_becomes_a_large_constant_claims_it(refused):
    data = {"module": "keras.src.ops.any", "class_name": "Meshgrid", "config": {}}
    refused(network(data, ((10**6,),), lambda x: [x[0], 10**6]), "a constant of shape")


@pytest.mark.parametrize("name", ["relu", "while_loop", "Op", "Spec", "numpy", "__builtins__", "compute", "RULES", 3])
def test_an_operator_is_a_class_of_operators(name, refused):
    data = {"module": "pydtconv.ops", "class_name": name, "config": {"name": "it"}, "registered_name": None}
    refused(network(data, (VECTORS,), lambda x: x), "unknown op")


def test_an_operator_without_a_tensor_is_not_called(refused):
    data = {"module": "pydtconv.ops", "class_name": "Activation", "config": {"name": "it", "kind": "relu"}}
    refused(network(data, (VECTORS,), lambda x: [[1.0]]), "'it': expected a tensor of the model")


def test_operators_with_functions_of_their_own_are_in_no_file(refused):
    relu = {"module": "builtins", "class_name": "function", "config": "relu", "registered_name": "relu"}
    for field in ("relu", relu):
        data = {"module": "pydtconv.ops", "class_name": "NumpyOp", "config": {"name": "it", "forward_function": field}}
        refused(network(data, (VECTORS,), lambda x: x), "NumpyOp.*forward_function")


# --- memory is bounded ------------------------------------------------------------------------------------------------


SIZES = {
    "CategoryEncoding": ({"num_tokens": 400_000_000}, True),
    "IntegerLookup": ({"vocabulary": [1, 2], "num_oov_indices": 500_000_000}, True),
    "RepeatVector": ({"n": 300_000_000}, True),
    "Hashing": ({"num_bins": 500_000_000}, True),
    "HashedCrossing": ({"num_bins": 500_000_000}, True),
    "Discretization": ({"num_bins": 500_000_000}, True),
    "Dense": ({"units": 500_000_000}, False),
    "Embedding": ({"input_dim": 500_000_000, "output_dim": 3}, False),
    "MelSpectrogram": ({"fft_length": 1 << 30}, False),
}


@pytest.mark.parametrize("name", SIZES)
def test_sizes_take_no_memory_but_that_of_weights(name, refused, tmp_path, monkeypatch):
    arguments, taken = SIZES[name]
    if not taken:
        refused(layer(name, **arguments), "more than the file's size allows")
        return
    built = getattr(layers, name)(**arguments)
    with memory_below(1 << 24):
        again = type(built).from_config(json.loads(json.dumps(built.get_config())))
        if name not in ("Hashing", "HashedCrossing", "Discretization"):
            again(pydtconv.Input(VECTORS if name != "CategoryEncoding" else (1,)))


def test_tokens_of_a_lookup_with_many_unknown_ones():
    lookup = layers.IntegerLookup(vocabulary=[7, 9], num_oov_indices=10**8, mask_token=0)
    with memory_below(1 << 24):
        found = np.asarray(lookup(np.array([7, 9, 0, 3, 10**8 + 3])))
    np.testing.assert_array_equal(found, [10**8 + 1, 10**8 + 2, 0, 4, 4])
    back = layers.IntegerLookup(vocabulary=[7, 9], num_oov_indices=10**8, mask_token=0, invert=True)
    with memory_below(1 << 24):
        np.testing.assert_array_equal(back(np.array([10**8 + 1, 10**8 + 2, 0, 4, -3])), [7, 9, 0, -1, -1])


@pytest.mark.parametrize("tag", ["__numpy__", "__tensor__"])
def test_arrays_of_long_items_are_refused(tag, refused):
    value = {"class_name": tag, "config": {"value": [1, 2], "dtype": "S1000000000"}}
    refused(layer("Normalization", mean=value, variance=1.0), "dtype|data type|more than")


@pytest.mark.parametrize(
    ("kind", "name", "arguments"),
    [
        ("metric", "MeanIoU", {"num_classes": 10**8}),
        ("metric", "AUC", {"num_thresholds": 10**9}),
        ("metric", "PrecisionAtRecall", {"recall": 0.5, "num_thresholds": 10**9}),
    ],
)
def test_metrics_of_any_size_are_refused(kind, name, arguments, refused):
    refused(Member(kind, "metrics", name, arguments, (VECTORS,)).model(), f"{name}.*more than the file's size allows")


SHAPES = {
    "tile": lambda x: ops.tile(x, [1, 2000]),
    "repeat": lambda x: ops.repeat(x, 2000, axis=1),
    "diagflat": lambda x: ops.diagflat(x[:, : 1 << 14]),
    "roll": lambda x: ops.roll(x, 1, axis=1),
    "rot90": lambda x: ops.rot90(x),
    "index": lambda x: x[:, [0, 2, 1]],
    "stft": lambda x: ops.stft(x, 8, 4, 1 << 20)[0],
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_are_inferred_without_arrays(name):
    with memory_below(1 << 25):
        SHAPES[name](pydtconv.Input((1 << 20,)))


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda x: ops.diag(x, 2), (5,)),
        (lambda x: ops.diag(x, -3), (5, 4)),
        (lambda x: ops.diag(x, 3), (5, 4)),
        (lambda x: ops.diagflat(x, -2), (3, 4)),
        (lambda x: ops.unfold(x, (2, 3), dilation=(1, 2), padding=1, stride=2), (2, 3, 8, 9)),
        (lambda x: ops.rot90(x, 3), (2, 3, 4)),
        (lambda x: ops.correlate(x, np.ones(3, "float32"), "full"), (7,)),
        (lambda x: ops.correlate(x, np.ones(3, "float32"), "same"), (7,)),
        (lambda x: ops.correlate(np.ones(3, "float32"), x, "valid"), (7,)),
        (lambda x: ops.stft(x, 6, 3, 8)[0], (2, 30)),
        (lambda x: ops.stft(x, 6, 3, 7, center=False)[0], (2, 30)),
        (lambda x: ops.array_split(x, 3, 1)[1], (2, 8)),
        (lambda x: x[:, [0, 2, 1]], (2, 8, 3)),
        (lambda x: ops.image.extract_patches(x, 2), (1, 6, 5, 3)),
    ],
)
def test_inferred_shapes_are_those_of_the_arrays(make, shape):
    inputs = pydtconv.Input(batch_shape=shape)
    assert make(inputs).shape == np.shape(make(np.ones(shape, "float32")))


# --- the error names the file and the value ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("Dense", {"units": "abc"}, r"Dense 'it': units: expected int below 2\*\*31, got 'abc'"),
        ("Dense", {"units": 2**31}, r"Dense 'it': units: expected int below 2\*\*31, got 2147483648"),
        ("Dense", {"units": 10**30}, r"config\.layers\[1\]\.config\.units: expected a number of 64 bits"),
        ("Dense", {"units": 3, "use_bias": "abc"}, r"Dense 'it': use_bias: expected bool, got 'abc'"),
        (
            "Dense",
            {"units": 3, "kernel_initializer": 3},
            r"Dense 'it': kernel_initializer: expected initializers, got 3",
        ),
        ("BatchNormalization", {"axis": 2**31}, "BatchNormalization 'it': axis: expected int below 64"),
        ("LayerNormalization", {"epsilon": None}, "LayerNormalization 'it': epsilon: expected float, got None"),
        ("Dropout", {"rate": float("nan")}, "Dropout 'it': .*rate.* nan"),
    ],
)
def test_the_value_is_named(name, arguments, told, refused):
    refused(layer(name, **arguments), told)


def test_all_of_a_file_is_looked_at_before_anything_is_made(refused, monkeypatch):
    monkeypatch.setattr(layers.Dense, "__init__", None)  # would end in another error
    refused(layer("Dense", units=[3, 10**30]), r"config\.units\[1\]: expected a number of 64 bits")
    deep = json.dumps(layer("Dense", units="DEEP")).replace('"DEEP"', "[" * 300 + "]" * 300)
    refused(deep, "nested 200 deep at most")


@pytest.mark.parametrize("name", ["optimizer", "loss", "metrics"])
def test_objects_in_the_place_of_others_are_refused(name, refused):
    lookup = {"module": "keras.layers", "class_name": "StringLookup", "config": {"vocabulary": "/etc/passwd"}}
    model = {**layer("Dense", units=3), "compile_config": {"optimizer": "sgd", "loss": "mse", name: lookup}}
    refused(model, "may name no file")


def test_configs_of_the_package_are_within_the_table():
    """Each member's own config, as it is written, is taken."""
    kinds = ("layer", "initializer", "regularizer", "constraint", "loss", "metric", "optimizer", "schedule")
    bases = ("Wrapper", "RandomInitializer", "STFT", "_Norm", "LossFunctionWrapper", "MeanMetricWrapper", "Lambda")
    for member in ALL:
        if member.kind in kinds and member.name not in bases:
            made = saving.deserialize_keras_object(member.data())
            written = json.loads(json.dumps(saving.serialize_keras_object(made)))
            assert type(saving.deserialize_keras_object(written)) is type(made), member.id


def test_tuples_in_configs_come_back_as_tuples():
    layer = layers.RandomTranslation((-0.5, 0.5), 0.0)
    data = saving.serialize_keras_object(layer)
    assert data["config"]["height_factor"] == (-0.5, 0.5)
    assert saving.deserialize_keras_object(data).get_config() == layer.get_config()
