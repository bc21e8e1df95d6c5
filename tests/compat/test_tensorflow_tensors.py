"""What is a tensor for TensorFlow knows `numpy()` under `pydtconv run`, and is NumPy's elsewhere."""

import inspect

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import hooks, initializers, ops, random
from pydtconv.compat.tensorflow.arrays import Array, as_tensor
from pydtconv.ops.functions.tables import creating
from pydtconv.optimizers import schedules

#: arguments of functions that make arrays
MAKERS = {
    "arange": (3,), "array": ([1.0],), "bartlett": (3,), "blackman": (3,), "convert_to_tensor": ([1.0],),
    "empty": ((2,),), "empty_like": ([1.0],), "eye": (2,), "full": ((2,), 1.0), "full_like": ([1.0], 2.0),
    "geomspace": (1.0, 2.0, 3), "hamming": (3,), "hanning": (3,), "identity": (2,), "kaiser": (3, 1.0),
    "linspace": (0.0, 1.0, 3), "logspace": (0.0, 1.0, 3), "ones": ((2,),), "ones_like": ([1.0],), "tri": (2,),
    "zeros": ((2,),), "zeros_like": ([1.0],),
}  # fmt: skip
DRAWS = {
    "beta": ((2,), 1.0, 1.0), "binomial": ((2,), 3.0, 0.5), "categorical": (np.ones((1, 2)), 2),
    "dropout": (np.ones(3, "float32"), 0.5), "gamma": ((2,), 1.0), "normal": ((2,),), "randint": ((2,), 0, 3),
    "shuffle": (np.arange(3),), "truncated_normal": ((2,),), "uniform": ((2,),),
}  # fmt: skip
SCHEDULES = {
    "CosineDecay": (0.1, 10), "CosineDecayRestarts": (0.1, 10), "ExponentialDecay": (0.1, 10, 0.5),
    "InverseTimeDecay": (0.1, 10, 0.5), "PiecewiseConstantDecay": ([1], [0.1, 0.2]), "PolynomialDecay": (0.1, 10),
    "LinearScaling": (0.1, 2.0),
}  # fmt: skip

WHOLE, FLOATS = np.array([[3, 1], [2, 0]]), np.array([[3.0, 1.0], [2.0, 0.5]], "float32")
#: arguments of functions that have paths of their own for arrays
ON_ARRAYS = {
    "bincount": (WHOLE[0],), "cast": (WHOLE, "float32"), "concatenate": ([WHOLE],), "copy": (FLOATS,),
    "dot": (WHOLE, WHOLE), "map": (lambda x: x, FLOATS), "matmul": (WHOLE, WHOLE), "mean": (WHOLE,),
    "norm": (FLOATS, 2, None, True), "pad": (FLOATS, 0), "saturate_cast": (FLOATS, "uint8"), "stack": ([FLOATS],),
    "unique": (WHOLE,), "vectorized_map": (lambda x: x, FLOATS),
}  # fmt: skip


def classes(module, base):
    return {n: c for n, c in vars(module).items() if inspect.isclass(c) and issubclass(c, base) and c is not base}


def calls():
    for name in {*creating.__all__} - {"convert_to_numpy"}:
        yield f"ops.{name}", lambda name=name: getattr(ops, name)(*MAKERS[name])
    for name in {*random.__all__} - {"SeedGenerator"}:
        yield f"random.{name}", lambda name=name: getattr(random, name)(*DRAWS[name])
    for name, kind in classes(initializers, initializers.Initializer).items():
        if name != "RandomInitializer":
            shape = (4, 1, 3) if "STFT" in kind.__name__ else (3, 3)
            yield f"initializers.{name}", lambda kind=kind, shape=shape: kind()(shape)
    for name, kind in classes(schedules, schedules.LearningRateSchedule).items():
        yield f"schedules.{name}", lambda kind=kind, name=name: kind(*SCHEDULES[name])(3)
    for name, arguments in ON_ARRAYS.items():
        yield f"ops.{name}", lambda name=name, arguments=arguments: getattr(ops, name)(*arguments)
    for name in ("nonzero", "where"):
        yield f"ops.{name}", lambda name=name: getattr(ops, name)(WHOLE)[0]
    yield "ops.top_k", lambda: ops.top_k(FLOATS, 1)[1]
    for name in ("categorical_accuracy", "mean_squared_error", "kl_divergence"):
        yield f"metrics.{name}", lambda name=name: getattr(keras.metrics, name)(FLOATS, FLOATS)
    yield "Variable.value", lambda: keras.Variable([1.0, 2.0]).value
    yield "Variable * 2", lambda: keras.Variable([1.0, 2.0]) * 2
    yield "loss", lambda: keras.losses.MeanSquaredError()(np.ones((1, 2)), np.zeros((1, 2)))


def test_all_that_makes_tensors_gives_what_knows_numpy():
    for name, call in calls():
        assert type(call()) in (np.ndarray, float) or name == "loss", name
    hooks.as_result.fill(as_tensor)
    try:
        for name, call in calls():
            assert isinstance(call().numpy(), (np.ndarray, np.generic)), name
    finally:
        hooks.as_result.reset()


def test_elements_of_tensors_are_tensors(tf):
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    scalars = [x[0, 0], x[0][1], next(iter(x[0])), x[0, 0] + 1, 2 * x[0, 0], -x[0, 0], x[0, 0] ** 2, x[0, 0] > 0]
    assert all(isinstance(each, Array) and each.shape == () for each in scalars)
    assert [each.numpy() for each in scalars] == [1, 2, 1, 2, 2, -1, 1, True]
    assert (float(x[1, 1]), int(x[1, 1]), [10, 20][tf.constant(1)]) == (4.0, 4, 20)
    result = (tf.keras.metrics.Mean()([1.0, 2.0]) * 100) / 2
    assert (result.numpy(), result) == (75, 75)
    assert (tf.shape(x)[0].numpy(), tf.size(x).numpy(), tf.rank(x).numpy()) == (2, 4, 2)


def test_several_results_have_names(tf):
    top, (values, places) = tf.math.top_k([[1.0, 3.0, 2.0]], 2), tf.nn.top_k([[1.0, 3.0, 2.0]], 2)
    np.testing.assert_array_equal(top.values.numpy(), values)
    np.testing.assert_array_equal(top.indices.numpy(), places)
    found = tf.unique_with_counts([4, 1, 4])
    assert [each.numpy().tolist() for each in (found.y, found.idx, found.count)] == [[4, 1], [0, 1, 0], [2, 1]]
    assert tf.unique([4, 1, 4]).idx.numpy().tolist() == [0, 1, 0]
    assert tf.function(lambda x: tf.math.top_k(x, 1).indices)(tf.constant([1.0, 3.0])).numpy().tolist() == [1]


def test_gradients_take_functions_of_numpy_once_their_tape_is_closed(tf):
    v = tf.Variable([3.0, -4.0])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(v.value() * v.read_value())
        with pytest.raises(TypeError, match=r"expected functions of keras\.ops, got one of NumPy"):
            np.abs(v * v)
    gradient = tape.gradient(y, v)
    np.testing.assert_array_equal(np.abs(gradient), [6, 8])
    np.testing.assert_array_equal(np.ones(2) - gradient, [-5, 9])
    assert (np.max(gradient), np.linalg.norm(gradient)) == (6, 10)


def test_what_tensorflow_alone_runs_says_what_there_is(tf):
    for call in (lambda: tf.saved_model, lambda: tf.keras.layers.TFSMLayer):
        with pytest.raises(AttributeError, match=r"(?i)a graph of TensorFlow runs on TensorFlow alone: .*keras.*ONNX"):
            call()
