"""fit, evaluate, predict and the single-batch methods: what they train on, in which order, and what they report."""

import numpy as np
import pytest

from pydtconv import layers, losses, models, optimizers
from pydtconv.utils import set_random_seed
from tests.trainers.small_models import RNG, XS, YS, X, Y, classifier, followed, line


def test_partial_batch_is_trained_and_the_loss_is_the_mean_over_samples():
    model = line()
    batches = [slice(0, 4), slice(4, 8), slice(8, 10)]
    history = model.fit(XS[:, None], YS[:, None], batch_size=4, shuffle=False, verbose=0)
    w, b, seen = followed(XS, YS, batches)
    np.testing.assert_allclose([v.value.item() for v in model.weights], [w, b], rtol=1e-5)
    assert history.history["loss"][0] == pytest.approx((seen * [4, 4, 2]).sum() / 10, rel=1e-5)


def test_validation_split_takes_the_tail():
    model = line()
    history = model.fit(XS[:, None], YS[:, None], batch_size=5, validation_split=0.3, shuffle=False, verbose=0)
    w, b, _ = followed(XS, YS, [slice(0, 5), slice(5, 7)])
    expected = ((w * XS[7:] + b - YS[7:]) ** 2).mean()
    assert history.history["val_loss"][0] == pytest.approx(expected, rel=1e-5)


