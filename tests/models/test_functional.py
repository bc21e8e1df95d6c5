"""Functional models: structure, sharing, nesting, cutting, order of layers, errors."""

import numpy as np
import pytest

from pydtconv import Input, Model, Sequential, layers, metrics, models, ops, optimizers
from pydtconv.graph import Graph
from pydtconv.ops.base import Spec
from tests.real_keras import import_keras


def residual():
    x = Input((8, 8, 4), name="image")
    y = layers.Conv2D(4, 3, padding="same", name="first")(x)
    y = layers.ReLU(name="relu")(y)
    y = layers.Add(name="sum")([x, y])
    y = layers.GlobalAveragePooling2D(name="pool")(y)
    return Model(x, y, name="residual")


def test_shapes_layers_and_names():
    model = residual()
    assert isinstance(model, models.Functional)
    assert [layer.name for layer in model.layers] == ["image", "first", "relu", "sum", "pool"]
    assert model.input_shape == (None, 8, 8, 4)
    assert model.output_shape == (None, 4)
    assert model.input_names == ["image"]
    assert model.output_names == ["pool"]
    assert model.get_layer("relu") is model.get_layer(index=2)
    assert model.built
    assert model.count_params() == 3 * 3 * 4 * 4 + 4
    with pytest.raises(ValueError, match="'rellu'"):
        model.get_layer("rellu")


def test_call_on_arrays():
    model = residual()
    x = np.random.default_rng(0).normal(size=(3, 8, 8, 4)).astype("float32")
    first = model.get_layer("first")
    y = np.maximum(first(x), 0) + x
    np.testing.assert_allclose(model(x), y.mean((1, 2)), rtol=1e-5, atol=1e-6)


def test_call_in_a_graph_names_nodes_after_layers():
    model = residual()
    with Graph() as graph:
        y = model(graph.input("x", Spec((2, 8, 8, 4))))
    assert y.shape == (2, 4)
    assert {node.scope.split("/")[0] for node in graph.nodes} == {"residual"}
    assert "residual/first" in {node.scope for node in graph.nodes}


def test_several_inputs_and_outputs_as_lists():
    a, b = Input((3,), name="a"), Input((3,), name="b")
    model = Model([a, b], [a + b, a - b])
    x, y = np.ones((2, 3), "float32"), np.full((2, 3), 3, "float32")
    total, difference = model([x, y])
    np.testing.assert_array_equal(total, np.full((2, 3), 4))
    np.testing.assert_array_equal(difference, np.full((2, 3), -2))
    total, _ = model({"a": x, "b": y})
    np.testing.assert_array_equal(total, np.full((2, 3), 4))
    with pytest.raises(ValueError, match="expected 2 inputs, got 1"):
        model([x])
    with pytest.raises(ValueError, match="'b' is missing"):
        model({"a": x})


def test_dicts_of_inputs_and_outputs():
    inputs = {"left": Input((3,), name="left"), "right": Input((3,), name="right")}
    model = Model(inputs, {"sum": inputs["left"] + inputs["right"], "left": ops.relu(inputs["left"])})
    y = model({"right": np.full((2, 3), 2.0), "left": np.full((2, 3), -1.0)})
    np.testing.assert_array_equal(y["sum"], np.ones((2, 3)))
    np.testing.assert_array_equal(y["left"], np.zeros((2, 3)))


def test_shared_layer_has_its_weights_once():
    conv = layers.Conv2D(2, 1)
    a, b = Input((4, 4, 2)), Input((4, 4, 2))
    model = Model([a, b], layers.Subtract()([conv(a), conv(b)]))
    assert len(model.weights) == 2
    x = np.random.default_rng(0).normal(size=(2, 4, 4, 2))
    np.testing.assert_allclose(model([x, x]), 0, atol=1e-6)
    assert len(conv._pydt_inbound_nodes) == 2


