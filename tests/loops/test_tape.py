"""GradientTape: gradients against finite differences, tapes in and beside each other, what is refused."""

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import GradientTape, layers, ops
from tests.loops.small_models import numbers, small_model


@pytest.fixture
def doubles():
    """Layers and numbers in float64, for differences."""
    keras.config.set_floatx("float64")
    yield
    keras.config.set_floatx("float32")


def differences(function, array, places, step=1e-5):
    """The derivatives of function() by some elements of an array that it reads."""
    found = []
    for place in places:
        kept = array[place]
        array[place] = kept + step
        above = function()
        array[place] = kept - step
        found.append((above - function()) / (2 * step))
        array[place] = kept
    return np.array(found)


def test_gradients_of_variables_inputs_and_inner_tensors_are_those_of_differences(doubles):
    model = small_model()
    inner = keras.Model(model.inputs, [model.layers[0].output, model.output])
    x = numbers(2, 6, 6, 2)

    def loss():
        return float(np.mean(np.square(model(x))))

    with GradientTape(persistent=True) as tape:
        tape.watch(x)
        image, scores = inner(x)
        value = ops.mean(ops.square(scores))
    kernel = model.layers[0].kernel
    of_kernel, of_x, of_image, of_all = (
        tape.gradient(value, source) for source in (kernel, x, image, model.trainable_variables)
    )
    places = [(0, 0, 0, 0), (2, 1, 1, 2), (1, 1, 0, 1)]
    np.testing.assert_allclose([of_kernel.numpy()[p] for p in places], differences(loss, kernel.value, places), 1e-6)
    places = [(0, 0, 0, 0), (1, 5, 3, 1)]
    np.testing.assert_allclose([of_x.numpy()[p] for p in places], differences(loss, x, places), 1e-6)
    dense = model.layers[-1].kernel.value
    expected = (np.asarray(scores) / 2) @ dense.T  # d mean(s^2) / ds = 2 s / 4
    np.testing.assert_allclose(of_image.numpy().reshape(2, -1), expected, 1e-9)
    assert [g.shape for g in of_all] == [v.shape for v in model.trainable_variables]
    np.testing.assert_array_equal(of_all[0], of_kernel)


@pytest.mark.parametrize("axis", [-1, 1])
def test_batch_normalization_by_statistics_of_the_batch(doubles, axis):
    x, scale, offset = numbers(3, 4, 2), numbers(2 if axis == -1 else 4), numbers(2 if axis == -1 else 4)
    weights = numbers(3, 4, 2, seed=1)
    axes = [0, 1] if axis == -1 else [0, 2]

    def loss():
        value = ops.batch_normalization(x, *ops.moments(x, axes), axis, offset, scale)
        return ops.sum(value * weights)

    with GradientTape() as tape:
        tape.watch([x, scale, offset])
        value = loss()
    gradients = tape.gradient(value, [x, scale, offset])
    for array, gradient in zip((x, scale, offset), gradients, strict=True):
        places = [tuple(0 for _ in array.shape), tuple(extent - 1 for extent in array.shape)]
        expected = differences(lambda: float(loss()), array, places)
        np.testing.assert_allclose([gradient.numpy()[p] for p in places], expected, 1e-5, 1e-8)


@pytest.mark.parametrize("reduce", [ops.segment_sum, ops.segment_max, ops.segment_min], ids=lambda f: f.__name__)
def test_rows_of_no_segment_have_no_gradient(reduce):
    x, ids = np.array([[1.0], [2.0], [3.0], [4.0]], "float32"), np.array([-1, 0, 5, 1], "int32")
    with GradientTape() as tape:
        tape.watch(x)
        y = reduce(x, ids, num_segments=2)
    np.testing.assert_array_equal(y, [[2], [4]])
    np.testing.assert_array_equal(tape.gradient(y, x), [[0], [1], [0], [1]])


