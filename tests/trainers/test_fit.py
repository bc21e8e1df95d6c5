"""fit, evaluate, predict and the single-batch methods: what they train on, in which order, and what they report."""

import threading
import time

import numpy as np
import pytest

import pydtconv
from pydtconv import layers, losses, metrics, models, ops, optimizers
from pydtconv.utils import PyDataset, set_random_seed

RNG = np.random.default_rng(0)
X = RNG.normal(size=(22, 4)).astype("float32")
Y = RNG.integers(0, 3, 22)


def classifier(**compiled):
    set_random_seed(5)
    model = models.Sequential([layers.Input((4,)), layers.Dense(5, activation="tanh"), layers.Dense(3)])
    arguments = {"optimizer": optimizers.SGD(0.1), "loss": losses.SparseCategoricalCrossentropy(from_logits=True)}
    model.compile(**arguments | compiled)
    return model


def line(**compiled):
    """y = w * x + b from w = 0, b = 0: steps can be followed by hand."""
    model = models.Sequential([layers.Input((1,)), layers.Dense(1, kernel_initializer="zeros")])
    model.compile(**{"optimizer": optimizers.SGD(0.5), "loss": "mse"} | compiled)
    return model


def followed(x, y, batches, weights=None, rate=0.5, w=0.0, b=0.0):
    """w, b and the losses after plain gradient descent on the mean squared error over these batches."""
    weights = np.ones(len(x)) if weights is None else weights
    seen = []
    for batch in batches:
        error = w * x[batch] + b - y[batch]
        seen.append((weights[batch] * error**2).mean())
        slope = 2 * weights[batch] * error / len(error)
        w, b = w - rate * (slope * x[batch]).sum(), b - rate * slope.sum()
    return w, b, np.array(seen)


XS = np.linspace(-1, 1, 10)
YS = 3 * XS + 1


def test_partial_batch_is_trained_and_the_loss_is_the_mean_over_samples():
    model = line()
    batches = [slice(0, 4), slice(4, 8), slice(8, 10)]
    history = model.fit(XS[:, None], YS[:, None], batch_size=4, shuffle=False, verbose=0)
    w, b, seen = followed(XS, YS, batches)
    np.testing.assert_allclose([v.value.item() for v in model.weights], [w, b], rtol=1e-5)
    assert history.history["loss"][0] == pytest.approx((seen * [4, 4, 2]).sum() / 10, rel=1e-5)


class _Parts(PyDataset):
    def __len__(self):
        return 5

    def __getitem__(self, i):
        return XS[2 * i : 2 * i + 2, None], YS[2 * i : 2 * i + 2, None]


def _endless():
    while True:
        yield from (_Parts()[i] for i in range(5))


@pytest.mark.parametrize(
    ("data", "again"), [(lambda: (XS[:, None], YS[:, None]), True), (_Parts, True), (_endless, False)]
)
def test_validation_steps_are_of_the_same_batches_in_each_epoch(data, again):
    """Where data can begin again: a generator goes on."""
    model = line(optimizer=optimizers.SGD(0.0))
    options = {"epochs": 3, "batch_size": 2, "validation_data": data(), "validation_steps": 1, "verbose": 0}
    found = model.fit(XS[:, None], YS[:, None], **options).history["val_loss"]
    parts = [np.mean(YS[2 * i : 2 * i + 2] ** 2) for i in range(3)]
    np.testing.assert_allclose(found, [parts[0]] * 3 if again else parts, rtol=1e-5)


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


def test_epochs_are_shuffled_differently_and_not_at_all_without_shuffle():
    seen = []

    class Spy(metrics.Metric):
        def update_state(self, y_true, y_pred, sample_weight=None):
            seen.extend(y_true[:, 0].tolist())

        def result(self):
            return 0.0

    model = line(metrics=[Spy(name="spy")])
    model.fit(XS[:, None], YS[:, None], batch_size=4, epochs=2, verbose=0)
    first, second = seen[:10], seen[10:]
    assert sorted(first) == sorted(second)
    assert first != second
    seen.clear()
    model.fit(XS[:, None], YS[:, None], batch_size=4, shuffle=False, verbose=0)
    np.testing.assert_allclose(seen, YS, rtol=1e-6)


