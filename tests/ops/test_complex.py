"""Complex numbers: each function of `ops` gives what NumPy gives for them, or refuses them by name."""

import inspect

import numpy as np
import pytest

import pydtconv
from pydtconv import layers, losses, metrics, ops, tree
from tests.ops.result_types import as_dtype, calls, functions

Z = as_dtype(np.array([[0.5, -1.5, 2.0], [1.0, 0.25, -3.0]], "float32"), "complex64")
#: what functions give that NumPy has not, or under other names or with other arguments
REFERENCES = {
    "divide_no_nan": np.divide,
    "dtype": lambda x: "complex64",
    "is_tensor": lambda x: True,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "svd": lambda x, compute_uv: np.linalg.svd(x, compute_uv=compute_uv),
    "true_divide": np.divide,
    "view": lambda x, dtype=None: x.astype("complex64").view(dtype or "complex64"),
    "view_as_real": lambda x: np.stack([x.real, x.imag], -1),
}


def is_complex(x):
    return isinstance(x, np.ndarray) and x.dtype.kind == "c"


def expected(name, function, args, kwargs):
    """By NumPy in complex128; of a function that it lacks, which has to be linear, by its real and imaginary parts."""
    reference = REFERENCES.get(name) or getattr(np, name, None) or getattr(np.linalg, name, None)
    if reference is not None:
        wide = tree.map_structure(lambda x: x.astype("complex128") if is_complex(x) else x, args)
        result = reference(*wide, **kwargs)
        return list(result) if isinstance(result, tuple) else result
    parts = (
        function(*tree.map_structure(lambda x, part=part: getattr(x, part) if is_complex(x) else x, args), **kwargs)
        for part in ("real", "imag")
    )
    return tree.map_structure(lambda a, b: a + 1j * b, *parts)


def compare(got, want):
    for a, b in zip(tree.flatten(got), tree.flatten(want), strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert (a.shape, a.dtype.kind) == (b.shape, b.dtype.kind)
        assert a.dtype not in ("complex128", "float64")
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5) if a.dtype.kind in "cf" else np.array_equal(a, b)


@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning", "ignore:invalid value:RuntimeWarning")
def test_functions_keep_complex_numbers_or_refuse_them():
    kept, refused, wrong = set(), set(), []
    for name, function in functions(ops):
        for label, args, kwargs in calls(name, function, ["complex64"]):
            if label.count(" ") > 1:  # beside numbers, of which not all functions have
                continue
            try:
                got = function(*args, **kwargs)
                kept.add(name)
                compare(got, expected(name, function, args, kwargs))
            except TypeError as error:
                if str(error).startswith(f"ops.{name}: expected real numbers, got complex64"):
                    refused.add(name)
                else:
                    wrong.append(f"{name}: {error}")
            except Exception as error:
                wrong.append(f"{name}: {type(error).__name__}: {error}")
    assert not wrong, "\n".join(wrong)
    assert len(kept) > 150 < len(refused) + 60
    assert {"matmul", "reshape", "stack", "exp", "sum", "pad", "where", "abs"} <= kept
    assert {"relu", "softmax", "image.resize", "conv", "cdist", "logsumexp"} <= refused


def test_numbers_are_of_floatx():
    assert ops.abs([3 + 4j]).tolist() == [5]
    found = [
        ops.multiply(1j, 2),
        ops.add([1j, 2], 1.5),
        ops.stack([1j, 2j]),
        ops.full((2,), 1j),
        ops.where(True, 1j, 0.0),
    ]
    assert {x.dtype.name for x in found} == {"complex64"}
    assert ops.add(Z, np.ones(3)).dtype == ops.sum(Z.astype("complex128")).dtype == "complex128"
    assert ops.add(Z, np.ones(3, "int64")).dtype == ops.add(Z, 0.5).dtype == "complex64"


def test_what_computes_with_real_numbers_refuses_others():
    x = pydtconv.Variable(np.ones((2, 3), "float32"))
    model = pydtconv.Sequential([pydtconv.Input((3,)), layers.Dense(1)])
    model.compile("sgd", "mse")
    ones = np.ones((2, 1))
    calls = [
        lambda: pydtconv.Variable(Z), lambda: x.assign(Z), lambda: x * Z, lambda: ops.add(Z, x),
        lambda: ops.cast(Z, "float32"), lambda: ops.convert_to_tensor(Z, "float32"), lambda: ops.full_like(ones, 1j),
        lambda: pydtconv.function(ops.abs)(Z), lambda: pydtconv.Input((3,), dtype="complex64"),
        lambda: ops.add(pydtconv.Input((3,)), Z), lambda: layers.Dense(2)(Z), lambda: layers.Flatten()(Z),
        lambda: model(Z), lambda: model.predict(Z), lambda: model.fit(Z, ones), lambda: model.fit(ones, 1j * ones),
        lambda: losses.MeanSquaredError()(Z, Z), lambda: losses.mean_squared_error(Z, Z),
        lambda: metrics.MeanSquaredError()(Z, Z), lambda: metrics.Mean()(Z), lambda: pydtconv.utils.normalize(Z),
        lambda: pydtconv.utils.to_categorical(Z), lambda: pydtconv.initializers.Constant(1j)((2,)),
        lambda: layers.Normalization().adapt(Z), lambda: ops.image.resize(Z[None, ..., None], (2, 2)),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(
            (TypeError, ValueError), match=r"expected (a real|real numbers|an array of numbers).*complex"
        ):
            call()


def test_every_function_of_metrics_refuses_complex_numbers():
    x = np.array([[0.25, 0.75], [0.5, 0.5]], "float32")
    walked = 0
    for function in vars(metrics).values():
        if not inspect.isfunction(function) or [*inspect.signature(function).parameters][:2] != ["y_true", "y_pred"]:
            continue
        for y_true, y_pred in ((x, x + 1j), (x + 1j, x)):
            with pytest.raises(TypeError, match="expected real numbers, got complex64"):
                function(y_true, y_pred)
        walked += 1
    assert walked > 20
