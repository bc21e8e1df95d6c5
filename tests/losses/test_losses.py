"""Losses against Keras: values and gradients, reductions, sample weights."""

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import DTypePolicy, losses, metrics, ops, replica
from pydtconv.graph import Executor, Graph, Memory, Variable, build_plan
from pydtconv.graph.spatial.partition import Partition
from pydtconv.ops.base import Spec
from tests.real_keras import import_keras

# of Keras on torch, with NumPy 2
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
RNG = np.random.default_rng(3)
N, K = 9, 5


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


LABELS = RNG.integers(0, K, N)
ONE_HOT = np.eye(K)[LABELS]
VALUES = RNG.normal(size=(N, K))
SCORES = softmax(RNG.normal(size=(N, K)))
BINARY = RNG.integers(0, 2, (N, K)).astype("float64")
PROBABILITIES = RNG.uniform(0.05, 0.95, size=(N, K))
UNIT = VALUES / np.linalg.norm(VALUES, axis=-1, keepdims=True)
IGNORED = np.where(LABELS == 2, -1, LABELS)
CASES = {
    "CategoricalCrossentropy": ({"label_smoothing": 0.1}, ONE_HOT, SCORES),
    "CategoricalCrossentropy_logits": ({"from_logits": True}, ONE_HOT, VALUES),
    "SparseCategoricalCrossentropy": ({}, LABELS, SCORES),
    "SparseCategoricalCrossentropy_logits": ({"from_logits": True}, LABELS, VALUES),
    "BinaryCrossentropy": ({"label_smoothing": 0.2}, BINARY, PROBABILITIES),
    "BinaryCrossentropy_logits": ({"from_logits": True}, BINARY, VALUES),
    "BinaryCrossentropy_column": ({}, BINARY[:, 0], PROBABILITIES[:, :1]),
    "BinaryFocalCrossentropy": ({"apply_class_balancing": True}, BINARY, PROBABILITIES),
    "CategoricalFocalCrossentropy": ({}, ONE_HOT, SCORES),
    "CategoricalFocalCrossentropy_logits": ({"from_logits": True, "gamma": 1.5}, ONE_HOT, VALUES),
    "CategoricalFocalCrossentropy_smoothed": ({"label_smoothing": 0.2, "alpha": 0.7}, ONE_HOT, SCORES),
    "MeanSquaredError": ({}, VALUES, PROBABILITIES),
    "MeanSquaredError_column": ({}, VALUES[:, 0], PROBABILITIES[:, :1]),
    "MeanAbsoluteError": ({}, VALUES, PROBABILITIES),
    "MeanAbsolutePercentageError": ({}, VALUES, PROBABILITIES),
    "MeanSquaredLogarithmicError": ({}, PROBABILITIES * 3, SCORES),
    "Huber": ({"delta": 0.7}, VALUES, PROBABILITIES),
    "LogCosh": ({}, VALUES * 3, PROBABILITIES),
    "Hinge": ({}, BINARY, VALUES),
    "SquaredHinge": ({}, BINARY * 2 - 1, VALUES),
    "CategoricalHinge": ({}, ONE_HOT, VALUES),
    "KLDivergence": ({}, softmax(VALUES), SCORES),
    "Poisson": ({}, BINARY * 3, PROBABILITIES),
    "CosineSimilarity": ({}, VALUES, PROBABILITIES),
    "Dice": ({}, BINARY, PROBABILITIES),
    "Dice_axis": ({"axis": (1,)}, BINARY, PROBABILITIES),
    "Tversky": ({"alpha": 0.3, "beta": 0.7}, BINARY, PROBABILITIES),
    "CategoricalGeneralizedCrossEntropy": ({"q": 0.4}, LABELS, SCORES),
    "Circle": ({}, LABELS, UNIT),
    "Circle_diagonal": ({"gamma": 8.0, "margin": 0.3, "remove_diagonal": False}, LABELS, UNIT),
}


