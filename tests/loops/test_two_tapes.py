"""Loops with two tapes, persistent tapes, and steps of optimizers within and between their blocks.

EXPECTED is what Keras 3.15 and tf.GradientTape of TensorFlow 2.21 give, from equal weights.
"""

from contextlib import nullcontext

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import ops
from pydtconv.loops import GradientTape, function


def _within(step):
    with GradientTape() as tape:
        loss = step.of_generator(fake := step.g(step.x))
        step.update("g", tape, loss)
    return loss, ops.mean(fake)


def _within_and_read(step):
    with GradientTape() as tape:
        loss = step.of_generator(step.g(step.x))
        step.update("g", tape, loss)
        after = step.of_generator(step.g(step.x))
    return loss, after


def _penalty(step):
    """The step of StyleGAN."""
    with GradientTape() as tape:
        fake = step.g(step.x)
        of_g = step.of_generator(fake)
        step.update("g", tape, of_g)
    with GradientTape() as inner, GradientTape() as total:
        scores = step.d(fake), step.d(step.x)
        between = 0.25 * step.x + 0.75 * fake
        inner.watch(between)
        slope = inner.gradient(ops.mean(step.d(between)), between)
        penalty = ops.mean((ops.sqrt(ops.sum(ops.square(slope), axis=1)) - 1.0) ** 2)
        of_d = ops.mean(scores[0]) - ops.mean(scores[1]) + 10.0 * penalty
        step.update("d", total, of_d)
    return of_g, of_d, penalty


def _between(step):
    with GradientTape() as first, GradientTape() as second:
        of_g, of_d = step.losses()
    step.update("g", first, of_g)
    step.update("d", second, of_d)
    return of_g, of_d


def _gradients_first(step):
    with GradientTape() as first, GradientTape() as second:
        of_g, of_d = step.losses()
    by_g = first.gradient(of_g, step.g.trainable_weights)
    by_d = second.gradient(of_d, step.d.trainable_weights)
    step.apply("g", by_g)
    step.apply("d", by_d)
    return of_g, of_d


def _persistent(step):
    with GradientTape(persistent=True) as tape:
        of_g, of_d = step.losses()
    step.update("g", tape, of_g)
    step.update("d", tape, of_d)
    again = tape.gradient(of_g, step.g.trainable_weights)
    return of_g, of_d, ops.sum(again[0])


def _persistent_within(step):
    with GradientTape(persistent=True) as tape:
        of_g, of_d = step.losses()
        step.update("g", tape, of_g)
        after = step.of_generator(step.g(step.x))
        step.update("g", tape, after)
    return of_g, of_d, after


def _outer(step):
    with GradientTape() as outer:
        with GradientTape() as inner:
            of_g = step.of_generator(step.g(step.x))
        step.update("g", inner, of_g)
        of_d = ops.mean(step.d(step.g(step.x)))
    step.update("d", outer, of_d)
    return of_g, of_d


def _outer_of_before(step):
    with GradientTape() as outer:
        with GradientTape() as inner:
            of_g = step.of_generator(fake := step.g(step.x))
        step.update("g", inner, of_g)
        of_d = ops.mean(step.d(fake * 2.0))
    step.update("d", outer, of_d)
    return of_g, of_d


def _in_turn(step):
    found = []
    for _ in range(2):
        with GradientTape() as first, GradientTape() as second:
            of_g, of_d = step.losses()
            step.update("g", first, of_g)
            step.update("d", second, of_d)
        found += [of_g, of_d]
    return found


def _twice_by_the_same(step):
    """The second tape's gradients go through weights that the first one's have changed."""
    with GradientTape() as first, GradientTape() as second:
        loss = ops.mean(step.d(step.x) ** 2)
        step.update("d", first, loss)
        step.update("d", second, loss)
    return (loss,)


def _gradients_of_a_former_tape(step):
    with GradientTape() as first:
        loss = ops.mean(step.d(step.g(step.x)))
    with GradientTape() as second:
        gradients = first.gradient(loss, step.g.trainable_weights)
        of_d = sum(ops.sum(each * each) for each in gradients) + ops.mean(step.d(step.x) ** 2)
        step.update("d", second, of_d)
    step.apply("g", gradients)
    return loss, of_d


def _result_of_a_former_tape(step):
    with GradientTape() as first:
        fake = step.g(step.x)
        loss = step.of_generator(fake)
    step.update("g", first, loss)
    with GradientTape() as second:
        second.watch(fake)
        scaled = fake * 2.0 * step.d.weights[0][0, 0]
        of_d = ops.mean(scaled * scaled)
    by_fake = second.gradient(of_d, [fake, *step.d.trainable_weights])
    return loss, of_d, ops.sum(by_fake[0]), ops.sum(by_fake[1])


