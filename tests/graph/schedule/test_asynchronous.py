"""Work that goes on while steps run: a tensor that lies outside of the arena between forward and backward."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import layers
from pydtconv.graph import Executor, Graph, Memory, Plan, build_plan
from pydtconv.graph.memory.buffer_assignment import assign_offsets
from pydtconv.graph.memory.storage import View
from pydtconv.graph.schedule.asynchronous import StartStep, WaitStep, check_asynchronous
from pydtconv.graph.schedule.scheduler import Scheduler
from pydtconv.graph.schedule.steps import Binder, ForwardStep
from pydtconv.kernels import Call
from tests.graph.networks import trace


@dataclass(eq=False)
class Transfer(StartStep):
    """A copy by a thread, out of the arena or back into it.  gate: it goes on when this is set."""

    view: View
    outside: np.ndarray
    back: bool
    gate: threading.Event = field(default_factory=threading.Event)
    failing: bool = False

    def reads(self) -> list[View]:
        return [] if self.back else [self.view]

    def writes(self) -> list[View]:
        return [self.view] if self.back else []

    def bind_both(self, binder: Binder) -> tuple[Call, Call]:
        inside = binder.array(self.view)
        source, target = (self.outside, inside) if self.back else (inside, self.outside)
        threads: list[threading.Thread] = []
        errors: list[Exception] = []

        def copy() -> None:
            self.gate.wait(20)
            try:
                if self.failing:
                    raise OSError("the disk is full")
                np.copyto(target, source)
            except OSError as error:
                errors.append(error)

        def start() -> None:
            threads.append(threading.Thread(target=copy))
            threads[-1].start()

        def wait() -> None:
            while threads:
                self.gate.set()
                threads.pop().join()
            if errors:
                raise errors.pop()

        return start, wait


def model() -> keras.Model:
    inputs = keras.Input((16, 16, 3))
    x = inputs
    for _ in range(6):
        x = layers.Conv2D(16, 3, padding="same", activation="relu")(x)
    return keras.Model(inputs, layers.Dense(10, activation="softmax")(layers.GlobalAveragePooling2D()(x)))


def graph_of(batch: int = 4) -> Graph:
    keras.utils.set_random_seed(3)
    return trace(model(), "plain", 16, batch)


def offloaded(failing: bool = False) -> tuple[Plan, list[Transfer]]:
    """A plan in which the results of the first convolutions are elsewhere while nobody needs them."""
    plan = build_plan(graph_of(), recompute=())
    scheduler = Scheduler(plan.graph, ())
    scheduler.run()
    steps, transfers = scheduler.steps, []
    for forward in [step for step in steps if isinstance(step, ForwardStep) and step.node.op.name == "conv"][:3]:
        (view,) = forward.y
        outside = np.empty(view.spec.shape, view.spec.dtype)
        uses = [i for i, step in enumerate(steps) if any(view.overlaps(other) for other in step.views())]
        before = max(i for i in uses if i < scheduler.backward_start)
        after = min(i for i in uses if i >= scheduler.backward_start)
        out, back = (
            Transfer(forward.node, view, outside, False, failing=failing),
            Transfer(forward.node, view, outside, True),
        )
        steps[after:after] = [WaitStep(forward.node, back)]
        steps[after - 1 : after - 1] = [back]
        steps[before + 2 : before + 2] = [WaitStep(forward.node, out, ends_lives=[view])]
        steps[before + 1 : before + 1] = [out]
        scheduler.backward_start += 2
        transfers += [out, back]
    check_asynchronous(steps)
    scheduler.note_life_times()
    plan.steps, plan.storages = steps, list(scheduler.storages)
    plan.arena_bytes = assign_offsets(plan.storages)
    plan.views = {tensor: scheduler.sharing.view(tensor) for tensor in plan.views}
    return plan, transfers


def inputs() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {"x": rng.random((4, 16, 16, 3), np.float32), "y_true": rng.integers(0, 10, 4)}


def run(plan: Plan) -> tuple[float, np.ndarray]:
    memory = Memory()
    executor = Executor(plan, memory)
    for _ in range(2):
        loss = float(executor.run(inputs())["loss"])
    assert memory.store is not None
    return loss, memory.store.gradients.copy()


def test_offloaded_tensors_give_the_same_bits_in_less_memory() -> None:
    stored = build_plan(graph_of(), recompute=())
    plan, transfers = offloaded()
    lives = [transfer.view.buffer.lives for transfer in transfers]
    assert all(len(each) == 2 for each in lives)
    assert plan.arena_bytes < stored.arena_bytes
    assert max(plan.live_bytes()) < max(stored.live_bytes())
    found, want = run(plan), run(stored)
    assert found[0] == want[0]
    np.testing.assert_array_equal(found[1], want[1])


def test_memory_of_work_under_way_is_not_given_to_others() -> None:
    plan, transfers = offloaded()
    for wait in [step for step in plan.steps if isinstance(step, WaitStep)]:
        first, last = plan.steps.index(wait.start), plan.steps.index(wait)
        (view,) = wait.start.views()
        busy = view.buffer
        for step in range(first, last + 1):
            assert busy.lives_at(step)
            for other in plan.live_at(step):
                apart = other.offset + other.nbytes <= busy.offset or busy.offset + busy.nbytes <= other.offset
                assert other is busy or apart
    assert len(transfers) == 6


def test_what_goes_wrong_is_raised_by_the_wait() -> None:
    plan, transfers = offloaded(failing=True)
    with pytest.raises(OSError, match="the disk is full"):
        Executor(plan, Memory()).run(inputs())
    assert threading.active_count() == 1 or not any(t.name.startswith("copy") for t in threading.enumerate())
    assert transfers[0].failing


def test_a_step_that_raises_leaves_nothing_under_way() -> None:
    plan, transfers = offloaded()

    class Interrupts:
        def before(self, index, step) -> None:
            if index == plan.steps.index(transfers[0]) + 1:
                raise KeyboardInterrupt

        def after(self, index, step) -> None: ...

        def gradient_ready(self, part) -> None: ...

    executor = Executor(plan, Memory())
    executor.hooks = Interrupts()
    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        executor.run(inputs())
    assert threading.active_count() == before
    assert transfers[0].gate.is_set()


def test_steps_that_disturb_what_is_under_way_are_refused() -> None:
    plan, transfers = offloaded()
    out, back = transfers[:2]
    steps = [step for step in plan.steps if not isinstance(step, WaitStep)]
    forward = next(step for step in plan.steps if isinstance(step, ForwardStep) and out.view in step.y)
    check_asynchronous([forward, out, WaitStep(out.node, out)])
    with pytest.raises(ValueError, match=r"step 'start' of node .*: expected a wait for it, got none"):
        check_asynchronous([forward, out])
    with pytest.raises(ValueError, match=r"step 'forward' .*: expected a step that leaves the memory of step 'start'"):
        check_asynchronous([out, forward, WaitStep(out.node, out)])  # writes what is read
    reader = plan.steps[plan.steps.index(out) - 1]
    with pytest.raises(ValueError, match="expected a step that leaves the memory of step 'start'"):
        check_asynchronous([back, reader, WaitStep(back.node, back)])  # reads what is written
    with pytest.raises(ValueError, match="expected its start before it"):
        check_asynchronous([WaitStep(out.node, out), out])
    assert len(steps) == len(plan.steps) - 6