def test_nested_models():
    inner = residual()
    x = Input((8, 8, 4))
    outer = Model(x, inner(layers.ReLU()(x)))
    assert inner in outer.layers
    a = np.random.default_rng(0).normal(size=(2, 8, 8, 4)).astype("float32")
    np.testing.assert_allclose(outer(a), inner(np.maximum(a, 0)), rtol=1e-6)
    assert [w.path for w in outer.weights] == [w.path for w in inner.weights]


def test_feature_extractor_and_head():
    model = residual()
    a = np.random.default_rng(0).normal(size=(2, 8, 8, 4)).astype("float32")
    features = Model(model.input, model.get_layer("relu").output)
    tail = Model(model.get_layer("sum").output, model.output)
    np.testing.assert_allclose(tail(features(a) + a), model(a), rtol=1e-5)
    assert features.get_layer("first") is model.get_layer("first")


def test_disconnected_and_wrong_inputs():
    a, b = Input((3,), name="a"), Input((3,), name="b")
    with pytest.raises(ValueError, match="depend on the input 'b'"):
        Model(a, a + b)
    with pytest.raises(ValueError, match="expected symbolic tensors"):
        Model(np.ones(3), a)
    model = Model(a, ops.relu(a))
    with pytest.raises(ValueError, match=r"input 'a': expected shape \(None, 3\), got \(2, 4\)"):
        model(np.ones((2, 4)))


def test_unused_input_belongs_to_the_model():
    a, b = Input((3,), name="a"), Input((3,), name="b")
    model = Model([a, b], ops.relu(a))
    np.testing.assert_array_equal(model([np.ones((1, 3)), np.zeros((1, 3))]), np.ones((1, 3)))


def test_equal_names_are_refused():
    x = Input((4, 4, 2))
    y = layers.ReLU(name="same")(layers.ReLU(name="same")(x))
    with pytest.raises(ValueError, match="'same'"):
        Model(x, y)


def test_arithmetic_on_symbolic_tensors():
    x = Input((3,))
    model = Model(x, (2 * x + 1) / 4 - x**2 + (1 - x) * -x)
    a = np.random.default_rng(0).normal(size=(5, 3))
    np.testing.assert_allclose(model(a), (2 * a + 1) / 4 - a**2 + (1 - a) * -a, rtol=1e-5, atol=1e-6)


def test_slices_of_symbolic_tensors():
    x = Input((6, 4))
    model = Model(x, x[:, 1:4, -1] + x[:, 0, None, 2])
    a = np.random.default_rng(0).normal(size=(5, 6, 4)).astype("float32")
    np.testing.assert_array_equal(model(a), a[:, 1:4, -1] + a[:, 0, None, 2])
    x = Input((None, 4))
    np.testing.assert_array_equal(Model(x, x[:, -1])(a), a[:, -1])


def test_symbolic_tensors_have_no_values():
    x = Input((3,))
    for read in (np.asarray, ops.convert_to_numpy):  # the class of error is Keras's
        with pytest.raises(ValueError, match="no value"):
            read(x)
    with pytest.raises(NotImplementedError, match="cannot be iterated over"):
        list(x)
    with pytest.raises(TypeError, match="branch"):
        bool(x)


def test_training_argument_reaches_all_layers():
    class Mode(layers.Layer):
        def call(self, inputs, training=None):
            return inputs * (2.0 if training else 1.0)

    x = Input((3,))
    inner = Model(x, Mode()(x))
    z = Input((3,))
    model = Model(z, Sequential([inner, Mode()])(z))
    assert model(np.ones((1, 3)), training=True)[0, 0] == 4
    assert model(np.ones((1, 3)))[0, 0] == 1


def test_a_call_with_training_false_stays_in_inference():
    x = Input((4, 4, 2))
    frozen = layers.BatchNormalization()
    y = Model(x, frozen(x, training=False))
    a = np.random.default_rng(0).normal(3, 1, size=(8, 4, 4, 2))
    np.testing.assert_allclose(y(a, training=True), a / np.sqrt(1.001), rtol=1e-5)