def ours(loss, y_true, y_pred, weights):
    """The loss and its gradient, by a plan."""
    variable = Variable(y_pred, dtype="float64", name="y_pred")
    graph = Graph(training=True)
    with graph:
        t = graph.input("t", Spec(y_true.shape, "int64" if loss.takes_labels else "float64"))
        w = None if weights is None else graph.input("w", Spec(weights.shape, "float64"))
        graph.loss = graph.outputs["loss"] = loss(t, ops.multiply(variable, 1.0), w)
    memory = Memory()
    executor = Executor(build_plan(graph), memory)
    value = executor.run({"t": y_true} | ({} if weights is None else {"w": weights}))["loss"]
    return float(value), memory.store.gradient_of(variable).copy()


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_keras_ones(name, weighted):
    keras = import_keras()
    import torch

    options, y_true, y_pred = CASES[name]
    kind = name.split("_")[0]
    weights = RNG.uniform(size=N) if weighted else None
    loss = getattr(losses, kind)(**options)
    value, gradient = ours(loss, y_true, y_pred, weights)
    tensor = torch.tensor(y_pred, requires_grad=True)
    expected = getattr(keras.losses, kind)(**options, dtype="float64")(
        torch.tensor(y_true), tensor, None if weights is None else torch.tensor(weights)
    )
    expected.backward()
    assert value == pytest.approx(float(expected.detach()), rel=1e-6)
    np.testing.assert_allclose(gradient, tensor.grad.numpy(), rtol=1e-5, atol=1e-8)
    assert float(loss(y_true, y_pred, weights)) == pytest.approx(value, rel=1e-9)
    again = losses.deserialize(losses.serialize(loss))
    assert float(again(y_true, y_pred, weights)) == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("reduction", ["sum", "mean", "mean_with_sample_weight", "sum_over_batch_size", "none"])
def test_reductions(reduction):
    keras = import_keras()
    weights = RNG.uniform(size=N)
    own = losses.MeanSquaredError(reduction=reduction)(VALUES, SCORES, weights)
    theirs = keras.losses.MeanSquaredError(reduction=reduction, dtype="float64")(VALUES, SCORES, weights)
    np.testing.assert_allclose(own, keras.ops.convert_to_numpy(theirs), rtol=1e-6)


def test_ignored_class_has_no_loss():
    loss = losses.SparseCategoricalCrossentropy(ignore_class=-1, reduction="none")
    values = loss(IGNORED, SCORES)
    np.testing.assert_allclose(values, np.where(IGNORED < 0, 0, -np.log(SCORES[np.arange(N), LABELS])), rtol=1e-6)


@pytest.mark.parametrize("axes", [(), (1,)], ids=str)
@pytest.mark.parametrize("reduction", ["sum_over_batch_size", "mean", "mean_with_sample_weight", "sum"])
@pytest.mark.parametrize("weighted", [False, True])
def test_ignored_class_does_not_count(weighted, reduction, axes):
    """The mean is one of the samples of other classes, as Keras's is."""
    labels, weights = np.array([0, 1, 0, 2]), np.array([1.0, 2, 3, 4], "float32")
    scores = np.array([[0.2, 0.3, 0.5]] * 4, "float32")
    loss = losses.SparseCategoricalCrossentropy(ignore_class=0, reduction=reduction)
    each = -np.log(scores[[1, 3], labels[[1, 3]]]) * (weights[[1, 3]] if weighted else 1)
    count = {"sum": 1, "mean_with_sample_weight": 6 if weighted else 2}.get(reduction, 2)
    value = loss(labels.reshape(4, *axes), scores, weights if weighted else None)
    assert float(value) == pytest.approx(each.sum() / count, rel=1e-6)


