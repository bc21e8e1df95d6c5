"""Functions of tensorflow give what TensorFlow gives; each of its names is there or is refused with a reason."""

import inspect
import json
from pathlib import Path

import numpy as np
import pytest

from pydtconv import config
from pydtconv.compat.tensorflow import refused
from tests.compat import tensorflow_calls

VALUES = json.loads(tensorflow_calls.VALUES.read_text())
NAMES = [line.split(": ") for line in (Path(__file__).parent / "tensorflow_names.txt").read_text().splitlines()]
#: arguments that mean nothing here, or that steer what TensorFlow keeps in memory
UNUSED = {
    *("name", "back_prop", "swap_memory", "parallel_iterations", "infer_shape", "dct_method", "fancy_upscaling"),
    *("layout", "bad_indices_policy", "dim", "validate_args", "alg", "grad_a", "grad_b", "warn"),
    *("fallback_to_while_loop", "equation", "num", "out_type"),
}
#: names that other rooms have, or will have
ELSEWHERE = {"DType", "as_dtype", "as_string"}


@pytest.mark.parametrize("layout", ["channels_last", "channels_first"])
@pytest.mark.parametrize("part", tensorflow_calls.CALLS)
def test_functions_give_what_tensorflow_gives(tf, part, layout):
    if layout != "channels_last" and part not in ("image", "nn"):
        pytest.skip("has no images")
    config.set_image_data_format(layout)
    wrong = []
    for call in tensorflow_calls.calls(part):
        for (dtype, shape, numbers), (their_dtype, their_shape, theirs) in zip(
            tensorflow_calls.called(tf, call), VALUES[call], strict=True
        ):
            atol = 1e-3 if "bicubic" in call else 1e-4  # TensorFlow rounds the places of its filter
            near = shape == their_shape and np.allclose(numbers, theirs, rtol=2e-4, atol=atol, equal_nan=True)
            kind = "f" if call.startswith("(lambda") or "shape_n" in call else np.dtype(their_dtype).kind
            if not near or (kind != "f" and dtype != their_dtype):
                wrong.append((call, dtype, shape, numbers[:6], their_dtype, their_shape, theirs[:6]))
    assert not wrong, "\n".join(map(str, wrong))


def _module(tf, name):
    for part in name.split("."):
        tf = tf if part == "tf" else getattr(tf, part)
    return tf


def test_each_name_of_tensorflow_is_there_or_is_refused_with_a_reason(tf):
    unexplained = []
    for module, text in NAMES:
        name = text.partition("(")[0]
        found = _module(tf, module)
        try:
            getattr(found, name)
        except AttributeError as error:
            full = found.__name__
            why = refused.reason(full, name, dir(found))
            if name not in ELSEWHERE and (why is None or why[1:] not in str(error)):
                unexplained.append(f"{module}.{name}")
    assert not unexplained


def test_arguments_have_tensorflows_names(tf):
    wrong = []
    for module, text in NAMES:
        name, _, arguments = text.rstrip(")").partition("(")
        if name in ELSEWHERE:
            continue
        function = getattr(_module(tf, module), name, None)
        if not arguments or not callable(function) or isinstance(function, type):
            continue
        parameters = inspect.signature(function).parameters
        if not any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values()):
            missing = {*arguments.split(", ")} - {*parameters} - UNUSED
            wrong += [f"{module}.{name}: {', '.join(sorted(missing))}"] if missing else []
    assert not wrong, "\n".join(map(str, wrong))


GRADIENTS = {
    "tf.math.lgamma(p)": "p",
    "tf.math.digamma(p + 0.5)": "p",
    "tf.nn.conv2d_transpose(image, f2t, [1, 9, 7, 3], 2) ** 2": "f2t",
    "tf.nn.max_pool_with_argmax(image, 2, 2, 'SAME')[0] ** 2": "image",
    "tf.math.unsorted_segment_max(x, [0, 1, 0], 3)[:2] ** 2": "x",
    "tf.image.resize(image, (3, 3), 'area') ** 2": "image",
    "tf.nn.lrn(image) ** 2": "image",
    "tf.scan(lambda a, e: a * e, x)": "x",
    "tf.math.cumulative_logsumexp(x)": "x",
}


@pytest.mark.parametrize("call", GRADIENTS)
def test_gradients_are_differences(tf, call):
    names = tensorflow_calls.inputs()
    value = names[GRADIENTS[call]]

    def total(x):
        return tf.reduce_sum(eval(call, {"tf": tf, **names, GRADIENTS[call]: x}))

    variable = tf.Variable(value)
    with tf.GradientTape() as tape:
        y = total(variable)
    found = np.asarray(tape.gradient(y, variable))
    direction = np.random.default_rng(1).choice([-1, 1], value.shape).astype("float32")
    step = 5e-3
    expected = (float(total(value + step * direction)) - float(total(value - step * direction))) / (2 * step)
    np.testing.assert_allclose((found * direction).sum(), expected, rtol=5e-3, atol=2e-2)
