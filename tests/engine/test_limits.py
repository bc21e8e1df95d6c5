"""The limits of a `fit`."""

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import layers


def test_the_limit_of_fit_is_not_that_of_other_calls():
    inputs = keras.Input((16, 16, 3))
    model = keras.Model(inputs, layers.Dense(4)(layers.GlobalAveragePooling2D()(layers.Conv2D(8, 3)(inputs))))
    model.compile("sgd", "mse")
    many, seen = np.ones((128, 16, 16, 3), "float32"), []

    def look(*_):
        seen.append(model.predict(many, batch_size=128, verbose=0).shape)
        seen.append(model.predict_on_batch(many).shape)
        model.evaluate(many, np.zeros((128, 4)), batch_size=128, verbose=0)
        model.test_on_batch(many, np.zeros((128, 4)))

    callbacks = [keras.callbacks.LambdaCallback(on_epoch_end=look)]
    limit = model.plan(4).peak_bytes
    model.fit(many[:8], np.zeros((8, 4)), batch_size=4, verbose=0, memory_limit=limit, callbacks=callbacks)
    assert seen == [(128, 4)] * 2
    with pytest.raises(keras.graph.MemoryLimitError):
        model.fit(
            many[:8], np.zeros((8, 4)), batch_size=4, validation_data=(many, np.zeros((128, 4))),
            validation_batch_size=128, verbose=0, memory_limit=limit,
        )  # fmt: skip