@pytest.mark.parametrize(
    "part",
    [
        lambda x: ops.matmul(x, x),
        lambda x: ops.einsum("bij,bkj->bik", x, x) * 0.5,
        lambda x: ops.softmax(x, axis=1),
        lambda x: ops.sort(x, axis=1),
    ],
    ids=["matmul", "einsum", "softmax", "sort"],
)
def test_of_parts_of_a_concatenation(part):
    x, weights = numbers(2, 3, 3), numbers(2, 3, 6, seed=1)
    gradients = []
    for joined in (True, False):
        with GradientTape() as tape:
            tape.watch(x)
            if joined:
                loss = ops.sum(ops.concatenate([part(x), ops.tanh(x)], -1) * weights)
            else:
                loss = ops.sum(part(x) * weights[..., :3]) + ops.sum(ops.tanh(x) * weights[..., 3:])
        gradients.append(tape.gradient(loss, x))
    np.testing.assert_allclose(*gradients, rtol=1e-5, atol=1e-6)


def test_a_tape_gives_one_set_of_gradients_unless_it_is_persistent():
    model = small_model()
    with GradientTape() as tape:
        loss = ops.sum(model(numbers(1, 6, 6, 2)))
    tape.gradient(loss, model.trainable_variables)
    with pytest.raises(RuntimeError, match="non-persistent"):
        tape.gradient(loss, model.trainable_variables)


def test_the_first_mask_outside_of_training_is_not_that_of_the_first_step(monkeypatch):
    monkeypatch.setattr("pydtconv.engine.workspace._default", {})
    model = small_model(layers.Dropout(0.5))
    x = numbers(4, 6, 6, 2)
    with GradientTape() as tape:
        scores = model(x, training=True)
    tape.gradient(scores, model.trainable_variables)
    with GradientTape():
        again = model(x, training=True)
    assert not np.allclose(scores, again)


def test_two_tapes_over_one_forward_see_the_same_masks_and_average_once():
    model = small_model(layers.BatchNormalization(momentum=0.5), layers.Dropout(0.5))
    x = numbers(4, 6, 6, 2)
    normalization = model.layers[1]
    with GradientTape() as first, GradientTape() as second:
        scores = model(x, training=True)
        one, two = ops.sum(scores[:, 0]), ops.sum(scores) - ops.sum(scores[:, 0])
    a = first.gradient(one, model.trainable_variables)
    b = second.gradient(two, model.trainable_variables)
    with GradientTape() as tape:
        again = model(x, training=True)
    assert not np.allclose(scores, again)  # another mask
    masks = np.asarray(a[-2])[:, 0], np.asarray(b[-2])[:, 1]  # the dense layer's gradient is its input, summed
    np.testing.assert_allclose(*masks, rtol=1e-5)
    del tape
    image = np.asarray(model.layers[0](x))
    mean = image.mean((0, 1, 2))
    np.testing.assert_allclose(normalization.moving_mean.value, 0.75 * mean, rtol=1e-4)  # of two runs, not three


def test_gradients_can_be_changed_before_they_are_applied():
    results = []
    for own in (True, False):
        model = small_model()
        x, y = numbers(8, 6, 6, 2), numbers(8, 2, seed=1)
        optimizer = keras.optimizers.SGD(0.1, **({} if own else {"clipnorm": 0.05}))
        for _ in range(2):
            with GradientTape() as tape:
                loss = ops.mean(ops.square(model(x) - y))
            gradients = tape.gradient(loss, model.trainable_variables)
            if own:
                norms = [ops.sqrt(ops.sum(ops.square(g))) for g in gradients]
                gradients = [g * (0.05 / ops.maximum(n, 0.05)) for g, n in zip(gradients, norms, strict=True)]
            optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        results.append(model.get_weights())
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_values_may_be_looked_at_in_between():
    model = small_model()
    x = numbers(4, 6, 6, 2)
    with GradientTape() as tape:
        scores = model(x)
        assert float(ops.max(scores)) == pytest.approx(np.asarray(model(x)).max(), rel=1e-5)
        loss = ops.sum(scores) * (2.0 if float(ops.sum(scores)) > -1e9 else 0.0)
    gradient = tape.gradient(loss, model.layers[-1].bias)
    np.testing.assert_allclose(gradient, [8.0, 8.0], rtol=1e-6)