def test_initial_epoch_steps_and_validation_frequency():
    model = line()
    history = model.fit(
        XS[:, None],
        YS[:, None],
        batch_size=2,
        initial_epoch=2,
        epochs=4,
        steps_per_epoch=2,
        validation_data=(XS[:, None], YS[:, None]),
        validation_freq=2,
        verbose=0,
    )
    assert history.epoch == [2, 3]
    assert len(history.history["loss"]) == 2
    assert len(history.history["val_loss"]) == 1
    assert int(model.optimizer.iterations) == 4


def test_generators_data_sets_and_iterables_give_the_same_run():
    def batches():
        for start in range(0, 10, 4):
            yield XS[start : start + 4, None], YS[start : start + 4, None]

    class Data(PyDataset):
        def __len__(self):
            return 3

        def __getitem__(self, index):
            return list(batches())[index]

    class Loader:
        def __len__(self):
            return 3

        def __iter__(self):
            return batches()

    expected = line()
    expected.fit(XS[:, None], YS[:, None], batch_size=4, shuffle=False, epochs=2, verbose=0)
    for data in Data(), Data(workers=2), Loader():
        model = line()
        model.fit(data, shuffle=False, epochs=2, verbose=0)
        for a, b in zip(model.get_weights(), expected.get_weights(), strict=True):
            np.testing.assert_array_equal(a, b)
    model = line()
    history = model.fit(batches(), verbose=0)
    assert int(model.optimizer.iterations) == 3
    assert history.history["loss"][0] == pytest.approx(expected.history.history["loss"][0])


@pytest.mark.parametrize("own", [False, True])
def test_an_epoch_without_batches_is_none(own, tmp_path):
    class Own(pydtconv.Sequential):
        def train_step(self, data):
            return super().train_step(data)

    model = (Own if own else pydtconv.Sequential)([layers.Input((2,)), layers.Dense(1)])
    model.compile("sgd", "mse")
    best = pydtconv.callbacks.ModelCheckpoint(tmp_path / "a.weights.h5", "loss", 0, True, True)
    batch = np.ones((2, 2)), np.ones((2, 1))
    with pytest.warns(UserWarning, match="ran out of data"):
        history = model.fit((batch for _ in range(2)), epochs=3, verbose=0, callbacks=[best])
    assert history.epoch == [0]
    assert best.best == history.history["loss"][0] > 0
    with pytest.raises(ValueError, match="expected at least one batch, got an empty generator"):
        model.fit((batch for _ in ()), verbose=0)


def test_a_generator_that_ran_dry_warns_and_stops():
    model = line()
    with pytest.warns(UserWarning, match="ran out of data"):
        history = model.fit(((XS[:5, None], YS[:5, None]) for _ in range(3)), steps_per_epoch=2, epochs=4, verbose=0)
    assert int(model.optimizer.iterations) == 3
    assert len(history.epoch) == 2


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


