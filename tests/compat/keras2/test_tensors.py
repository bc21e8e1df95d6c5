"""Old attributes of layers, models and iterators: every one, by its table."""

import numpy as np
import pytest

from pydtconv.compat.keras2 import tensors
from pydtconv.layers.base.layer import Layer
from pydtconv.models.model import Model
from pydtconv.preprocessing.iterators import ImageIterator

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")


def test_every_old_attribute_that_follows_from_new_ones(tf):
    keras = tf.keras
    x = [keras.Input((4, 4, 3)), keras.Input((4, 4, 3))]
    conv, add = keras.layers.Conv2D(2, 3), keras.layers.Add()
    y = add([conv(each) for each in x])
    flow = keras.preprocessing.image.ImageDataGenerator().flow(np.zeros((5, 4, 4, 3)), batch_size=2)
    flow.num_classes = 3
    expected = {
        Layer: (
            add,
            {
                "input_shape": [(None, 2, 2, 2)] * 2, "output_shape": (None, 2, 2, 2),
                "inbound_nodes": add._inbound_nodes,
            },
        ),
        Model: (keras.Model(x, y), {"uses_learning_phase": True, "updates": [], "state_updates": []}),
        ImageIterator: (flow, {"N": 5, "nb_sample": 5, "nb_class": 3}),
    }  # fmt: skip
    at = {
        "get_input_at": x[1], "get_output_at": add.input[1], "get_input_shape_at": (None, 4, 4, 3),
        "get_output_shape_at": (None, 2, 2, 2),
    }  # fmt: skip
    assert tensors.FOUND.keys() == expected.keys()
    for owner, names in tensors.FOUND.items():
        instance, values = expected[owner]
        assert names.keys() == values.keys() | (at if owner is Layer else {}).keys()
        for name, value in values.items():
            assert getattr(instance, name) == value, name
    for name, value in at.items():
        found = getattr(conv, name)(1)
        assert found is value or found == value, name


def test_what_an_object_has_itself_comes_first(tf):
    class Own(tf.keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.output_shape = 7

    assert Own().output_shape == 7
    with pytest.raises(AttributeError):
        tf.keras.layers.Dense(3).output_shape  # noqa: B018
