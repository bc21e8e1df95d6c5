"""Results of a run over data are its own, whatever is evaluated in between; test_threads.py has this of threads."""

import numpy as np

import pydtconv
from pydtconv import layers, models, optimizers
from pydtconv.utils import set_random_seed
from tests.trainers.small_models import X


def test_an_evaluation_before_the_first_batch_of_steps_that_are_python():
    x, y = np.ones((4, 3), "float32"), np.arange(4.0)[:, None]

    def history(evaluates):
        model = pydtconv.Sequential([pydtconv.Input((3,)), layers.Dense(1, kernel_initializer="ones")])
        model.compile(optimizers.SGD(0.0), "mse", metrics=["mae"], run_eagerly=True)
        evaluate = pydtconv.callbacks.LambdaCallback(on_epoch_begin=lambda *_: model.evaluate(x, -y, verbose=0))
        return model.fit(x, y, verbose=0, callbacks=[evaluate] if evaluates else []).history

    assert history(True) == history(False)


def test_results_of_outputs_are_those_of_training_though_an_evaluation_comes_first():
    def history(*found):
        set_random_seed(1)
        inputs = layers.Input((4,))
        model = models.Model(inputs, [layers.Dense(1, name="a")(inputs), layers.Dense(1, name="b")(inputs)])
        model.compile("sgd", ["mse", "mse"])
        more = [callback(model) for callback in found]
        return model.fit(X, [X[:, :1], X[:, 1:2]], shuffle=False, verbose=0, callbacks=more).history

    def evaluating(model):
        data = X, [100 * X[:, :1], 100 * X[:, 1:2]]
        return pydtconv.callbacks.LambdaCallback(on_epoch_begin=lambda epoch, logs: model.evaluate(*data, verbose=0))

    assert history(evaluating) == history()
