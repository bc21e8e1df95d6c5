"""The base class: names, weights and their order, freezing, tracking, configs, errors."""

import gc
import weakref

import numpy as np
import pytest

import pydtconv
from pydtconv import (
    layers,
    ops,
)
from pydtconv.utils import clear_session


class Scale(layers.Layer):
    """x * factor + offset, with an offset that is not trained."""

    def __init__(self, start=2.0, **kwargs):
        super().__init__(**kwargs)
        self.start = start

    def build(self, input_shape):
        self.offset = self.add_weight((input_shape[-1],), "zeros", trainable=False, name="offset")
        self.factor = self.add_weight((input_shape[-1],), self._start, name="factor")

    def _start(self, shape, dtype):
        return np.full(shape, self.start, dtype)

    def call(self, inputs):
        return inputs * self.factor + self.offset


class Pair(layers.Layer):
    """Two scales, kept in different ways, and a weight of its own."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.second = Scale(name="b")
        self.rest = []
        self.table = {}
        self.rest.append(Scale(name="c"))
        self.table["d"] = Scale(name="d")

    def build(self, input_shape):
        self.own = self.add_weight((1,), "ones", name="own")

    def call(self, inputs, training=None):
        y = self.second(inputs) * self.own
        y = self.rest[0](y)
        return self.table["d"](y) * (2.0 if training else 1.0)


def test_names_count_up_by_class():
    assert [layers.ReLU().name for _ in range(3)] == ["re_lu", "re_lu_1", "re_lu_2"]
    assert layers.BatchNormalization().name == "batch_normalization"
    assert layers.ReLU(name="mine").name == "mine"
    clear_session()
    assert layers.ReLU().name == "re_lu"
    with pytest.raises(ValueError, match="'/'"):
        layers.ReLU(name="a/b")


def test_own_weights_first_trainable_first_then_sublayers_in_order():
    layer = Pair()
    layer(np.ones((2, 3)))
    assert [w.name for w in layer.weights] == ["own", "factor", "offset"] + ["factor", "offset"] * 2
    assert [w.path for w in layer.weights[1:]] == [f"pair/{x}/{w}" for x in "bcd" for w in ("factor", "offset")]
    assert [w.name for w in layer.trainable_weights] == ["own", "factor", "factor", "factor"]
    assert [w.name for w in layer.non_trainable_weights] == ["offset"] * 3
    assert layer.count_params() == 1 + 3 * 6


def test_eager_call_and_training_argument_reaches_call():
    layer = Pair()
    x = np.arange(6.0).reshape(2, 3)
    np.testing.assert_allclose(layer(x), 8 * x)
    np.testing.assert_allclose(layer(x, training=True), 16 * x)


def test_freezing_propagates():
    layer = Pair()
    layer(np.ones((2, 3)))
    layer.trainable = False
    assert layer.trainable_weights == []
    assert len(layer.non_trainable_weights) == 7
    assert not layer.rest[0].trainable
    assert not layer.rest[0].factor.trainable
    layer.trainable = True
    assert [w.name for w in layer.trainable_weights] == ["own", "factor", "factor", "factor"]
    layer.second.trainable = False
    assert len(layer.trainable_weights) == 3


def test_freezing_before_building():
    layer = Scale(trainable=False)
    layer.build((None, 3))
    assert layer.trainable_weights == []
    layer.trainable = True
    assert [w.name for w in layer.trainable_weights] == ["factor"]


def test_get_and_set_weights():
    layer = Scale()
    layer.build((None, 3))
    layer.set_weights([np.array([1.0, 2, 3]), np.array([4.0, 5, 6])])
    factor, _ = layer.get_weights()
    np.testing.assert_array_equal(factor, [1, 2, 3])
    factor[0] = 9
    assert layer.factor.value[0] == 1
    with pytest.raises(ValueError, match=r"offset: expected shape \(3,\), got \(2,\)"):
        layer.set_weights([np.zeros(3), np.zeros(2)])
    np.testing.assert_array_equal(layer.factor.value, [1, 2, 3])
    with pytest.raises(ValueError, match="expected 2 arrays, got 1"):
        layer.set_weights([np.zeros(3)])


def test_config_of_a_layer_without_get_config():
    layer = Scale(start=5.0, name="five")
    config = layer.get_config()
    policy = {"module": "keras", "class_name": "DTypePolicy", "config": {"name": "float32"}, "registered_name": None}
    assert config == {"name": "five", "trainable": True, "dtype": policy, "start": 5.0}
    copy = Scale.from_config(config)
    assert (copy.name, copy.start) == ("five", 5.0)


def test_config_of_a_subclass_of_a_built_in_layer():
    class Doubled(layers.Dropout):
        def __init__(self, rate, factor=2, **kwargs):
            super().__init__(rate / factor, **kwargs)
            self.factor = factor

        def get_config(self):
            return {**super().get_config(), "factor": self.factor, "rate": self.rate * self.factor}

    copy = Doubled.from_config(Doubled(0.5).get_config())
    assert (copy.rate, copy.factor) == (0.25, 2)


@pytest.mark.parametrize("name", ["build", "call"])
def test_default_build_and_missing_call(name):
    layer = layers.Layer()
    if name == "build":
        layer.build((None, 3))
        assert layer.weights == []
    else:
        with pytest.raises(NotImplementedError, match="no call"):
            layer(np.ones((2, 2)))


def test_replaced_sublayer_is_forgotten():
    layer = Pair()
    layer.second = Scale(name="new")
    layer(np.ones((2, 3)))
    assert [x.name for x in layer._pydt_flatten_layers(include_self=False)] == ["c", "d", "new"]


def test_add_loss_belongs_in_call():
    with pytest.raises(RuntimeError, match="inside call"):
        layers.ReLU().add_loss(1.0)


def test_unknown_argument():
    with pytest.raises(ValueError, match="'uints'"):
        layers.ReLU(uints=3)


def test_dtype():
    assert layers.ReLU().dtype == "float32"
    assert layers.ReLU(dtype="float64")(np.ones((2, 2))).dtype == np.float64
    with pytest.raises(ValueError, match="mixed"):
        layers.ReLU(dtype="mixed_float16")


def test_several_arguments_and_their_shapes():
    class Blend(layers.Layer):
        def build(self, a_shape, b_shape):
            self.shapes = (a_shape, b_shape)

        def call(self, a, b, share=0.5):
            return a * share + b * (1 - share)

    layer = Blend()
    y = layer(np.ones((2, 3)), b=np.zeros((2, 3)), share=0.25)
    np.testing.assert_allclose(y, np.full((2, 3), 0.25))
    assert layer.shapes == ((None, 3), (None, 3))


def test_output_shape():
    assert Pair().compute_output_shape((None, 7)) == (None, 7)
    assert layers.MaxPooling2D().compute_output_shape((None, 9, 8, 3)) == (None, 4, 4, 3)


def test_list_and_dict_inputs_in_eager_mode():
    class Sum(layers.Layer):
        def call(self, inputs):
            return {"sum": inputs["a"] + inputs["b"], "parts": [inputs["a"], ops.negative(inputs["b"])]}

    y = Sum()({"a": np.ones((2, 2)), "b": np.full((2, 2), 3.0)})
    np.testing.assert_array_equal(y["sum"], np.full((2, 2), 4.0))
    np.testing.assert_array_equal(y["parts"][1], np.full((2, 2), -3.0))


@pytest.mark.parametrize(
    ("make", "shape", "expected"),
    [
        (lambda: layers.Dense(2), (3,), (2,)),
        (lambda: layers.Conv2D(3, 3), (6, 6, 2), (4, 4, 3)),
        (lambda: layers.GlobalAveragePooling2D(), (6, 6, 2), (2,)),
        (lambda: layers.BatchNormalization(), (6, 2), (6, 2)),
    ],
)
def test_batches_of_no_samples(make, shape, expected):
    layer = make()
    assert layer(np.zeros((0, *shape), "float32")).shape == (0, *expected)
    weights = layer.get_weights()
    assert layer(np.zeros((0, *shape), "float32"), training=True).shape == (0, *expected)
    for kept, value in zip(weights, layer.get_weights(), strict=True):
        np.testing.assert_array_equal(kept, value)


def test_shapes_of_several_inputs_go_by_name():
    class Joined(layers.Layer):
        def call(self, first, second):
            return ops.concatenate([first, second], -1)

        def compute_output_shape(self, first_shape, second_shape):
            return first_shape[0], first_shape[1] + second_shape[1]

    assert Joined()(pydtconv.Input((3,)), pydtconv.Input((2,))).shape == (None, 5)
    assert Joined()(pydtconv.Input((3,)), second=pydtconv.Input((2,))).shape == (None, 5)


def test_variables_as_numbers():
    whole = pydtconv.Variable(np.array([2, 0, 1]), trainable=False)
    assert whole.dtype == "int64"
    assert pydtconv.Variable(np.array([True])).dtype == "bool"
    assert {pydtconv.Variable(each).dtype for each in ([2.0, 3], 2.0, np.zeros(2))} == {"float32"}
    np.testing.assert_array_equal(np.arange(5)[np.asarray(whole)], [2, 0, 1])
    np.testing.assert_array_equal(whole.assign_add([1, 1, 1]) + 1, [4, 2, 3])
    np.testing.assert_array_equal(whole.assign([5, 6, 7]).assign_sub([1, 1, 1]), [4, 5, 6])
    assert (float(pydtconv.Variable(2.5)), int(pydtconv.Variable(3))) == (2.5, 3)
    with pytest.raises(TypeError, match=r"variable 'on': expected bool\(variable.numpy\(\)\)"):
        bool(pydtconv.Variable(0.0, name="on"))


def test_normalization_tells_its_statistics():
    x = np.array([[1.0, 5.0], [3.0, 9.0]], "float32")
    layer = layers.Normalization()
    assert layer.mean is None
    layer.adapt(x)
    np.testing.assert_allclose(layer.mean, [[2, 7]])
    np.testing.assert_allclose(layer.variance, [[1, 4]])
    np.testing.assert_allclose(layer(x), (x - layer.mean) / np.sqrt(layer.variance))
    given = layers.Normalization(mean=[1, 2], variance=[4, 9])
    given.build((None, 2))
    np.testing.assert_allclose([given.mean, given.variance], [[[1, 2]], [[4, 9]]])


def test_normalization_by_given_statistics_takes_a_single_row():
    row = np.arange(4, dtype="float32")
    np.testing.assert_allclose(layers.Normalization(mean=1.0, variance=4.0)(row), (row - 1) / 2)
    np.testing.assert_allclose(layers.Normalization(axis=None, mean=1.0, variance=4.0)(3.0), 1)
    with pytest.raises(ValueError, match=r"axis \(-1,\) is not in an input of 0 dimensions"):
        layers.Normalization()(3.0)
    each = layers.Normalization(mean=[1, 2, 3, 4], variance=[1, 1, 4, 4])
    np.testing.assert_allclose(each(row), [-1, -1, -0.5, -0.5])


def test_a_class_that_was_dropped_is_kept_by_nothing():
    def called():
        class Doubled(layers.Layer):
            factor = 2.0

            def call(self, x):
                return __class__.factor * x

        model = pydtconv.Sequential([layers.Input((2,)), Doubled(), layers.Dense(1)])
        model.compile("sgd", "mse")
        model.fit(np.ones((2, 2)), np.ones((2, 1)), verbose=0)
        return weakref.ref(Doubled)

    found = [called() for _ in range(2)]
    gc.collect()
    assert [each() for each in found] == [None] * 2


@pytest.mark.parametrize("kind", [layers.Attention, layers.AdditiveAttention])
def test_one_query_serves_the_keys_of_all_samples(kind):
    rng = np.random.default_rng(0)
    query, key = rng.normal(size=(1, 3, 4)).astype("float32"), rng.normal(size=(5, 6, 4)).astype("float32")
    layer = kind(use_scale=False)
    expected = np.concatenate([layer([query, key[i : i + 1]]) for i in range(5)])
    np.testing.assert_allclose(layer([query, key]), expected, rtol=1e-5, atol=1e-6)


def test_one_trained_query_serves_the_heads_of_all_samples():
    class Latent(pydtconv.Model):
        def __init__(self):
            super().__init__()
            self.query = self.add_weight((1, 3, 8), "glorot_uniform", name="query")
            self.attention = layers.MultiHeadAttention(2, 4)

        def call(self, x):
            return ops.mean(self.attention(self.query, x), (1, 2), keepdims=True)

    rng = np.random.default_rng(0)
    key, y = rng.normal(size=(5, 6, 8)).astype("float32"), rng.normal(size=(5, 1, 1)).astype("float32")
    model = Latent()
    model.compile("sgd", "mse")
    model.fit(key, y, batch_size=5, epochs=2, verbose=0)
    query = np.asarray(model.query)
    repeated, weights = model.attention(np.repeat(query, 5, 0), key, return_attention_scores=True)
    for found, expected in zip(
        model.attention(query, key, return_attention_scores=True), (repeated, weights), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(model.attention(query, key), repeated, rtol=1e-5, atol=1e-6)


def test_matrices_may_stand_before_what_is_trained():
    weight, matrix = pydtconv.Variable(np.ones((3, 2), "float32")), np.arange(6, dtype="float32").reshape(2, 3)
    with pydtconv.GradientTape() as tape:
        y = ops.sum(matrix @ weight) + ops.sum([[1.0, 2.0, 3.0]] @ weight)
    np.testing.assert_array_equal(tape.gradient(y, weight), [[4, 4], [7, 7], [10, 10]])
    np.testing.assert_array_equal(matrix @ weight, matrix @ np.ones((3, 2)))


@pytest.mark.parametrize(
    ("equation", "output", "shape"),
    [
        ("ab,bc->ac", 7, (None, 5)),
        ("abc,cd->abd", (None, 4), (None, 3, 8)),
        ("...x,xy->...y", 6, (None, 2, 3, 4)),
        ("bc...,cde->bde...", (2, 3), (None, 3, 4)),
        ("...x,xy->...y", 6, (2, None, 4)),
    ],
)
def test_the_output_shape_of_an_einsum_builds_nothing(equation, output, shape):
    layer = layers.EinsumDense(equation, output)
    found = layer.compute_output_shape(shape)
    assert not layer.built
    assert not layer.weights
    layer.build(shape)
    assert layer.compute_output_shape(shape) == found
    given = tuple(2 if extent is None else extent for extent in shape)
    called = layer(np.zeros(given, "float32")).shape
    assert all(a in (None, b) for a, b in zip(found, called, strict=True))


class Measured(layers.Layer):
    def __init__(self, inner=None):
        super().__init__()
        self.measure = pydtconv.metrics.MeanSquaredError(name="measure")
        self.inner = inner

    def call(self, x):
        return x if self.inner is None else self.inner(x)


def test_metrics_of_layers_inside_are_metrics_of_a_layer():
    one = Measured()
    layer = Measured(Measured(one))
    assert [metric.name for metric in layer.metrics] == ["measure"] * 3
    assert layer.metrics[-1] is one.measure
    assert len(layer.metrics_variables) == 6


def test_bad_arguments_of_weights_and_padding():
    with pytest.raises(ValueError, match="add_weight: shape: expected extents, got 'kernel': pass a name as name="):
        layers.Layer().add_weight("kernel")
    with pytest.raises(ValueError, match="add_weight: autocast: expected True, got False"):
        layers.Layer().add_variable((2,), autocast=False)
    for make, extent in (layers.ZeroPadding1D, 12), (layers.Cropping1D, 4):
        for sides in 2, (2, 2), [2, 2], np.int64(2):
            assert make(sides)(np.ones((1, 8, 3), "float32")).shape == (1, extent, 3)
        with pytest.raises(ValueError, match="expected an integer, 2 integers"):
            make((1,))


@pytest.mark.parametrize(
    ("shape", "target", "expected", "given"),
    [
        ((2, None), (3, 5), (2, 3, 5), (2, 15)),
        ((None, None, 4), (-1, 2), (None, None, 2), (3, 5, 4)),
        ((None, 6, 2), (3, -1), (None, 3, 4), (5, 6, 2)),
    ],
)
def test_reshape_of_unknown_extents(shape, target, expected, given):
    x = pydtconv.Input(batch_shape=shape)
    y = layers.Reshape(target)(x)
    assert y.shape == expected
    data = np.arange(np.prod(given), dtype="float32").reshape(given)
    np.testing.assert_array_equal(pydtconv.Model(x, y)(data), data.reshape(given[0], *target))
    with pytest.raises(ValueError, match="do not fit target_shape"):
        layers.Reshape((7, 11))(np.zeros((1, 4), "float32"))


class Seen(layers.Layer):
    """Notes what `training` its calls were given."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.modes = []

    def call(self, x, training=None):
        self.modes.append(training)
        return x