def test_single_batches():
    one, two = classifier(), classifier()
    loss = one.train_on_batch(X, Y, return_dict=True)["loss"]
    history = two.fit(X, Y, batch_size=22, shuffle=False, verbose=0)
    assert loss == history.history["loss"][0]
    for a, b in zip(one.get_weights(), two.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(one.predict_on_batch(X), two.predict(X, batch_size=22, verbose=0))


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


def test_own_loss_function_and_own_total():
    def distance(y_true, y_pred):
        return ops.mean(ops.abs(y_true - y_pred), axis=-1)

    one, two = line(loss=distance), line(loss="mae")
    assert one.evaluate(XS[:, None], YS[:, None], verbose=0) == two.evaluate(XS[:, None], YS[:, None], verbose=0)

    class Doubled(models.Sequential):
        def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
            return super().compute_loss(x, y, y_pred, sample_weight, training) * 2.0

    model = Doubled([layers.Input((1,)), layers.Dense(1, kernel_initializer="zeros")])
    model.compile("sgd", "mae")
    expected = 2 * two.evaluate(XS[:, None], YS[:, None], verbose=0)
    assert model.evaluate(XS[:, None], YS[:, None], verbose=0) == pytest.approx(expected)


@pytest.mark.parametrize("stepped", [False, True])
def test_compute_loss_without_training(stepped):
    class Halved(models.Sequential):
        def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None):
            return 0.5 * ops.mean(ops.abs(y - y_pred))

    class Stepped(Halved):
        def train_step(self, data):
            return super().train_step(data)

        def test_step(self, data):
            return super().test_step(data)

    model = (Stepped if stepped else Halved)([layers.Input((1,)), layers.Dense(1, kernel_initializer="zeros")])
    model.compile(optimizers.SGD(0.0))
    half = 0.5 * np.abs(YS).mean()
    found = model.fit(XS[:, None], YS[:, None], validation_data=(XS[:, None], YS[:, None]), verbose=0).history
    assert [found["loss"][0], found["val_loss"][0]] == pytest.approx([half, half], rel=1e-5)


def test_what_compute_metrics_adds_is_reported(tmp_path):
    class Means(models.Sequential):
        def compute_metrics(self, x, y, y_pred, sample_weight=None):
            return {**super().compute_metrics(x, y, y_pred, sample_weight), "mean": ops.mean(y_pred)}

    model = Means([layers.Input((1,)), layers.Dense(1, kernel_initializer="zeros", bias_initializer="ones")])
    model.compile(optimizers.SGD(0.0), "mse", metrics=["mae"])
    data = XS[:, None], YS[:, None]
    kept = pydtconv.callbacks.ModelCheckpoint(tmp_path / "net.keras", "val_mean", mode="min", save_best_only=True)
    found = model.fit(*data, validation_data=data, callbacks=[kept], verbose=0).history
    assert {"loss", "mae", "mean", "val_loss", "val_mae", "val_mean"} == set(found)
    assert found["mean"] == found["val_mean"] == [1]
    assert model.evaluate(*data, return_dict=True, verbose=0)["mean"] == 1
    assert (tmp_path / "net.keras").exists()


def test_pairs_in_the_wrong_order_are_told():
    model = line()
    variable = model.trainable_variables[0]
    with pytest.raises(TypeError, match=r"expected pairs \(gradient, variable\), got array"):
        model.optimizer.apply_gradients([(variable, np.zeros((1, 1), "float32"))])


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


def test_plan():
    model = classifier()
    plan = model.plan(16)
    assert plan.peak_bytes > 0
    with pytest.raises(pydtconv.graph.MemoryLimitError):
        model.plan(16, memory_limit=10)
    fresh = models.Sequential([layers.Input((4,)), layers.Dense(3)])
    assert fresh.plan(8).peak_bytes > 0
    with pytest.raises(ValueError, match="batch_size"):
        model.plan(0)


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
        (lambda m: m.fit(np.array(["a"] * 22), Y), "array of numbers"),
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


def test_not_compiled():
    model = models.Sequential([layers.Input((4,)), layers.Dense(3)])
    assert model.predict(X, verbose=0).shape == (22, 3)
    for method in model.fit, model.evaluate, model.train_on_batch:
        with pytest.raises(ValueError, match="compile"):
            method(X, Y)