CASES = (
    _within, _within_and_read, _penalty, _between, _gradients_first, _persistent, _persistent_within, _outer,
    _outer_of_before, _in_turn, _twice_by_the_same, _gradients_of_a_former_tape, _result_of_a_former_tape,
)  # fmt: skip
#: by case: results of two steps, and sums of all weights after them, each weight times the cosine of its place
EXPECTED = {
    "_within": [3.47145, -0.416865, 2.26957, -0.610456, -0.163903],
    "_within_and_read": [3.47145, 2.26957, 2.26957, -0.123723, -0.163903],
    "_penalty": [3.47145, -0.914154, 0.18519, 2.21855, -1.01383, 0.0570575, -0.166258],
    "_between": [3.47145, -2.76606, 2.30965, -1.6611, -0.154705],
    "_gradients_first": [3.47145, -2.76606, 2.30965, -1.6611, -0.154705],
    "_persistent": [3.47145, -2.76606, 0.10896, 2.30965, -1.6611, -0.161707, -0.154705],
    "_persistent_within": [3.47145, -2.76606, 2.26957, -0.123723, 0.829114, -2.09616, -0.214879],
    "_outer": [3.47145, -2.26957, 2.40737, -0.11895, -0.159443],
    "_outer_of_before": [3.47145, -3.5987, 2.40007, -2.65772, -0.179805],
    "_in_turn": [3.47145, -2.76606, 2.30965, -1.6611, -0.176443, 0.781018, -2.18869, 2.76836, -0.124474],
    "_twice_by_the_same": [2.72277, 2.3313, 0.103664],
    "_gradients_of_a_former_tape": [-3.47145, 12.5219, -4.06556, 4.6045, 0.236308],
    "_result_of_a_former_tape": [
        3.47145,
        0.891111,
        -0.398284,
        5.15713,
        2.26957,
        0.975698,
        -0.583246,
        5.64666,
        -0.163903,
    ],
}


class Step:
    """A generator and a discriminator with their optimizers, and the input of a step."""

    def __init__(self):
        self.g, self.d = self._network(0, 3, 4, 3), self._network(1, 3, 5, 1)
        self.optimizers = {"g": keras.optimizers.SGD(0.1), "d": keras.optimizers.Adam(0.01)}
        for name, optimizer in self.optimizers.items():
            optimizer.build(getattr(self, name).trainable_weights)

    def _network(self, seed, inputs, width, outputs):
        dense = keras.layers.Dense
        network = keras.Sequential([keras.Input((inputs,)), dense(width, activation="tanh"), dense(outputs)])
        random = np.random.default_rng(seed)
        network.set_weights([random.normal(size=w.shape).astype("float32") for w in network.get_weights()])
        return network

    def of_generator(self, fake):
        return -ops.mean(self.d(fake))

    def losses(self):
        of_fake = ops.mean(self.d(self.g(self.x)))
        return -of_fake, of_fake - ops.mean(self.d(self.x))

    def update(self, name, tape, loss):
        self.apply(name, tape.gradient(loss, getattr(self, name).trainable_weights))

    def apply(self, name, gradients):
        weights = getattr(self, name).trainable_weights
        self.optimizers[name].apply_gradients(zip(gradients, weights, strict=True))


def found_by(case, wrap):
    step, x = Step(), np.random.default_rng(2).normal(size=(4, 3)).astype("float32")

    def once(x):
        step.x = x
        return case(step)

    run, results = wrap(once), []
    for _ in range(2):
        results += [float(each) for each in run(ops.convert_to_tensor(x))]
    weights = np.concatenate([np.ravel(each) for each in step.g.get_weights() + step.d.get_weights()])
    return [*results, float(np.sum(weights * np.cos(np.arange(weights.size))))]


@pytest.mark.parametrize("wrap", [lambda step: step, function], ids=["eager", "function"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__[1:])
def test_steps_as_in_tensorflow(case, wrap):
    slower = wrap is function and case is _twice_by_the_same  # gradients by weights as they were need their values
    with pytest.warns(UserWarning, match="runs as it is written") if slower else nullcontext():
        found = found_by(case, wrap)
    np.testing.assert_allclose(found, EXPECTED[case.__name__], rtol=2e-4, atol=2e-5)


def test_weights_that_a_later_block_has_changed_are_refused():
    w, optimizer = keras.Variable(np.array([2.0], "float32")), keras.optimizers.SGD(0.1)
    with GradientTape() as first:
        y = w * w * w
    with GradientTape() as second:
        z = w * w
    optimizer.apply_gradients([(second.gradient(z, w), w)])
    assert float(y[0]) == 8
    with pytest.raises(RuntimeError, match="changed after it was read"):
        first.gradient(y, w)