def test_ignored_class_does_not_count_in_a_step():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(6, 4, 4, 3)).astype("float32"), rng.integers(0, 5, (6, 4, 4))
    model = keras.Sequential([keras.Input((4, 4, 3)), keras.layers.Conv2D(5, 1, activation="softmax")])
    model.compile(keras.optimizers.SGD(1.0), losses.SparseCategoricalCrossentropy(ignore_class=2))
    scores, before = model.predict(x, verbose=0), model.get_weights()
    each = -np.log(np.take_along_axis(scores, y[..., None], -1)[..., 0])
    assert model.train_on_batch(x, y) == pytest.approx(each[y != 2].mean(), rel=1e-5)
    slopes = ((scores - np.eye(5)[y])[y != 2] / (y != 2).sum()).sum(axis=0)
    np.testing.assert_allclose(model.get_weights()[1], before[1] - slopes, atol=1e-6)


@pytest.mark.parametrize("weight", [2.0, np.float32(2)])
@pytest.mark.parametrize("reduction", ["sum", "sum_over_batch_size", "none"])
def test_one_number_weighs_all_samples(reduction, weight):
    loss = losses.MeanSquaredError(reduction=reduction)
    np.testing.assert_allclose(loss(VALUES, SCORES, sample_weight=weight), 2 * loss(VALUES, SCORES), rtol=1e-6)
    ignoring = losses.SparseCategoricalCrossentropy(ignore_class=2, reduction=reduction)
    np.testing.assert_allclose(ignoring(LABELS, SCORES, weight), 2 * ignoring(LABELS, SCORES), rtol=1e-6)


def test_circle_does_not_count_samples_without_others_of_their_label():
    labels, embeddings = np.array([0, 0, 1]), np.array([[1, 0], [0.8, 0.6], [0, 1]])
    values = losses.Circle(reduction="none")(labels, embeddings)
    assert (values > 0).tolist() == [True, True, False]
    assert float(losses.Circle()(labels, embeddings)) == pytest.approx(values[:2].mean(), rel=1e-6)
    assert float(losses.Circle()(np.arange(3), embeddings)) == 0


def test_weights_of_samples_apply_to_all_their_pixels():
    y_true, y_pred = RNG.normal(size=(2, N, 4, 3))
    weights = RNG.uniform(size=N)
    value = losses.MeanAbsoluteError()(y_true, y_pred, weights)
    assert float(value) == pytest.approx((np.abs(y_true - y_pred) * weights[:, None, None]).mean())
    with pytest.raises(ValueError, match="sample_weight"):
        losses.MeanAbsoluteError()(y_true, y_pred, np.ones(3))


def test_focal_weights_of_classes():
    y_true, y_pred, alpha = np.eye(3)[[0, 2, 1]], RNG.dirichlet(np.ones(3), 3), [0.1, 0.2, 0.7]
    of_truth = (y_true * y_pred).sum(-1)
    expected = (y_true * alpha).sum(-1) * (1 - of_truth) ** 2 * -np.log(of_truth)
    loss = losses.CategoricalFocalCrossentropy(alpha=alpha, reduction="none")
    np.testing.assert_allclose(loss(y_true, y_pred), expected, rtol=1e-6)
    channels_first = losses.CategoricalFocalCrossentropy(alpha=alpha, reduction="none", axis=1)
    np.testing.assert_allclose(channels_first(y_true[..., None], y_pred[..., None])[:, 0], expected, rtol=1e-6)
    assert losses.CategoricalFocalCrossentropy.from_config(loss.get_config()).get_config() == loss.get_config()
    with pytest.raises(ValueError, match=r"alpha: expected a number, or one for each of 3 classes, got \[0.5, 0.5\]"):
        losses.categorical_focal_crossentropy(y_true, y_pred, alpha=[0.5, 0.5])


def test_names():
    assert losses.get("mse") is losses.get("mean_squared_error") is losses.mean_squared_error
    assert isinstance(losses.get("MeanSquaredError"), losses.MeanSquaredError)
    np.testing.assert_array_equal(losses.get("mse")([[1.0, 3.0], [0.0, 0.0]], [[1.0, 1.0], [1.0, 1.0]]), [2.0, 1.0])
    assert isinstance(losses.get("BinaryCrossentropy"), losses.BinaryCrossentropy)
    assert losses.get(None) is None
    with pytest.raises(ValueError, match="sparse_categorical_crossentropy"):
        losses.get("sparse_categorical_crossentropi")
    with pytest.raises(ValueError, match="reduction"):
        losses.MeanSquaredError(reduction="average")
    with pytest.raises(ValueError, match="label_smoothing"):
        losses.CategoricalCrossentropy(label_smoothing=2)