def test_subclass_with_inputs_and_outputs():
    class Named(Model):
        def __init__(self, width):
            x = Input((4, 4, 2))
            super().__init__(inputs=x, outputs=layers.Conv2D(width, 1)(x))
            self.width = width

    model = Named(5)
    assert model.output_shape == (None, 4, 4, 5)
    assert model(np.ones((1, 4, 4, 2))).shape == (1, 4, 4, 5)
    assert len(model.weights) == 2


def branched(k):
    """The same network from either library, in which depth, creation and traversal give different orders."""
    x = k.layers.Input((8, 8, 3), name="x")
    shared = k.layers.Conv2D(3, 1, name="shared")
    late = k.layers.Conv2D(3, 3, padding="same", name="late")(x)
    a = shared(k.layers.ReLU(name="r1")(late))
    b = shared(x)
    c = k.layers.Conv2D(3, 1, name="c")(k.layers.Add(name="add1")([b, x]))
    d = k.layers.Concatenate(name="cat")([c, k.layers.BatchNormalization(name="bn")(a), b])
    e = k.layers.Conv2D(2, 1, name="e")(d)
    side = k.layers.GlobalAveragePooling2D(name="side")(late)
    return k.Model(x, [side, e])


def test_order_of_layers_and_weights_is_that_of_keras():
    import pydtconv

    theirs, ours = branched(import_keras()), branched(pydtconv)
    assert [layer.name for layer in ours.layers] == [layer.name for layer in theirs.layers]
    assert [w.path for w in ours.weights] == [w.path for w in theirs.weights]


def test_deep_chain():
    x = y = Input((3,))
    for _ in range(1100):
        y = ops.negative(y)
    np.testing.assert_array_equal(Model(x, y)(np.ones((1, 3))), np.ones((1, 3)))


def test_clone_has_weights_of_its_own():
    model = residual()
    copy = models.clone_model(model)
    assert [layer.name for layer in copy.layers] == [layer.name for layer in model.layers]
    copy.set_weights(model.get_weights())
    a = np.random.default_rng(0).normal(size=(2, 8, 8, 4))
    np.testing.assert_array_equal(copy(a), model(a))
    copy.set_weights([w * 0 for w in copy.get_weights()])
    assert model.get_weights()[0].any()


class _Fives(Model):
    """A functional model with a step, or a loss, of its own."""

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        return ops.mean(ops.abs(y - y_pred)) * 5.0


def test_clones_have_the_class_and_are_compiled_as_the_model_is():
    x = Input((3,))
    model = _Fives(x, layers.Dense(2)(x))
    rate = optimizers.schedules.ExponentialDecay(0.5, 10, 0.5)
    metric = metrics.MeanSquaredError(name="squares")
    model.compile(optimizers.SGD(rate, momentum=0.5), "mae", metrics=[metric, lambda y, p: ops.abs(y - p)])
    copy = models.clone_model(model)
    assert type(copy) is _Fives
    copy.set_weights(model.get_weights())
    a, b = np.ones((4, 3)), np.zeros((4, 2))
    found = [each.fit(a, b, epochs=2, verbose=0).history for each in (model, copy)]
    assert found[0] == found[1]
    assert int(copy.optimizer.iterations) == int(model.optimizer.iterations) == 2
    chain = models.Sequential([Input((3,)), layers.Dense(2)])
    assert not models.clone_model(chain).compiled
    chain.compile("adam", "mse")
    assert models.clone_model(chain).loss == "mse"


class _OfUnits(Model):
    """A functional model that is made of its own arguments."""

    def __init__(self, units, **kwargs):
        x = Input((3,))
        super().__init__(x, layers.Dense(units)(x), **kwargs)
        self.units = units

    def get_config(self):
        return {"units": self.units, "name": self.name}


def test_clones_of_models_with_a_config_of_their_own_are_made_of_it():
    assert models.clone_model(_OfUnits(4)).units == 4