@pytest.mark.parametrize("how", ["recorded", "arrays", "assigned"])
def test_gradients_after_an_update_are_those_before_it(how):
    """They are refused where the tape has not seen the update, and does not know the values from before."""
    model = small_model()
    with GradientTape(persistent=True) as tape:
        loss = ops.sum(model(numbers(1, 6, 6, 2)))
    weights = model.trainable_variables
    found = tape.gradient(loss, weights)
    given = found if how == "recorded" else [np.array(each) for each in found]
    if how == "assigned":
        for weight in weights:
            weight.assign(weight * 2.0)
    else:
        keras.optimizers.SGD().apply(given, weights)
    if how == "recorded":
        for again, first in zip(tape.gradient(loss, weights), found, strict=True):
            np.testing.assert_allclose(again, first, rtol=1e-4, atol=1e-6)
    else:
        with pytest.raises(RuntimeError, match="was changed after it was read"):
            tape.gradient(loss, weights)


def penalty(model, x):
    with GradientTape() as tape:
        tape.watch(x)
        scores = model(x, training=True)
    gradient = tape.gradient(scores, x)
    norm = ops.sqrt(ops.sum(ops.square(gradient), axis=(1, 2, 3)) + 1e-12)
    return ops.mean(ops.square(norm - 1.0))


_BLOCKS = {
    "leaky": [layers.Conv2D, {"strides": 2, "padding": "same"}, lambda: [layers.LeakyReLU(0.2)]],
    "tanh": [layers.Conv2D, {"activation": "tanh"}, list],
    "gelu": [layers.Conv2D, {"activation": "gelu", "dilation_rate": 2}, list],
    "layer_norm": [layers.Conv2D, {}, lambda: [layers.LayerNormalization(), layers.Activation("silu")]],
    "batch_norm": [layers.Conv2D, {}, lambda: [layers.BatchNormalization(), layers.Activation("tanh")]],
    "transposed": [layers.Conv2DTranspose, {"strides": 2, "padding": "same"}, lambda: [layers.Activation("sigmoid")]],
}


@pytest.mark.parametrize("name", _BLOCKS)
def test_gradients_of_gradients_are_those_of_differences(doubles, name):
    kind, options, more = _BLOCKS[name]
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [keras.Input((6, 6, 2)), kind(4, 3, **options), *more(), layers.GlobalAveragePooling2D(), layers.Dense(3)]
    )
    x = numbers(2, 6, 6, 2)
    kernel = model.layers[0].kernel
    with GradientTape() as outer:
        loss = penalty(model, x)
    found = outer.gradient(loss, [kernel, model.layers[-1].kernel])
    places = [(0, 0, 0, 0), (2, 1, 1, 1), (1, 2, 0, 1)]

    def value():
        with GradientTape():
            return float(penalty(model, x))

    np.testing.assert_allclose([found[0].numpy()[p] for p in places], differences(value, kernel.value, places), 2e-5)
    dense, places = model.layers[-1].kernel.value, [(0, 0), (3, 2)]
    np.testing.assert_allclose([found[1].numpy()[p] for p in places], differences(value, dense, places), 2e-5)


def test_a_tape_inside_a_layer_of_fit_is_refused():
    class Own(layers.Layer):
        def call(self, x):
            with GradientTape():
                return x

    with pytest.raises(NotImplementedError, match="train_step"):
        Own()(keras.Input((2,)))


TERMS = {
    "sum of a function and itself": lambda a: ops.sum(ops.add(ops.square(a), a)),
    "variance": lambda a: ops.var(a),
    "normalization": lambda a: ops.sum(ops.multiply(ops.normalize(a), np.arange(3.0))),
    "product with itself": lambda a: ops.sum(ops.matmul(a, ops.transpose(a))),
    "another dtype": lambda a: ops.sum(ops.multiply(np.full((3, 3), 2, "float32"), ops.square(a))),
    "cast": lambda a: ops.sum(ops.square(ops.cast(a, "float32"))),
    "tensor": lambda a: ops.sum(ops.convert_to_tensor(a, "float32") ** 2),
}


@pytest.mark.parametrize("name", TERMS)
def test_arrays_of_another_dtype_are_watched(name):
    """Floats of NumPy are doubles; what is computed of them may be in float32."""
    a = np.random.default_rng(0).uniform(0.5, 2, (3, 3))
    with GradientTape() as tape:
        tape.watch(a)
        value = TERMS[name](a)
    places = list(np.ndindex(3, 3))
    expected = differences(lambda: float(np.asarray(TERMS[name](a))), a, places, 1e-3)
    found = np.asarray(tape.gradient(value, a))
    np.testing.assert_allclose([found[place] for place in places], expected, rtol=2e-3, atol=2e-3)