@pytest.mark.parametrize("reduction", ["sum_over_batch_size", "sum", "mean_with_sample_weight"])
@pytest.mark.parametrize("name", ["Dice", "Tversky"])
def test_weights_of_one_value_for_the_whole_batch(name, reduction):
    keras = import_keras()
    weights = RNG.uniform(0.5, 2, N).astype("float32")
    y_true, y_pred = BINARY.astype("float32"), PROBABILITIES.astype("float32")
    wanted = getattr(keras.losses, name)(reduction=reduction)(y_true, y_pred, weights)
    found = getattr(losses, name)(reduction=reduction)(y_true, y_pred, weights)
    np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-5)


@pytest.mark.parametrize(
    "loss", [losses.Dice(), losses.Tversky(axis=(-1, 0)), losses.Circle()], ids=lambda one: one.name
)
def test_what_is_no_mean_over_samples_is_refused_where_they_are_shared_out(loss, monkeypatch):
    here = replica.Replica()
    monkeypatch.setattr(replica, "_current", here)

    def trace():
        with Graph() as graph:
            shape = (4, 1) if loss.takes_labels else (4, 3)
            return loss(graph.input("y", Spec(shape, "float32")), graph.input("x", Spec((4, 3), "float32")))

    here.size = 2
    with pytest.raises(ValueError, match=f"{loss.name}: expected all samples of a batch in one process.* over 2"):
        trace()
    assert np.shape(loss(np.zeros((4, 1) if loss.takes_labels else (4, 3)), np.eye(4, 3))) == ()
    here.partition = Partition(("height",), (2,), (0, 1), 0)
    assert tuple(trace().shape) == ()
    here.partition = None
    if not loss.takes_labels:
        loss = type(loss)(axis=(1,))
        assert tuple(trace().shape) == ()


def test_weights_of_samples_with_a_last_axis_count_for_all_steps():
    """(n, 1) for losses (n, steps), as Keras broadcasts them."""
    y_true, y_pred = np.zeros((3, 2, 4), "float32"), np.arange(24, dtype="float32").reshape(3, 2, 4)
    weights = np.array([1, 0, 3], "float32")
    for reduction in ("sum_over_batch_size", "sum", "mean_with_sample_weight"):
        loss = losses.MeanSquaredError(reduction=reduction)
        assert loss(y_true, y_pred, weights[:, None]) == loss(y_true, y_pred, weights)
    assert losses.MeanSquaredError()([[0.0]], [[0.5]]).dtype == "float32"


@pytest.mark.parametrize("loss", [losses.MeanSquaredError, losses.CategoricalCrossentropy, losses.Hinge])
@pytest.mark.parametrize("reduction", ["sum", "sum_over_batch_size", "mean_with_sample_weight"])
def test_of_nothing(loss, reduction):
    nothing = np.zeros((0, 3), "float32")
    assert loss(reduction=reduction)(nothing, nothing) == 0
    assert loss(reduction=reduction)(nothing, nothing, np.zeros(0)) == 0


def test_a_loss_computes_in_the_dtype_that_it_is_given():
    rng = np.random.default_rng(0)
    y, p = rng.random((6, 3)), rng.random((6, 3)).astype("float32")
    found = losses.MeanSquaredError(dtype="float64")(y, p)
    assert found == pytest.approx(np.mean((y - p) ** 2), rel=1e-14)
    assert losses.MeanSquaredError()(y, p) != found
    with pytest.raises(ValueError, match="MeanSquaredError: dtype: expected float32 or float64, got 'bfloat16'"):
        losses.MeanSquaredError(dtype="bfloat16")