def test_validation_data_that_are_used_up_have_no_results():
    data = iter([(XS[:5, None], YS[:5, None]), (XS[5:, None], YS[5:, None])])
    with pytest.warns(UserWarning, match="validation has fewer batches"):
        found = line().fit(XS[:, None], YS[:, None], epochs=3, validation_data=data, verbose=0).history
    assert [len(found["loss"]), len(found["val_loss"])] == [3, 1]


class _Echo(models.Sequential):
    def train_step(self, data):
        return super().train_step(data)


@pytest.mark.parametrize(("kind", "eager"), [(_Echo, False), (models.Sequential, True)])
def test_class_weights_of_streams_reach_steps_that_are_python_or_ones_own(kind, eager):
    table = {0: 1.0, 1: 4.0, 2: 0.5}
    found = []
    for data in ({"x": iter([(X, Y)])}, {"x": X, "y": Y, "batch_size": 22, "shuffle": False}):
        set_random_seed(5)
        model = kind([layers.Input((4,)), layers.Dense(3)])
        loss = losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(optimizers.SGD(0.1), loss, weighted_metrics=["accuracy"], run_eagerly=eager)
        found.append(model.fit(**data, class_weight=table, verbose=0).history)
    assert found[0] == found[1]
    with pytest.raises(ValueError, match="class_weight"):
        model.fit(iter([(X, Y, np.ones(22))]), class_weight=table, verbose=0)


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


def test_validation_of_some_batches_may_change_between_resumed_runs(tmp_path):
    for epochs, size in ((1, 5), (2, 2)):
        backup = pydtconv.callbacks.BackupAndRestore(tmp_path, delete_checkpoint=False)
        found = line().fit(
            *(XS[:, None], YS[:, None]),
            epochs=epochs,
            validation_data=(XS[:, None], YS[:, None]),
            validation_steps=2,
            validation_batch_size=size,
            callbacks=[backup],
            verbose=0,
        )
    assert len(found.history["val_loss"]) == 2


@pytest.mark.parametrize("workers", [1, 2])
def test_a_data_set_that_stops_before_its_end_is_an_error(workers):
    class Short(PyDataset):
        rest = iter([(np.ones((2, 3)), np.ones((2, 1)))] * 3)

        def __len__(self):
            return 4

        def __getitem__(self, index):
            return next(self.rest)

    model = pydtconv.Sequential([pydtconv.Input((3,)), layers.Dense(1)])
    model.compile("sgd", "mse")
    with pytest.raises(RuntimeError, match="StopIteration"):
        model.fit(Short(workers=workers), verbose=0)


def test_an_error_of_data_does_not_wait_for_another_thread_that_reads():
    begun, over = threading.Event(), threading.Event()

    class Hanging(PyDataset):
        def __len__(self):
            return 3

        def __getitem__(self, index):
            if index == 1:
                begun.wait()
                raise OSError("the line is dead")
            if index == 2:
                begun.set()
                over.wait(10)
            return np.ones((2, 3)), np.ones((2, 1))

    model = pydtconv.Sequential([pydtconv.Input((3,)), layers.Dense(1)])
    model.compile("sgd", "mse")
    start = time.monotonic()
    with pytest.raises(OSError, match="the line is dead"):
        model.fit(Hanging(workers=2, max_queue_size=2), verbose=0, shuffle=False)
    assert time.monotonic() - start < 8
    over.set()


def test_an_evaluation_before_the_first_batch_of_steps_that_are_python():
    x, y = np.ones((4, 3), "float32"), np.arange(4.0)[:, None]

    def history(evaluates):
        model = pydtconv.Sequential([pydtconv.Input((3,)), layers.Dense(1, kernel_initializer="ones")])
        model.compile(optimizers.SGD(0.0), "mse", metrics=["mae"], run_eagerly=True)
        evaluate = pydtconv.callbacks.LambdaCallback(on_epoch_begin=lambda *_: model.evaluate(x, -y, verbose=0))
        return model.fit(x, y, verbose=0, callbacks=[evaluate] if evaluates else []).history

    assert history(True) == history(False)
