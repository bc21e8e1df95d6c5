"""Functions as operations of functional models: names, order and weights as Keras has them."""

import json
import pickle

import numpy as np
import pytest

import pydtconv
from pydtconv import layers
from tests.fuzz import room_keras
from tests.models import operation_graphs
from tests.real_keras import import_keras

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
RECORDED = json.loads(operation_graphs.FILE.read_text())


def test_every_function_is_recorded_or_left_out_for_a_reason():
    assert sorted(RECORDED) == sorted(operation_graphs.names())
    assert {name for name, graph in RECORDED.items() if graph is None} == set(operation_graphs.NONE_IN_KERAS)


@pytest.mark.slow
def test_what_is_recorded_is_keras():
    keras = import_keras()
    for name in operation_graphs.names():
        if name not in operation_graphs.NONE_IN_KERAS:
            assert operation_graphs.graph_of(keras, name) == RECORDED[name], name


def test_functions_are_the_operations_that_they_are_in_keras():
    names = [name for name in RECORDED if name not in operation_graphs.NONE_IN_KERAS]
    for name in names:
        if name not in operation_graphs.ARRAYS_ONLY:
            assert operation_graphs.graph_of(pydtconv, name) == RECORDED[name], name
            continue
        with pytest.raises((NotImplementedError, TypeError, ValueError)):
            operation_graphs.graph_of(pydtconv, name)


@pytest.mark.parametrize("name", ["affine", "mean_of", "mish", "slice_along"])
def test_functions_that_keras_has_not_are_one_operation_each(name):
    x = pydtconv.Input((4, 5))
    more = {"affine": (2.0, 3.0), "slice_along": (1, 0, 2)}.get(name, ())
    given = [x, x] if name == "mean_of" else x
    made = pydtconv.Model(x, getattr(pydtconv.ops, name)(given, *more)).operations
    assert len(made) == 2


@pydtconv.saving.register_keras_serializable(package="tests")
class Scale(pydtconv.Operation):
    """x * factor, and the sum with another tensor where there is one, else that with 1."""

    def __init__(self, factor, name=None):
        super().__init__(name=name)
        self.factor = factor

    def call(self, x, y=None):
        scaled = x * self.factor
        return (scaled, scaled + 1) if y is None else scaled + y


class Settings(pydtconv.Operation):
    def __init__(self, alpha, *more, beta=1.0, name=None):
        super().__init__(name=name)

    def call(self, x):
        return x


class WithoutName(pydtconv.Operation):
    def __init__(self, alpha, beta=1.0):
        super().__init__()

    def call(self, x):
        return x


def test_configs_of_operations_are_those_of_keras():
    assert Settings(0.2, name="a").get_config() == {"alpha": 0.2, "beta": 1.0, "name": "a"}
    config = WithoutName(0.2).get_config()
    assert config == {"alpha": 0.2, "beta": 1.0} == WithoutName.from_config(config).get_config()
    for operation in (Settings(object()), Settings(0.2, 3)):
        with pytest.raises(NotImplementedError, match=r"write get_config\(\)"):
            operation.get_config()


@pydtconv.saving.register_keras_serializable(package="tests")
def doubled(x):
    return x + x


def test_functions_that_are_registered_are_named_in_files():
    x = pydtconv.Input((3,), batch_size=2)
    model = pydtconv.Model(x, pydtconv.ops.vectorized_map(doubled, x))
    again = pydtconv.models.model_from_json(model.to_json())
    data = np.arange(6, dtype="float32").reshape(2, 3)
    np.testing.assert_array_equal(again(data), 2 * data)
    for name in ("tests>tripled", "abs"):
        with pytest.raises(ValueError, match="vectorized_map: expected a function that is registered"):
            pydtconv.models.model_from_json(model.to_json().replace("tests>doubled", name))


def test_operations_of_ones_own(tmp_path):
    x = pydtconv.Input((3,))
    data = np.arange(6, dtype="float32").reshape(2, 3)
    np.testing.assert_array_equal(Scale(3.0)(data)[1], 3 * data + 1)
    first, second = Scale(2.0)(x)
    model = pydtconv.Model(x, Scale(5.0, name="last")(first, y=second))
    assert second.shape == (None, 3)
    assert model.operations[-1].get_config() == {"name": "last", "factor": 5.0}
    model.save(tmp_path / "m.keras")
    for other in (model, pydtconv.saving.load_model(tmp_path / "m.keras"), pydtconv.models.clone_model(model)):
        np.testing.assert_array_equal(other.predict(data, verbose=0), 12 * data + 1)
        assert [each.name for each in other.operations] == [each.name for each in model.operations]


def test_weights_of_branches_that_meet_behind_a_composite_function():
    """The order that Keras 3.15 gives: with a depth too many for the slice, the first two layers change places."""
    i = pydtconv.Input((4, 5))
    tokens, mean = layers.Dense(5, name="tokens")(i), layers.Dense(5, name="mean")(i)
    outputs = [layers.Dense(5, name="c")(layers.Dense(5, name="b")(mean)), layers.Dense(5, name="a")(tokens[:, 0])]
    names = [layer.name for layer in pydtconv.Model(i, outputs).layers[1:]]
    assert names == ["mean", "tokens", "b", "c", "a"]


@pytest.mark.parametrize("count", [6, pytest.param(100, marks=pytest.mark.slow)])
def test_random_graphs_take_weights_and_files_of_keras_and_give_theirs(count):
    keras = import_keras()
    ways = [room_keras.try_graph(keras, (seed, 0)) for seed in range(count)]
    assert len(ways) == count


def test_functions_with_symbolic_tensors_around_them_are_traced():
    """Keras cannot run these."""
    x = pydtconv.Input((3,))
    y = pydtconv.ops.cond(pydtconv.ops.sum(x) > 2, lambda: x * 2, lambda: x)
    for value in (np.ones((1, 3), "float32"), np.zeros((1, 3), "float32")):
        np.testing.assert_array_equal(pydtconv.Model(x, y)(value), value * 2)


def test_lists_of_indices_stay_lists_in_files(tmp_path):
    x = pydtconv.Input(batch_shape=(2, 3, 4))
    model = pydtconv.Model(x, [x[[1, 0]], x[:, [0, 2]]])
    model.save(tmp_path / "m.keras")
    data = np.random.default_rng(0).random((2, 3, 4), np.float32)
    rows, columns = pydtconv.saving.load_model(tmp_path / "m.keras")(data)
    np.testing.assert_array_equal(rows, data[[1, 0]])
    np.testing.assert_array_equal(columns, data[:, [0, 2]])


def test_pickles_and_copies_of_functions():
    for function in (pydtconv.ops.stack, pydtconv.ops.image.resize, pydtconv.ops.flip):
        assert pickle.loads(pickle.dumps(function)) is function
