"""Where recordings run: what keeps a model or a batch in memory, and what a run of another thread is."""

import gc
import threading
import tracemalloc
import weakref

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import GradientTape, layers, ops
from pydtconv.loops.function import Function
from pydtconv.loops.workspace import Workspace
from tests.loops.small_models import numbers, small_model


@pytest.mark.parametrize("wrap", [lambda step: step, keras.function], ids=["tape", "function"])
def test_a_model_that_was_dropped_is_kept_by_nothing(wrap):
    def trained():
        model, optimizer = small_model(), keras.optimizers.Adam()

        def step(x):
            with GradientTape() as tape:
                loss = ops.mean(ops.square(model(x)))
            optimizer.apply_gradients(zip(tape.gradient(loss, model.weights), model.weights, strict=True))
            return loss

        for _ in range(2):
            float(wrap(step)(numbers(4, 6, 6, 2)))
        return weakref.ref(model.weights[0])

    variables = [trained() for _ in range(3)]
    gc.collect()
    assert [variable() for variable in variables] == [None] * 3


def test_a_recording_of_another_thread_has_a_number_of_its_own():
    workspace, numbers = Workspace(), []
    workspace.host.state.step = 9
    other = threading.Thread(target=lambda: numbers.append(workspace.next_step()))

    class Running:
        def run(self, arrays):
            other.start()
            other.join(0.05)

    with workspace.lock:
        workspace.run(Running(), [], 5)
    other.join()
    assert numbers == [10]
    assert workspace.host.state.step == 10


@pytest.mark.parametrize("eager", [False, True], ids=["tape", "function"])
def test_batches_of_steps_before_do_not_wait_for_the_garbage_collector(eager):
    model, optimizer = keras.Sequential([keras.Input((250_000,)), layers.Dense(1)]), keras.optimizers.SGD()

    def step(x):
        with GradientTape() as tape:
            loss = ops.mean(ops.square(model(x)))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.weights), model.weights, strict=True))
        return loss

    step = Function(step, eager=True) if eager else step
    batch = np.ones((2, 250_000), "float32")
    float(step(batch))
    gc.disable()
    tracemalloc.start()
    try:
        for _ in range(5):
            float(step(batch))
        assert tracemalloc.get_traced_memory()[0] < batch.nbytes
    finally:
        tracemalloc.stop()
        gc.enable()