def test_clone_function():
    model = residual()

    def leaky(layer):
        return (
            layers.LeakyReLU(name=layer.name)
            if isinstance(layer, layers.ReLU)
            else layer.from_config(layer.get_config())
        )

    assert isinstance(models.clone_model(model, clone_function=leaky).get_layer("relu"), layers.LeakyReLU)


def test_json_round_trip():
    model = residual()
    copy = models.model_from_json(model.to_json())
    copy.set_weights(model.get_weights())
    a = np.random.default_rng(0).normal(size=(2, 8, 8, 4))
    np.testing.assert_array_equal(copy(a), model(a))


def test_squeezable_input():
    x = Input((4, 4, 1))
    model = Model(x, layers.GlobalMaxPooling2D()(x))
    np.testing.assert_array_equal(model(np.ones((2, 4, 4))), np.ones((2, 1)))


def test_a_list_of_one_output_is_that_output():
    inputs = Input((3,))
    model = Model([inputs], [layers.Dense(2)(inputs)])
    assert model.predict(np.ones((1, 3)), verbose=0).shape == (1, 2)
    assert model(np.ones((1, 3), "float32")).shape == (1, 2)


def test_rows_of_samples_are_put_back_into_samples():
    """How many rows a sample has is known where the batch is not."""
    inputs = Input((4, 5, 3))
    dense = layers.Dense(2)
    rows = dense(ops.reshape(inputs, (-1, 3)))
    model = Model(inputs, [ops.reshape(rows, (-1, 4, 5, 2)), ops.inner(inputs, np.ones(3, "float32"))])
    assert model.output_shape == [(None, 4, 5, 2), (None, 4, 5)]
    x = np.random.default_rng(0).random((7, 4, 5, 3), np.float32)
    found, sums = model.predict(x, verbose=0)
    np.testing.assert_allclose(found, dense(x), rtol=1e-5)
    np.testing.assert_allclose(sums, x.sum(-1), rtol=1e-5)


def test_free_extents_may_be_the_same_where_they_need_not_be():
    """Steps that are halved and doubled again; those of two inputs."""
    x, other = Input(batch_shape=(2, None, 3)), Input(batch_shape=(2, None, 3))
    doubled = layers.UpSampling1D(2)(x)
    back = layers.UpSampling1D(2)(layers.MaxPooling1D(2)(x))
    assert layers.Concatenate()([x, back]).shape == layers.Concatenate()([doubled, other]).shape == (2, None, 6)


def test_a_clone_says_why_it_is_not_compiled():
    class Nameless(optimizers.SGD):
        def get_config(self):
            raise NotImplementedError("get_config: no names")

    model = Sequential([Input((2,)), layers.Dense(1)])
    model.compile(Nameless(), "mse")
    with pytest.warns(UserWarning, match="clone_model: the clone is not compiled: its optimizer: get_config: no names"):
        clone = models.clone_model(model)
    assert not clone.compiled


def test_clones_by_functions_of_ones_own():
    x = Input((3,))
    inner = Sequential([Input((3,)), layers.Dense(2, name="inside")], name="inner")
    model = Model(x, layers.ReLU()(inner(x)) + 1)
    called, cloned = [], []

    def call(operation, *args, **kwargs):
        called.append(type(operation).__name__)
        return operation(*args, **kwargs)

    def clone(layer):
        cloned.append(layer.name)
        return type(layer).from_config(layer.get_config())

    assert models.clone_model(model, call_function=call).output_shape == (None, 2)
    assert called == ["Sequential", "ReLU", "FunctionCall"]
    for recursive, expected in ((True, ["inside"]), (False, ["inner"])):
        cloned.clear()
        models.clone_model(model, clone_function=clone, recursive=recursive)
        assert [name for name in cloned if "inside" in name or "inner" in name] == expected
    with pytest.raises(ValueError, match="call_function: expected a functional model"):
        models.clone_model(inner, call_function=call)


