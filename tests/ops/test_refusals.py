"""Arguments that Keras refuses are refused here, of arrays and of symbolic tensors."""

import numpy as np
import pytest

from pydtconv import KerasTensor, ops

WIDE, ROW = (4, 5, 3), (4,)
CASES = {
    "cholesky": (WIDE,),
    "cholesky_inverse": (WIDE,),
    "det": (WIDE,),
    "eig": (WIDE,),
    "eigh": (WIDE,),
    "inv": (WIDE,),
    "slogdet": (WIDE,),
    "logdet": (WIDE,),
    "matrix_rank": (ROW,),
    "pinv": (ROW,),
    "qr": (ROW,),
    "svd": (ROW,),
    "solve": (WIDE, (4, 5, 2)),
    "solve_triangular": (WIDE, (4, 5, 2)),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("make", [KerasTensor, lambda shape: np.ones(shape, "float32")], ids=["symbolic", "array"])
def test_matrices_of_the_wrong_shape(name, make):
    function = getattr(ops, name)
    if name == "matrix_rank" and make is not KerasTensor:
        assert function(np.ones(4)) == 1  # as in NumPy
        return
    with pytest.raises((ValueError, np.linalg.LinAlgError)):
        function(*map(make, CASES[name]))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: ops.solve(ops.ones((4, 4)), KerasTensor(())),
        lambda x: ops.norm(x, "fro", axis=1),
        lambda x: ops.norm(x, "nuc", axis=-1),
        lambda x: ops.norm(ops.ones(3), "fro"),
        lambda x: ops.norm(x, "other"),
        lambda x: ops.qr(KerasTensor((4, 4)), mode="other"),
        lambda x: ops.fft(x),
        lambda x: ops.fft((x, x, x)),
        lambda x: ops.fft2((x[0], x[0])),
        lambda x: ops.istft((x[0], x[0]), 2, 1, 4),
        lambda x: ops.istft((x, x), 4, 2.0, 8),
        lambda x: ops.stft(x, 4, 2.0, 8),
        lambda x: ops.view_as_complex(ops.ones((2, 3))),
    ],
)
def test_settings(call):
    with pytest.raises(ValueError, match="expected"):
        call(np.ones((4, 5), "float32"))


def test_windows_are_of_floats():
    with pytest.raises(TypeError, match="stft: x: expected floats, got int64"):
        ops.stft(np.arange(8), 4, 2, 4)


@pytest.mark.parametrize("name", ["sum", "max", "min", "prod"])
def test_segments_of_arrays_are_counted(name):
    data, ids = np.array([[1.0, 2], [3, 4], [5, 6]], "float32"), np.array([0, 2, 2])
    found = getattr(ops, f"segment_{name}")(data, ids)
    assert found.shape == (3, 2)
    np.testing.assert_array_equal(found[[0, 2]], [data[0], getattr(np, name)(data[1:], 0)])
    for wrong in (ids[:2], np.array([ids])):
        with pytest.raises(ValueError, match=r"segment_ids: expected one for each row of \(3, 2\)"):
            getattr(ops, f"segment_{name}")(data, wrong)


@pytest.mark.parametrize("make", [KerasTensor, lambda shape: np.ones(shape, "float32")], ids=["symbolic", "array"])
@pytest.mark.parametrize(
    "call",
    [
        lambda x: ops.pad(x, 1, mode="reflect", constant_values=3),
        lambda x: ops.pad(x, 0, mode="symmetric", constant_values=0),
        lambda x: ops.argpartition(x, 9),
        lambda x: ops.argpartition(x, 16, axis=None),
        lambda x: ops.flip(x, 3),
        lambda x: ops.roll(x, 1, 2),
        lambda x: ops.roll(x, (1, 2, 3), (0, 1)),
        lambda x: ops.repeat(x, [1, 1, 1], axis=0),
        lambda x: ops.repeat(x, [1, 1]),
        lambda x: ops.digitize(x, np.ones((2, 2))),
        lambda x: ops.average(x, (0, 1), weights=np.ones(4)),
        lambda x: ops.image.crop_images(x[None], -1, 0, 0, 0),
        lambda x: ops.image.crop_images(x[None], -1, 0, target_height=2, target_width=2),
        lambda x: ops.image.pad_images(x[None], -1, 0, 0, 0),
        lambda x: ops.image.pad_images(x[None], 0, 0, target_height=-2, target_width=9),
        lambda x: ops.image.pad_images(x[None], 0, 0, target_height=3, target_width=3),
        lambda x: ops.image.resize(x[None], (0, 3)),
        lambda x: ops.image.extract_patches(x[None], (2, 2, 2, 2)),
        lambda x: ops.image.extract_patches(x[None], (2, 0)),
        lambda x: ops.image.extract_patches_3d(x[None, None], 2, (1, 0, 1)),
    ],
)
def test_settings_of_arrays_and_symbolic_tensors(call, make):
    with pytest.raises((ValueError, np.exceptions.AxisError)):
        call(make((4, 4)))


def test_histograms_are_of_vectors():
    with pytest.raises(ValueError, match=r"histogram: expected a vector, got shape \(2, 3\)"):
        ops.histogram(np.ones((2, 3)))
