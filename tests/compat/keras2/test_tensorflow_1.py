"""Names and arguments of TensorFlow 1: every one, by its table, beside TensorFlow 2's and NumPy."""

import numpy as np
import pytest

from pydtconv.compat.keras2 import tensorflow_1

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")
X = np.random.default_rng(0).random((2, 3)).astype("float32") + 0.5
S = np.random.default_rng(1).random((3, 3)).astype("float32") + 3 * np.eye(3, dtype="float32")
IMAGE = np.arange(32.0, dtype="float32").reshape(1, 4, 4, 2)
IDS = np.array([0, 0, 1])
#: arguments of functions that do not take X alone
CALLS = {
    "matrix_inverse": (S,), "matrix_determinant": (S,), "cholesky": (S @ S.T,), "trace": (S,), "cross": (S, S[::-1]),
    "space_to_depth": (IMAGE, 2), "depth_to_space": (np.tile(IMAGE, 2), 2), "confusion_matrix": ([0, 1], [1, 1]),
    "invert_permutation": (np.array([1, 0, 2]),),
    "batch_to_space_nd": (np.tile(IMAGE, (4, 1, 1, 1)), [2, 2], [[0, 0]] * 2),
    **dict.fromkeys(("segment_sum", "segment_mean", "segment_max"), (S, IDS)), "unsorted_segment_sum": (S, IDS, 2),
    **dict.fromkeys(("random_normal", "random_uniform", "truncated_normal"), ((2, 3),)),
    "random_crop": (IMAGE[0], (2, 2, 2)),
    "decode_raw": (b"\x01\x02", "uint8"), "string_join": (["a", "b"],), "string_to_number": ("2.5",),
    "regex_replace": ("ab", "a", "c"), "substr": ("abc", 1, 1), "py_func": (lambda x: x + 1, [X], "float32"),
    "softmax_cross_entropy_with_logits_v2": (X, X),
}  # fmt: skip
#: what needs files or descriptions of records
NO_CALLS = {"read_file", "parse_example", "parse_single_example", "FixedLenFeature", "VarLenFeature"}
DRAWN = {"random_normal", "random_uniform", "truncated_normal", "random_shuffle", "random_crop"}


def of(tf, path):
    for word in path.split(".")[1:] if path.startswith("tensorflow") else path.split("."):
        tf = getattr(tf, word)
    return tf


def test_every_moved_name_is_that_of_tensorflow_2(tf):
    for module, homes in tensorflow_1.MOVED.items():
        for home, words in homes.items():
            for word in words.split():
                old, _, new = word.partition("=")
                found, other = of(tf, f"{module}.{old}"), of(tf, ".".join(filter(None, (home, new or old))))
                assert getattr(of(tf.compat.v1, module), old) is not None, old
                if old in NO_CALLS:
                    assert found is other or found.__wrapped__ is other, old
                    continue
                args = CALLS.get(old, (X,))
                named = ("labels", "logits") if "entropy" in old else ()
                call = (lambda f: f(**dict(zip(named, args, strict=True)))) if named else (lambda f: f(*args))  # noqa: B023
                a, b = call(found), call(other)
                assert a.shape == b.shape, old
                if old not in DRAWN:
                    np.testing.assert_array_equal(a, b, err_msg=old)


def test_every_old_argument(tf):
    values = {"keep_dims": True, "reduction_indices": 1, "dimension": 1, "dim": 1, "squeeze_dims": 1}
    for module, functions in tensorflow_1.ARGUMENTS.items():
        for name, rows in functions.items():
            function, x = of(tf, f"{module}.{name}"), X[:, None] if name == "squeeze" else X
            x = x > 1 if name in ("reduce_any", "reduce_all") else x
            for old, new in rows.items():
                np.testing.assert_array_equal(
                    function(x, **{old: values[old]}), function(x, **{new: values[old]}), err_msg=name
                )


def test_functions_of_their_own(tf, capsys):
    np.testing.assert_allclose(tf.log(X), np.log(X), rtol=1e-6)
    np.testing.assert_array_equal(tf.div(np.array([7, -7]), 2), [3, -4])
    np.testing.assert_allclose(tf.div(X, 2), X / 2)
    for name, dtype in ("float", "float32"), ("double", "float64"), ("int32", "int32"), ("int64", "int64"):
        assert np.asarray(getattr(tf, f"to_{name}")(X)).dtype == dtype
    assert tf.Print(X, [X[0, 0]], message="first: ") is X
    assert "first" in "".join(capsys.readouterr())
    assert tf.tables_initializer() is None
    with pytest.warns(FutureWarning, match=r"tf.ceil is an old name: write tf.math.ceil"):
        tf.ceil(X)