def test_class_and_sample_weights():
    weights = RNG.uniform(size=10)
    model = line()
    model.fit(XS[:, None], YS[:, None], batch_size=5, sample_weight=weights, shuffle=False, verbose=0)
    w, b, _ = followed(XS, YS, [slice(0, 5), slice(5, 10)], weights)
    np.testing.assert_allclose([v.value.item() for v in model.weights], [w, b], rtol=1e-5)
    one, two = classifier(), classifier()
    table = {0: 1.0, 1: 2.0, 2: 0.5}
    one.fit(X, Y, class_weight=table, epochs=2, verbose=0)
    set_random_seed(5)
    two.set_weights(classifier().get_weights())
    two.fit(X, Y, sample_weight=np.array([table[int(y)] for y in Y]), epochs=2, verbose=0)
    for a, b in zip(one.get_weights(), two.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_equal_seeds_give_equal_runs_bit_for_bit():
    results = []
    for _ in range(2):
        model = classifier(optimizer="adam", metrics=["accuracy"])
        history = model.fit(X, Y, epochs=3, batch_size=8, validation_split=0.2, verbose=0)
        results.append((history.history, model.get_weights()))
    assert results[0][0] == results[1][0]
    for a, b in zip(results[0][1], results[1][1], strict=True):
        np.testing.assert_array_equal(a, b)


def test_evaluate_and_predict():
    model = classifier(metrics=["accuracy"], weighted_metrics=["accuracy"])
    scores = model.predict(X, batch_size=6, verbose=0)
    assert scores.shape == (22, 3)
    for size in 5, 22:
        np.testing.assert_allclose(model.predict(X, batch_size=size, verbose=0), scores, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(model(X), scores, rtol=1e-5, atol=1e-6)
    logs = scores - np.log(np.exp(scores).sum(-1, keepdims=True))
    each, hits = -logs[np.arange(22), Y], scores.argmax(-1) == Y
    weights = RNG.uniform(size=22)
    results = model.evaluate(X, Y, sample_weight=weights, batch_size=5, verbose=0, return_dict=True)
    expected = {
        "loss": (each * weights).mean(),
        "accuracy": hits.mean(),
        "weighted_accuracy": (hits * weights).sum() / weights.sum(),
    }
    assert results == pytest.approx(expected, rel=1e-4)
    assert [*results] == ["accuracy", "loss", "weighted_accuracy"]
    assert model.metrics_names == ["loss", "compile_metrics"]
    assert model.evaluate(X, Y, verbose=0)[0] == pytest.approx(each.mean(), rel=1e-4)
    before = model.get_weights()
    model.test_on_batch(X, Y)
    for a, b in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_regularizers_count_in_loss_and_gradient():
    model = models.Sequential([layers.Input((1,)), layers.Dense(1, use_bias=False, kernel_regularizer="l2")])
    model.compile(optimizers.SGD(0.5), "mse")
    model.set_weights([np.array([[2.0]])])
    zeros = np.zeros((4, 1), "float32")
    loss = model.train_on_batch(zeros, zeros)
    assert loss == pytest.approx(0.01 * 4, rel=1e-5)
    assert model.get_weights()[0].item() == pytest.approx(2 - 0.5 * 2 * 0.01 * 2, rel=1e-5)


def test_frozen_layers_stay_and_keep_the_state_of_the_rest():
    model = classifier(optimizer=optimizers.SGD(0.1, momentum=0.9))
    model.fit(X, Y, verbose=0)
    model.layers[0].trainable = False
    optimizer = model.optimizer
    momentum = [v.numpy() for v in optimizer.variables[-2:]]
    model.compile(optimizer, losses.SparseCategoricalCrossentropy(from_logits=True))
    frozen = model.layers[0].get_weights()
    optimizer.build(model.trainable_variables)
    for a, b in zip(momentum, optimizer.variables[-2:], strict=True):
        np.testing.assert_array_equal(a, b.value)
    model.fit(X, Y, epochs=2, verbose=0)
    for a, b in zip(frozen, model.layers[0].get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_layers_frozen_without_compile_stay_from_the_next_fit_on():
    model = classifier(optimizer=optimizers.SGD(0.1, momentum=0.9))
    model.fit(X, Y, verbose=0)
    model.layers[0].trainable = False
    frozen, rest = model.layers[0].get_weights(), model.layers[1].get_weights()
    model.fit(X, Y, verbose=0)
    for a, b in zip(frozen, model.layers[0].get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(rest[0], model.layers[1].get_weights()[0])


def test_two_models_that_share_layers_train_the_same_variables():
    x = layers.Input((4,))
    shared = layers.Dense(3, activation="tanh")
    one = models.Model(x, layers.Dense(1)(shared(x)))
    two = models.Model(x, layers.Dense(1)(shared(x)))
    for model in one, two:
        model.compile(optimizers.SGD(0.1), "mse")
    for _ in range(2):
        for model in one, two:
            before = shared.get_weights()[0]
            model.train_on_batch(X, X[:, :1])
            assert not np.array_equal(before, shared.get_weights()[0])
            np.testing.assert_allclose(one(X), one.predict(X, verbose=0), rtol=1e-4, atol=1e-6)


def test_loss_scale_and_accumulation():
    plain, scaled, summed = (
        line(),
        line(optimizer=optimizers.SGD(0.5, loss_scale_factor=16.0)),
        line(optimizer=optimizers.SGD(0.5, gradient_accumulation_steps=2)),
    )
    plain.fit(XS[:, None], YS[:, None], batch_size=10, shuffle=False, verbose=0)
    scaled.fit(XS[:, None], YS[:, None], batch_size=10, shuffle=False, verbose=0)
    summed.fit(XS[:, None], YS[:, None], batch_size=5, shuffle=False, verbose=0)
    for model in scaled, summed:
        for a, b in zip(plain.get_weights(), model.get_weights(), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.fit(X, Y[:-1]), "one length"),
        (lambda m: m.fit(X[:0], Y[:0]), "at least one sample"),
        (lambda m: m.fit(X[:, :3], Y), r"expected extent 4 on axis -1, got shape \(22, 3\)"),
        (lambda m: m.fit([X, X], Y), r"expected 1 input"),
        (lambda m: m.fit(X, Y + 1), "from 0 to 2, got 1 to 3"),
        (lambda m: m.fit(X, Y - 1), "from 0 to 2, got -1 to 1"),
        (lambda m: m.fit(X, np.eye(3)[Y]), "categorical_crossentropy"),
        (lambda m: m.fit(X), "expected targets"),
        (lambda m: m.fit(X, {"den": Y}), "no output"),
        (lambda m: m.fit(X, Y, batch_size=0), "batch_size"),
        (lambda m: m.fit(X, Y, validation_split=1.5), "validation_split"),
        (lambda m: m.fit(X, Y, steps_per_epoch=0), "steps"),
        (lambda m: m.fit(X, Y, validation_freq=0), "validation_freq"),
        (lambda m: m.fit(X, Y, class_weight={0: 1.0}, sample_weight=np.ones(22)), "class_weight"),
        (lambda m: m.fit(X, Y, class_weight=[1.0, 2.0, 1.0]), "class_weight: expected a dict"),
        (lambda m: m.fit(X, Y, sample_weight=np.ones(3)), "one length"),
        (lambda m: m.fit(np.array(["a"] * 22), Y), "expected numbers, got strings"),
        (lambda m: m.fit(None, Y), "x: expected"),
        (lambda m: m.fit(iter([]), None), "at least one batch"),
        (lambda m: m.fit(iter([(X, Y)]), Y), "y: expected None"),
        (lambda m: m.compile("adm"), "adam"),
        (lambda m: m.compile(loss="mean_squared_eror"), "mean_squared_error"),
        (lambda m: m.compile(metrics=["acuracy"]), "accuracy"),
        (lambda m: m.compile(metrics="accuracy"), "list"),
        (lambda m: m.compile(steps_per_execution=0), "steps_per_execution"),
    ],
)
def test_wrong_data_changes_nothing(call, message):
    model = classifier()
    before, optimizer = model.get_weights(), model.optimizer
    with pytest.raises(ValueError, match=message):
        call(model)
    for a, b in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
    assert model.optimizer is optimizer


def test_float32_data_of_a_float64_model_in_steps_that_are_python():
    x, y, weights = (np.ones(shape, "float32") for shape in ((4, 3), (4, 2), (4,)))
    found = []
    for eager in (False, True):
        set_random_seed(5)
        model = models.Sequential([layers.Input((3,)), layers.Dense(2, dtype="float64")])
        model.compile("sgd", "mse", run_eagerly=eager)
        found.append(model.fit(x, y, sample_weight=weights, verbose=0).history)
    assert found[0]["loss"] == pytest.approx(found[1]["loss"])


@pytest.mark.parametrize(("classes", "dtype"), [(4, "float32"), (2, "int64")])
def test_class_weights_of_pixels(classes, dtype):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(6, 3, 5, 2)), rng.integers(0, classes, (6, 3, 5))
    table = {0: 1.0, 1: 5.0, 2: 10.0, 3: 100.0}
    weights = np.array([table[i] for i in range(4)])[y]
    ones = np.eye(4, dtype=dtype)[y]
    for loss, labels in (("sparse_categorical_crossentropy", y), ("categorical_crossentropy", ones)):
        model = models.Sequential([layers.Input((3, 5, 2)), layers.Conv2D(4, 1, activation="softmax")])
        model.compile(optimizers.SGD(0.0), loss)
        shares = np.take_along_axis(model.predict(x, verbose=0), y[..., None], -1)[..., 0]
        found = model.fit(x, labels, class_weight=table, verbose=0).history["loss"][0]
        assert found == pytest.approx((-np.log(shares) * weights).mean(), rel=1e-5)