def test_training_is_none_where_nobody_says_it():
    class Says(layers.Layer):
        def call(self, x, training=True):  # of its own calls alone
            return x * (2.0 if training else 1.0)

    x, seen = np.ones((2, 3), "float32"), Seen()
    inputs = layers.Input((3,))
    models = seen, pydtconv.Model(inputs, seen(Says()(inputs))), pydtconv.Sequential([Says(), seen])
    for model in models:
        model(x)  # a Sequential finds its shapes first
        for given in ({}, {"training": None}, {"training": True}, {"training": False}):
            seen.modes.clear()
            model(x, **given)
            assert seen.modes == [given.get("training")]
    model = pydtconv.Model(inputs, layers.Dense(3)(seen(inputs)))
    model.compile("sgd", "mse")
    for step, expected in ((model.train_on_batch, True), (model.test_on_batch, False)):
        seen.modes.clear()
        step(x, x)
        assert set(seen.modes) == {expected}
    seen.modes.clear()
    model.predict(x, verbose=0)
    assert set(seen.modes) == {False}


def test_a_call_may_return_nothing_but_in_a_functional_model():
    class Nothing(layers.Layer):
        def call(self, x):
            self.add_loss(ops.sum(x))

    layer = Nothing(name="nothing")
    assert layer(np.ones((2, 3))) is None
    assert float(layer.losses[0]) == 6
    with pytest.raises(ValueError, match=r"layer 'nothing': Nothing\.call: expected it to return tensors, got None"):
        layer(layers.Input((3,)))


