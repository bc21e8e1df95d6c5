"""Meshes that are none, and windows of images that are none, are errors that say what was expected and what came."""

import pytest

from pydtconv import distribution


def of_devices(*devices):
    return distribution.DeviceMesh((len(devices),), ("height",), list(devices))


@pytest.mark.parametrize(
    ("shape", "names", "told"),
    [
        ("2", ("height",), "shape: expected a sequence with an entry for each axis, got '2'"),
        ((1,), "height", "axis_names: expected a sequence with an entry for each axis, got 'height'"),
        ((0,), ("height",), r"shape: expected positive integers, got \(0,\)"),
        ((-1,), ("height",), r"shape: expected positive integers, got \(-1,\)"),
        ((1.0,), ("height",), r"shape: expected positive integers, got \(1.0,\)"),
        ((True,), ("height",), r"shape: expected positive integers, got \(True,\)"),
        ((1,), (3,), r"axis_names: expected strings, got \[3\]"),
        ((1,), ("batch", "height"), "expected a name for each axis"),
        ((), (), "expected a name for each axis"),
        ((2,), ("height",), r"expected 2 devices for shape \(2,\), got 1"),
    ],
)
def test_what_is_no_mesh(shape, names, told):
    with pytest.raises(ValueError, match=told):
        distribution.DeviceMesh(shape, names)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"device_mesh": "height=2"}, "device_mesh: expected a DeviceMesh, got 'height=2'"),
        ({"device_mesh": distribution.DeviceMesh((1,), ("rows",))}, "expected axes among batch, depth, height, width"),
        (
            {"device_mesh": of_devices("gpu:0")},
            "devices: expected all of .*cpu:0.*, got .*gpu:0",
        ),
        (
            {"device_mesh": of_devices("cpu:0", "cpu:0")},
            "devices: expected all of .*, got .*cpu:0.*cpu:0",
        ),
        ({"gather_predictions": "no"}, "gather_predictions: expected True or False, got 'no'"),
        ({"overlap": 1}, "overlap: expected True or False, got 1"),
    ],
)
def test_what_no_distribution_is_made_of(options, told):
    given = {"device_mesh": distribution.DeviceMesh((1,), ("height",))} | options
    with pytest.raises(ValueError, match=told):
        distribution.SpatialParallel(**given)


@pytest.mark.parametrize("shape", ["ab", 16, (16, -3), (16, 3.5), (16, None)])
def test_windows_of_what_is_no_image(shape):
    with pytest.raises(ValueError, match="window: expected the extents of an image, positive integers, got"):
        distribution.window(shape)