def test_clones_begin_at_the_given_tensors():
    x, y = Input((3,), name="x"), Input((3,), name="y")
    model = Model({"x": x, "y": y}, layers.Dense(2)(x + y))
    given = {"x": Input((3,), name="a"), "y": Input((3,), name="b")}
    clone = models.clone_model(model, input_tensors=given)
    assert clone.input is given or clone.input == given
    clone.set_weights(model.get_weights())
    data = {name: np.random.default_rng(0).normal(size=(2, 3)).astype("float32") for name in "xy"}
    np.testing.assert_array_equal(clone(data), model(data))
    with pytest.raises(ValueError, match="input_tensors: expected symbolic tensors in the structure"):
        models.clone_model(model, input_tensors=(x, y))
    sequential = Sequential([layers.Dense(2)])
    sequential(np.zeros((1, 3), "float32"))
    clone = models.clone_model(sequential, input_tensors=Input((3,), name="z"))
    assert clone.inputs[0].name == "z"
    assert clone.built


def test_recursive_clones_call_layers_inside_models_by_the_function():
    inner = Input((4,))
    inside = Model(inner, layers.Dense(4)(inner))
    x = Input((4,))
    model = Model(x, layers.Dense(2)(inside(x)))

    def dropped(layer, *args, **kwargs):
        y = layer(*args, **kwargs)
        return layers.Dropout(0.5)(y) if isinstance(layer, layers.Dense) else y

    clone = models.clone_model(model, clone_function=lambda one: one, call_function=dropped, recursive=True)
    kinds = [type(layer).__name__ for layer in (*clone.layers, *clone.layers[1].layers)]
    assert kinds.count("Dropout") == 2
    data = np.ones((2, 4), "float32")
    np.testing.assert_array_equal(clone(data), model(data))


def test_an_input_spec_that_is_set_is_checked():
    inputs = Input((None, 3))
    model = Model(inputs, layers.Dense(2)(inputs))
    model.input_spec = layers.InputSpec(shape=(None, 4, 3))
    with pytest.raises(ValueError, match=r"expected .*\(None, 4, 3\).*\(2, 3, 3\)"):
        model(np.zeros((2, 3, 3)))
    assert model(np.zeros((2, 4, 3))).shape == (2, 4, 2)


def test_an_optional_input_may_be_none():
    class Sum(layers.Layer):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.dense = layers.Dense(2)

        def call(self, x, more=None):
            return self.dense(x if more is None else x + more)

    x, more = Input((3,), name="x"), Input((3,), name="more", optional=True)
    outputs = Sum(name="both")(x, more)
    a, y = np.ones((4, 3), "float32"), np.zeros((4, 2), "float32")
    for inputs in ([x, more], {"x": x, "more": more}):
        model = Model(inputs, outputs)
        as_inputs = lambda *given: dict(zip(inputs, given, strict=True)) if isinstance(inputs, dict) else [*given]  # noqa: B023, E731
        for given in (None, a):
            data = as_inputs(a, given)
            expected = np.asarray(model.layers[-1](a, given))
            for found in (model(data), model.predict(data, verbose=0), model.predict_on_batch(data)):
                np.testing.assert_allclose(found, expected, rtol=1e-6)
        model.compile("sgd", "mse")
        for given in (None, a):
            loss = model.evaluate(as_inputs(a, given), y, verbose=0)
            assert model.train_on_batch(as_inputs(a, given), y) == pytest.approx(loss)
            model.fit(as_inputs(a, given), y, batch_size=2, verbose=0)
            model.fit(((as_inputs(a, given), y) for _ in range(2)), verbose=0)
        with pytest.raises(ValueError, match="input 'x': expected a tensor, got None"):
            model(as_inputs(None, a))
        config = next(layer for layer in model.get_config()["layers"] if layer["config"]["name"] == "more")
        assert config["config"]["optional"] is True