def test_weights_are_made_before_call():
    class Late(layers.Layer):
        def call(self, x):
            self.w = self.add_weight((), "zeros", name="late")
            return x + self.w

    layer = Late(name="late_one")
    for x in np.ones((2, 3)), layers.Input((3,)):
        with pytest.raises(
            ValueError, match=r"Late 'late_one': call: .* in __init__ or build, got add_weight\('late'\)"
        ):
            layer(x)
    assert not layer.weights


def test_build_names_the_arguments_of_call():
    class Wrong(layers.Layer):
        def build(self, foo_shape, bar):
            """Never called."""

        def call(self, foo, bar):
            return foo + bar

    with pytest.raises(
        ValueError, match="build: expected one argument, or <argument of call>_shape for each, got foo_"
    ):
        Wrong()(np.ones(2), np.ones(2))


def test_a_wrapper_builds_its_layer():
    class Plain(layers.Wrapper):
        def call(self, x):
            return self.layer.call(x)

    layer = Plain(layers.Dense(2))
    assert layer(np.ones((3, 4))).shape == (3, 2)
    assert [w.path for w in layer.weights] == [f"{layer.name}/{layer.layer.name}/{w}" for w in ("kernel", "bias")]


def test_a_build_that_calls_its_base_s_names_weights_once():
    class Base(layers.Layer):
        def build(self, input_shape):
            self.inner = layers.Dense(2, name="inner")
            self.inner.build(input_shape)

        def call(self, x):
            return self.inner(x)

    class Derived(Base):
        def build(self, input_shape):
            super().build(input_shape)

    layer = Derived(name="outer")
    layer(np.ones((3, 4)))
    assert layer.weights[0].path == "outer/inner/kernel"


