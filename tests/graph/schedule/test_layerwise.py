"""Plans that offload layer by layer: the same bits, and transfers within one layer."""

from __future__ import annotations

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import config
from pydtconv.graph import Disk, MemoryLimitError, Offload, Plan, build_plan
from pydtconv.graph.schedule.asynchronous import WaitStep
from pydtconv.graph.schedule.transfers import ReadStep, TransferStep, WriteStep
from tests.graph.networks import NETWORKS
from tests.graph.schedule.test_offload import FAST, graph_of, own_cache, run  # noqa: F401  (a fixture of each test)


def layerwise(name: str, limit: int, folder: str | None = None, disk: Disk = FAST) -> Plan:
    return build_plan(graph_of(name), memory_limit=limit, offload=Offload(disk, folder, layerwise=True))


def least(name: str) -> int:
    with pytest.raises(MemoryLimitError) as refused:
        layerwise(name, 1)
    return refused.value.smallest_bytes


@pytest.mark.parametrize(
    "name", ["residual", *(pytest.param(name, marks=pytest.mark.slow) for name in NETWORKS if name != "residual")]
)
def test_results_are_the_bits_of_a_plan_without_offload(name, tmp_path) -> None:
    config.set_conv_variant("BASE")  # whose algorithms no limit changes
    free = build_plan(graph_of(name))
    for limit in (least(name), free.peak_bytes - 1):
        plan = layerwise(name, limit, str(tmp_path))
        assert plan.peak_bytes <= limit
        assert plan.offloaded is not None
        assert plan.offloaded.scratch_bytes
        for got, want in zip(run(plan), run(free), strict=True):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", list(NETWORKS))
def test_each_transfer_is_waited_for_at_the_end_of_the_layer_that_it_began_with(name) -> None:
    steps = layerwise(name, least(name)).steps
    seen = set()
    for index, step in enumerate(steps):
        if not isinstance(step, TransferStep):
            continue
        end = next(i for i, other in enumerate(steps) if isinstance(other, WaitStep) and other.start is step)
        between = [each for each in steps[index:end] if not isinstance(each, (TransferStep, WaitStep))]
        assert len({each.node for each in between}) <= 1
        seen.add((type(step), bool(between)))
    assert seen >= {(WriteStep, True), (ReadStep, True)}


def test_a_slow_disk_is_waited_for_and_a_schedule_waits_less() -> None:
    limit = build_plan(graph_of("residual")).peak_bytes * 9 // 10
    slow = Disk(1e8, 1e8, 1.0, 0.0)
    waits = [layerwise("residual", limit, disk=disk).offloaded.waited for disk in (FAST, slow)]
    scheduled = build_plan(graph_of("residual"), memory_limit=limit, offload=Offload(slow)).offloaded
    assert waits[0] < waits[1]
    assert scheduled.waited < waits[1]


def test_fit_takes_a_folder_behind_layerwise(tmp_path) -> None:
    x, y = np.random.default_rng(0).random((8, 32, 32, 3), np.float32), np.zeros(8, int)
    keras.utils.set_random_seed(5)
    model = NETWORKS["residual"](32, 16)
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(True))
    limit = int(0.9 * model.plan(8).peak_bytes)
    offload = f"layerwise:{tmp_path}"
    model.fit(x, y, batch_size=8, epochs=2, verbose=0, memory_limit=limit, offload=offload)
    (plan,) = model._pydt_steps.plans
    assert plan.offloaded.folder == str(tmp_path)
    assert len(plan.offloaded.moved) == len(model.plan(8, memory_limit=limit, offload=offload).offloaded.moved)
    for wrong in ("layerwise:", f"layerwise:{tmp_path}/absent"):
        with pytest.raises(ValueError, match=f"expected a folder that is there, got '{wrong}'"):
            model.fit(x, y, verbose=0, memory_limit=limit, offload=wrong)
