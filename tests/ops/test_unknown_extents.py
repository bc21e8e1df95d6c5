"""Functions of symbolic tensors whose extents are not known: shapes as Keras infers them."""

import numpy as np
import pytest

from pydtconv import Input, KerasTensor, Model, ops

TWO = """
    add arctan2 divide divide_no_nan equal floor_divide fmax fmin fmod gcd greater greater_equal heaviside
    hypot isclose lcm less less_equal logaddexp logical_and logical_or logical_xor maximum minimum mod multiply
    nextafter not_equal power subtract true_divide
""".split()  # noqa: SIM905


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((None, 3), (2, None), (2, 3)),
        ((None, 3, None), (2, None, None), (2, 3, None)),
        ((None, None), (None, 3), (None, 3)),
        ((None, 1, 5), (None, 4, None), (None, 4, 5)),
    ],
)
def test_broadcasting(first, second, expected):
    for name in TWO:
        dtype = "int32" if name in ("gcd", "lcm") else "float32"
        assert getattr(ops, name)(KerasTensor(first, dtype), KerasTensor(second, dtype)).shape == expected, name
    chosen = ops.where(KerasTensor(first, "bool"), KerasTensor(first), KerasTensor(second))
    assert chosen.shape == expected


def test_what_cannot_be_broadcast_is_refused_with_the_extents_that_are_not_known():
    with pytest.raises(ValueError, match=r"\(None, 3\), \(2, 4\)"):
        ops.add(KerasTensor((None, 3)), KerasTensor((2, 4)))


def test_a_model_broadcasts_what_comes():
    a, b = Input((None, 3)), Input((4, None))
    model = Model([a, b], ops.add(a, b))
    x, y = np.ones((2, 4, 3), "float32"), np.ones((2, 4, 1), "float32")
    np.testing.assert_array_equal(model([x, y]), x + y)


X, Y, Z = KerasTensor((None, 3)), KerasTensor((None, 4, 5)), KerasTensor((None, None, 2))


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: ops.dot(X, Z), [(None, None, 2)]),
        (lambda: ops.dot(KerasTensor((None,)), KerasTensor((5,))), [()]),
        (lambda: ops.matmul(KerasTensor((None, None, 5)), KerasTensor((4, 5, 2))), [(4, None, 2)]),
        (lambda: ops.einsum("ijk,jkl->lij", KerasTensor((None, 3, 4)), Y), [(5, None, 3)]),
        (lambda: ops.einsum("i...,...j->i...j", KerasTensor((None, 3, 4)), Y), [(None, 3, 4, 5)]),
        (lambda: ops.einsum(",ij", 5, X), [(None, 3)]),
        (lambda: ops.reshape(X, (3, 2)), [(3, 2)]),
        (lambda: ops.reshape(X, (-1, 2)), [(None, 2)]),
        (lambda: ops.broadcast_to(X, (2, 3, 3)), [(2, 3, 3)]),
        (lambda: ops.split(X, 2), [(None, 3)] * 2),
        (lambda: ops.hsplit(Z, 7), [(None, None, 2)] * 7),
        (lambda: ops.vsplit(X, [1, 3]), [(1, 3), (2, 3), (None, 3)]),
        (lambda: ops.unstack(KerasTensor((2, None, None)), num=3, axis=1), [(2, None)] * 3),
        (lambda: ops.take_along_axis(KerasTensor((None, 3, 3)), KerasTensor((1, 3, None)), 1), [(None, 3, 3)]),
        (lambda: ops.space_to_depth(KerasTensor((None, None, None, 3)), 2), [(None, None, None, 12)]),
        (lambda: ops.linspace(KerasTensor((None, 3)), KerasTensor((2, 3)), 10, axis=1), [(2, 10, 3)]),
        (lambda: ops.meshgrid(KerasTensor((2, 3)), KerasTensor((4,))), [(4, 6)] * 2),
        # the ends may lie behind those of a short axis
        (lambda: X[:5], [(None, 3)]),
        (lambda: X[-5:, 1:], [(None, 2)]),
        (lambda: ops.diag(X), [(None,)]),
        (lambda: ops.diagonal(KerasTensor((None, 3, 3))), [(3, None)]),
        (lambda: ops.slice(X, (1, 1), (4, 2)), [(4, 2)]),
    ],
)
def test_shapes_as_keras_infers_them(call, expected):
    found = call()
    assert [each.shape for each in (found if isinstance(found, (list, tuple)) else [found])] == expected