def test_a_lambda_of_a_config_says_whether_its_code_is_taken():
    layer = layers.Lambda(lambda x: x * 2)
    again = layers.Lambda.from_config(layer.get_config(), safe_mode=False)
    np.testing.assert_array_equal(again(np.ones((2, 3))), np.full((2, 3), 2))
    for function in ops.tanh, pydtconv.activations.relu:
        config = layers.Lambda(function).get_config()
        assert layers.Lambda.from_config(config).function is function


@pytest.mark.parametrize("kind", [layers.Attention, layers.AdditiveAttention])
def test_the_scores_of_attention_are_what_values_are_weighed_by(kind):
    """In training, too, as in Keras, where dropout is on."""
    rng = np.random.default_rng(0)
    query, value = rng.normal(size=(2, 5, 4)).astype("float32"), rng.normal(size=(2, 6, 4)).astype("float32")
    y, scores = kind(dropout=0.5, seed=1)([query, value], return_attention_scores=True, training=True)
    assert (scores == 0).any()
    np.testing.assert_allclose(y, scores @ value, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("argument", ["lora_rank", "quantization_config"])
def test_what_is_not_supported_is_refused_when_it_is_used(argument):
    with pytest.raises(NotImplementedError, match=f"Dense: {argument}: expected None, got 4"):
        layers.Dense(3, **{argument: 4})
    layers.Dense(3, **{argument: None})


def test_output_shape_of_lambda_may_leave_extents_open():
    x = np.ones((2, 4, 3), "float32")
    for shape in ((None, 3), (4, None), (4, 3)):
        assert layers.Lambda(lambda y: y * 2, output_shape=shape)(x).shape == x.shape
    for shape in ((None, 2), (None,), (None, 3, None)):
        with pytest.raises(ValueError, match="output_shape: expected"):
            layers.Lambda(lambda y: y * 2, output_shape=shape)(x)
