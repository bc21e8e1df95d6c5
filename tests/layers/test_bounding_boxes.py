"""MaxNumBoundingBoxes, against Keras where it is installed."""

import numpy as np
import pytest

from pydtconv import layers
from tests.real_keras import import_keras

IMAGES = np.ones((2, 4, 4, 3), "float32")
BOXES = np.arange(24, dtype="float32").reshape(2, 3, 4)


def data():
    return {"images": IMAGES, "bounding_boxes": {"boxes": BOXES, "labels": np.array([[1, 2, 3], [4, 5, 6]])}}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("count", [2, 3, 5])
@pytest.mark.parametrize("single", [False, True])
def test_boxes_are_those_of_keras(count, single):
    keras = import_keras()
    given = {
        "images": IMAGES[0] if single else IMAGES,
        "bounding_boxes": {key: x[0] if single else x for key, x in data()["bounding_boxes"].items()},
    }
    arguments = {"fill_value": -3, "bounding_box_format": "xyxy"}
    expected = keras.layers.MaxNumBoundingBoxes(count, **arguments)(given)["bounding_boxes"]
    found = layers.MaxNumBoundingBoxes(count, **arguments)(given)["bounding_boxes"]
    for key in ("boxes", "labels"):
        np.testing.assert_array_equal(found[key], np.asarray(expected[key]))


def test_what_has_no_boxes_stays():
    layer = layers.MaxNumBoundingBoxes(2)
    np.testing.assert_array_equal(layer(IMAGES), IMAGES)
    assert set(layer({"images": IMAGES, "labels": np.arange(2)})) == {"images", "labels"}
    assert layers.MaxNumBoundingBoxes.from_config(layer.get_config()).max_number == 2


def test_boxes_without_labels_are_refused():
    with pytest.raises(ValueError, match="bounding_boxes: expected a dict of boxes and labels"):
        layers.MaxNumBoundingBoxes(2)({"images": IMAGES, "bounding_boxes": {"boxes": BOXES}})