@pytest.mark.parametrize(
    "call",
    [
        lambda: ops.split(KerasTensor((None, 3)), 2, axis=1),
        lambda: ops.roll(X, [1, 2, 3], axis=[0, 1]),
        lambda: ops.matmul(X, KerasTensor((4, 5))),
        lambda: ops.det(KerasTensor((None, None, 20))),
        lambda: ops.unstack(X),
        lambda: ops.unstack(X, axis=4),
        lambda: ops.glu(X, axis=5),
        lambda: ops.glu(np.ones((2, 4)), axis=5),
        lambda: ops.rfft(np.array(5)),
        lambda: ops.extract_sequences(np.array(5), 1, 1),
        lambda: ops.slice(np.ones((3, 3)), (1, 1), (3, 1)),
        lambda: ops.slice(KerasTensor((3, 3)), KerasTensor((2,), "int32"), (2, -1)),
        lambda: X[:, 17],
        lambda: X[:, :, :],
        lambda: KerasTensor(3),
    ],
)
def test_what_is_refused_as_in_keras(call):
    with pytest.raises(ValueError, match="expected"):
        call()


def test_settings_that_a_graph_has_to_know():
    for call in (
        lambda: ops.reshape(X, KerasTensor((2,), "int32")),
        lambda: ops.reshape(X, (KerasTensor((), "int32"), 3)),
        lambda: ops.image.gaussian_blur(KerasTensor((8, 8, 3)), KerasTensor((2,)), (1.0, 1.0)),
    ):
        with pytest.raises(TypeError, match="expected numbers"):
            call()
    for size in ("5", (3.0, 3.0)):
        with pytest.raises(TypeError, match="expected one or 2 integers"):
            ops.image.extract_patches(np.ones((1, 6, 6, 3)), size)


def test_a_window_that_is_chosen_by_values_is_inside():
    x = np.arange(9, dtype="float32").reshape(3, 3)
    model = Model(
        [a := Input(batch_shape=(3, 3)), b := Input(batch_shape=(2,), dtype="int32")], ops.slice(a, b, (2, 2))
    )
    np.testing.assert_array_equal(model([x, np.array([1, 1])]), x[1:, 1:])
    with pytest.raises(ValueError, match=r"slice: expected a window inside of \(3, 3\), got \(2, 2\) at \(2, 0\)"):
        model([x, np.array([2, 0])])


def test_images_are_padded_and_cut_to_a_size():
    x = KerasTensor((None, None, None, 3))
    sizes = {"target_height": 20, "target_width": 30}
    assert ops.image.pad_images(x, 2, 3, **sizes).shape == (None, 20, 30, 3)
    assert ops.image.crop_images(x, 2, 3, **sizes).shape == (None, 20, 30, 3)
    assert ops.image.pad_images(x, 2, 3, 4, 5).shape == x.shape
    model = Model(inputs := Input((None, None, 1)), ops.image.pad_images(inputs, 1, 0, target_height=5, target_width=4))
    found = model(np.ones((1, 3, 2, 1), "float32"))
    np.testing.assert_array_equal(found[0, ..., 0], np.pad(np.ones((3, 2)), ((1, 1), (0, 2))))


def test_sorted_elements_are_a_vector():
    assert ops.sort(KerasTensor((2, 3)), axis=None).shape == ops.argsort(KerasTensor((2, 3)), axis=None).shape == (6,)
    x = np.array([[3.0, 1], [2, 5]], "float32")
    model = Model(inputs := Input((2,)), ops.sort(inputs, axis=None))
    np.testing.assert_array_equal(model(x), [1, 2, 3, 5])


def test_names_of_padding_in_capitals():
    random = np.random.RandomState(0)
    x, kernel = random.rand(1, 6, 6, 2).astype("float32"), random.rand(3, 3, 2, 2).astype("float32")
    for name in ("conv", "conv_transpose", "depthwise_conv"):
        for padding in ("valid", "same"):
            expected = getattr(ops, name)(x, kernel, 1, padding)
            np.testing.assert_array_equal(getattr(ops, name)(x, kernel, 1, padding.upper()), expected)
    for name in ("max_pool", "average_pool"):
        np.testing.assert_array_equal(getattr(ops, name)(x, 4, 2, "SAME"), getattr(ops, name)(x, 4, 2, "same"))