def test_a_model_reads_doubles_that_are_watched():
    model = keras.Sequential([keras.Input((3,)), layers.Dense(3)])
    found = []
    for a in np.eye(3) + 1, (np.eye(3) + 1).astype("float32"):
        with GradientTape() as tape:
            tape.watch(a)
            value = ops.sum(ops.multiply(model(a), a))
        found.append(np.asarray(tape.gradient(value, a)))
    np.testing.assert_allclose(*found, rtol=1e-5)


def test_losses_of_watched_arrays_that_are_transposed_or_of_another_dtype():
    y_pred, y_true = np.ones((3, 2), "float32").T, np.zeros((2, 3))
    with GradientTape(persistent=True) as tape:
        tape.watch([y_pred, y_true])
        loss = keras.losses.MeanSquaredError()(y_true, y_pred)
    np.testing.assert_allclose(np.asarray(tape.gradient(loss, y_pred)), np.full((2, 3), 1 / 3), rtol=1e-6)
    np.testing.assert_allclose(np.asarray(tape.gradient(loss, y_true)), np.full((2, 3), -1 / 3), rtol=1e-6)


def test_tensors_of_a_tape_that_is_over_are_gone_on_with():
    x = np.array([1.0, 2.0], "float32")
    with GradientTape() as tape:
        tape.watch(x)
        loss = ops.sum(ops.square(x))
    gradient = tape.gradient(loss, x)
    np.testing.assert_array_equal(np.asarray(gradient), [2, 4])
    more = gradient * 3.0 + loss
    del gradient, loss
    np.testing.assert_array_equal(np.asarray(more), [11, 17])
    other = more
    del more
    np.testing.assert_array_equal(np.asarray(other * x), [11, 34])


def test_custom_gradient():
    @ops.custom_gradient
    def clipped(x, scale):
        def grad(*args, upstream=None):
            upstream = args[0] if upstream is None else upstream
            return ops.clip(ops.multiply(upstream, 100.0), -1.0, 1.0), None

        return ops.multiply(x, scale), grad

    x = np.array([[1.0, -2.0, 0.001]], "float32")
    np.testing.assert_allclose(clipped(x, 3.0), 3 * x)
    with keras.GradientTape() as tape:
        tape.watch(x)
        y = ops.sum(ops.square(clipped(x, np.float32(3.0))))
    np.testing.assert_allclose(tape.gradient(y, x), [[1.0, -1.0, 0.6]], rtol=1e-5)
    inputs = keras.Input((3,))
    model = keras.Model(inputs, keras.layers.Dense(1)(clipped(keras.layers.Dense(3)(inputs), 2.0)))
    model.compile("sgd", "mse")
    before = model.get_weights()[0]
    model.fit(x, x[:, :1], verbose=0)
    assert (model.get_weights()[0] != before).any()


#: linear in their inputs
LINEAR = {
    "Dropout": lambda: layers.Dropout(0.5),
    "SpatialDropout2D": lambda: layers.SpatialDropout2D(0.5),
    "GaussianDropout": lambda: layers.GaussianDropout(0.5),
    "RandomFlip": lambda: layers.RandomFlip(),
    "RandomRotation": lambda: layers.RandomRotation(0.4, fill_mode="constant"),
    "MixUp": lambda: layers.MixUp(),
}


@pytest.mark.parametrize("kind", LINEAR)
def test_random_numbers_of_values_that_were_asked_for_are_those_of_the_gradient(kind):
    """Of what is linear, sum(dy y) is sum(dx x)."""
    rng, random = np.random.default_rng(1), [LINEAR[kind]() for _ in range(2)]
    x, dy = ops.convert_to_tensor(rng.normal(size=(4, 5, 6, 3)).astype("float32")), rng.normal(size=(4, 5, 6, 3))
    with GradientTape() as tape:
        tape.watch(x)
        y = x
        for layer in random:
            y = layer(y, training=True)
            assert np.isfinite(np.asarray(y)).all()
        total = ops.sum(y * dy)
    found = (np.asarray(tape.gradient(total, x)) * np.asarray(x)).sum()
    np.testing.assert_allclose(found, (np.asarray(y) * dy).sum(), rtol=1e-4, atol=1e-4)