def test_a_policy_says_in_which_dtype_a_loss_computes():
    y, p = np.zeros((1, 3), "float32"), np.full((1, 3), 0.1, "float32")
    for policy in ("mixed_bfloat16", DTypePolicy("mixed_bfloat16"), "float32"):
        loss = losses.MeanSquaredError(dtype=policy)
        assert loss.dtype == "float32"
        assert loss(y, p) == losses.MeanSquaredError()(y, p)
    with pytest.raises(ValueError, match=r"Hinge: dtype: .* got 'mixed_float16'; instead of mixed_float16 use mixed_b"):
        losses.Hinge(dtype="mixed_float16")


@pytest.mark.parametrize("name", ["categorical_crossentropy", "categorical_focal_crossentropy"])
def test_predictions_of_one_class_are_warned_of(name):
    loss = getattr(losses, name)
    for shape, axis in ((2, 1), -1), ((2, 1, 4), 1):
        with pytest.warns(SyntaxWarning, match=f"{name}: expected y_pred.shape .* num_classes above 1, got"):
            loss(np.ones(shape), np.ones(shape), axis=axis)
    loss(np.ones((2, 4, 1)), np.ones((2, 4, 1)), axis=1)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["MeanSquaredError", "MeanAbsoluteError", "MeanAbsolutePercentageError",
                                  "MeanSquaredLogarithmicError", "Huber", "LogCosh", "Poisson", "KLDivergence",
                                  "Hinge", "SquaredHinge", "CosineSimilarity"])  # fmt: skip
def test_shapes_that_broadcasting_makes_equal_give_the_numbers_of_keras(name):
    keras, rng = import_keras(), np.random.default_rng(0)
    wide, narrow = rng.random((4, 5, 3), "float32") + 0.1, np.float32(rng.random((4, 5, 1)) > 0.5)
    for shape in ((4, 5, 1), (4, 1, 1), (4, 1, 3)):
        y = narrow[:, : shape[1]] * np.ones(shape, "float32")
        for pair in ((y, wide), (wide, y * 0.5 + 0.2)):
            expected = np.asarray(getattr(keras.losses, name)(reduction="none")(*pair))
            found = np.asarray(getattr(losses, name)(reduction="none")(*pair))
            np.testing.assert_allclose(found, expected, rtol=2e-4, atol=1e-5)
            if hasattr(metrics, name):
                ours, theirs = getattr(metrics, name)(), getattr(keras.metrics, name)()
                ours.update_state(*pair)
                theirs.update_state(*pair)
                np.testing.assert_allclose(ours.result(), np.asarray(theirs.result()), rtol=2e-4, atol=1e-5)


def test_shapes_that_broadcasting_makes_equal_are_warned_of():
    with pytest.warns(UserWarning, match=r"loss 'mse': y_true \(4, 1\) and y_pred \(4, 3\) are repeated to \(4, 3\)"):
        losses.mean_squared_error(np.ones((4, 1), "float32"), np.ones((4, 3), "float32"))
    with pytest.raises(ValueError, match="y_true must have y_pred's shape"):
        losses.mean_squared_error(np.ones((4, 2), "float32"), np.ones((4, 3), "float32"))


@pytest.mark.parametrize("kind", [list, tuple])
def test_a_loss_of_ones_own_takes_structures(kind):
    class Sum(losses.Loss):
        def call(self, y_true, y_pred):
            return sum(ops.mean(ops.square(a - b), axis=-1) for a, b in zip(y_true, y_pred, strict=True))

    rng = np.random.default_rng(0)
    y_true, y_pred = (kind(rng.random((3, n)).astype("float32") for n in (2, 5)) for _ in range(2))
    expected = np.mean(sum(((a - b) ** 2).mean(-1) for a, b in zip(y_true, y_pred, strict=True)))
    np.testing.assert_allclose(Sum()(y_true, y_pred), expected, rtol=1e-6)
    weights = np.array([1.0, 0.0, 2.0])
    values = sum(((a - b) ** 2).mean(-1) for a, b in zip(y_true, y_pred, strict=True))
    np.testing.assert_allclose(Sum()(y_true, y_pred, weights), np.mean(values * weights), rtol=1e-6)
