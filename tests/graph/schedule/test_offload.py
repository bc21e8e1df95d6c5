"""Plans that offload: within the limit, the same bits, the mix and the time lines as the disk's speed asks for."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest

from pydtconv import config
from pydtconv.conv.problem import ConvProblem
from pydtconv.conv.selection import algorithms, workspace_bytes
from pydtconv.graph import (
    Disk,
    Executor,
    Memory,
    MemoryLimitError,
    Offload,
    Plan,
    build_plan,
    compiler,
    disk_speed,
    measured_times,
)
from pydtconv.graph.memory.storage import Storage
from pydtconv.graph.schedule.offload import Candidate, Demand, chosen, just_in_time, timeline
from pydtconv.graph.schedule.offload_search import Search
from pydtconv.graph.schedule.step_times import signature
from pydtconv.graph.schedule.transfers import Queues, ReadStep, WriteStep
from pydtconv.kernels.cpu import convolution
from tests.graph.networks import NETWORKS, trace
from tests.marks import slow

FAST = Disk(50e9, 50e9, 1.0, 0.0)


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PYDTCONV_CACHE", str(tmp_path / "cache"))
    before = config.conv_variant()
    yield
    config.set_conv_variant(before)


def graph_of(name: str, batch: int = 8):
    import pydtconv as keras

    keras.utils.set_random_seed(3)
    return trace(NETWORKS[name](32, 16), name, 32, batch)


def run(plan: Plan, batch: int = 8) -> tuple[float, np.ndarray]:
    rng = np.random.default_rng(0)
    inputs = {"x": rng.random((batch, 32, 32, 3), np.float32), "y_true": rng.integers(0, 10, batch)}
    memory = Memory()
    executor = Executor(plan, memory)
    for _ in range(2):
        loss = float(executor.run(inputs)["loss"])
    assert memory.store is not None
    gradients = memory.store.gradients.copy()
    memory.release_scratch_file()
    return loss, gradients


@pytest.mark.parametrize(
    "name", ["residual", *(pytest.param(name, marks=pytest.mark.slow) for name in NETWORKS if name != "residual")]
)
def test_results_are_the_bits_of_a_plan_without_offload(name, tmp_path) -> None:
    config.set_conv_variant("BASE")  # whose algorithms no limit changes: the bits are comparable
    free = build_plan(graph_of(name))
    with pytest.raises(MemoryLimitError) as refused:
        build_plan(graph_of(name), memory_limit=1, offload=Offload(FAST, str(tmp_path)))
    limit = (refused.value.smallest_bytes + free.peak_bytes) // 2
    plan = build_plan(graph_of(name), memory_limit=limit, offload=Offload(FAST, str(tmp_path)))
    assert plan.peak_bytes <= limit
    assert plan.offloaded is not None
    assert plan.offloaded.scratch_bytes
    assert {type(step) for step in plan.steps} >= {WriteStep, ReadStep}
    found, want = run(plan), run(free)
    assert found[0] == want[0]
    np.testing.assert_array_equal(found[1], want[1])
    assert not any((tmp_path).glob(".pydtconv*"))


@pytest.mark.slow
def test_transfers_lie_on_pages_and_the_table_tells_of_them(tmp_path) -> None:
    free = build_plan(graph_of("residual"))
    plan = build_plan(graph_of("residual"), memory_limit=int(0.8 * free.peak_bytes), offload=Offload(FAST))
    for step in plan.steps:
        if isinstance(step, (WriteStep, ReadStep)):
            assert step.storage.offset % 4096 == step.storage.nbytes % 4096 == step.place % 4096 == 0
    text = str(plan)
    for words in ("offloaded:", "kept for backward:", "predicted time:", "writes: |", "reads: |"):
        assert words in text
    assert plan.plot(tmp_path / "memory.png").stat().st_size > 10_000
    with pytest.raises(ValueError, match="offload: expected a folder for a plan that runs"):
        Executor(plan, Memory())


def test_a_slow_disk_is_left_alone_where_recomputing_is_cheaper() -> None:
    free = build_plan(graph_of("residual"))
    limit = int(0.75 * free.peak_bytes)
    slow = build_plan(graph_of("residual"), memory_limit=limit, offload=Offload(Disk(1e6, 1e6)))
    fast = build_plan(graph_of("residual"), memory_limit=limit, offload=Offload(FAST))
    assert slow.offloaded is not None
    assert fast.offloaded is not None
    assert slow.offloaded.scratch_bytes < fast.offloaded.scratch_bytes
    assert len(slow.recomputed) > len(fast.recomputed)
    assert fast.offloaded.seconds < slow.offloaded.seconds


@pytest.mark.parametrize("name", ["plain", slow("residual"), slow("dense"), slow("preactivation")])
@pytest.mark.parametrize("share", [0.9, slow(0.75)])
def test_measured_speeds_choose_nothing_that_bits_depend_on(name, share, monkeypatch) -> None:
    """Whatever a disk and steps took when they were measured: algorithms and elided images are the same."""
    free, rng, found = build_plan(graph_of(name)), np.random.default_rng(1), set()
    for disk, spread in (Disk(1e6, 1e6), 0.0), (FAST, 0.0), (FAST, 2.0), (Disk(3e8, 1e9, 0.3), 2.0):
        times = {signature(step): 1e-3 * math.exp(spread * rng.normal()) for step in free.steps if spread}
        monkeypatch.setattr(compiler, "measured", lambda threads, times=times: times)
        plan = build_plan(graph_of(name), memory_limit=int(share * free.peak_bytes), offload=Offload(disk))
        found.add((plan.graph.options, str(list(plan.algorithms.values()))))
    assert len(found) == 1


def test_the_least_that_a_plan_with_offload_needs_is_told_and_is_enough() -> None:
    with pytest.raises(MemoryLimitError) as error:
        build_plan(graph_of("plain"), memory_limit=1, offload=Offload(FAST))
    smallest = error.value.smallest_bytes
    assert build_plan(graph_of("plain"), memory_limit=smallest, offload=Offload(FAST)).peak_bytes <= smallest


def test_workspaces_become_smaller_in_steps_where_the_fastest_algorithms_need_too_much(monkeypatch) -> None:
    seen = []

    def none(self, options, limit, best):
        seen.append(options.workspace_bytes)
        self.budget = 1000
        return iter(())

    monkeypatch.setattr(Search, "_mixes", none)
    with pytest.raises(MemoryLimitError):
        build_plan(graph_of("plain"), memory_limit=1, offload=Offload(FAST))
    assert seen == [None, None, 250, 50, 0]


@pytest.mark.slow
def test_a_plan_like_an_earlier_one_has_its_algorithms(monkeypatch) -> None:
    with pytest.raises(MemoryLimitError) as error:
        build_plan(graph_of("plain"), memory_limit=1, offload=Offload(FAST))
    limit = error.value.smallest_bytes  # of algorithms with the smallest workspaces
    small = build_plan(graph_of("plain"), memory_limit=limit, offload=Offload(FAST))
    assert small.graph.options.workspace_bytes is not None
    free = build_plan(graph_of("plain"))
    assert list(free.algorithms.values()) != list(small.algorithms.values())
    most = free.peak_bytes - 4096
    again = build_plan(graph_of("plain"), memory_limit=most, offload=Offload(FAST, like=small.graph.options))
    assert list(again.algorithms.values()) == list(small.algorithms.values())
    assert again.peak_bytes <= most


def test_the_fastest_algorithm_within_a_workspace_is_taken() -> None:
    p = ConvProblem.of((8, 32, 32, 64), (3, 3, 64, 64), 1, "same")
    needs = {name: workspace_bytes(p, "forward", name) for name in algorithms(p, "forward")}
    least = min(needs.values())
    assert needs[convolution._within(p, "forward", 0)] == least
    for most in needs.values():
        name = convolution._within(p, "forward", most)
        assert needs[name] <= most
        assert not any(need <= most for need in list(needs.values())[: list(needs).index(name)])


def test_no_offload_where_the_limit_is_met_without() -> None:
    free = build_plan(graph_of("plain"))
    plan = build_plan(graph_of("plain"), memory_limit=free.peak_bytes, offload=Offload(FAST))
    assert plan.offloaded is None
    assert not any(isinstance(step, WriteStep) for step in plan.steps)


# -- the schedule by itself, on a made-up step: ten steps of one second, five storages of a page --------------------


def made_up(nbytes: int = 4096) -> Demand:
    candidates = [Candidate(Storage(f"s{i}", "activation", nbytes), i, 9 - i) for i in range(4)]
    live = np.zeros(10, np.int64)
    for each in candidates:
        live[each.last : each.next + 1] += nbytes
    return Demand(live, [1.0] * 10, candidates)


def test_the_storage_that_is_used_again_last_leaves_first() -> None:
    needs = made_up()
    assert [each.storage.name for each in chosen(needs, 3 * 4096)] == ["s0"]
    assert [each.storage.name for each in chosen(needs, 2 * 4096)] == ["s0", "s1"]
    assert chosen(needs, 4 * 4096) == []
    assert needs.least == 4096


def test_nobody_waits_for_a_disk_that_is_fast_enough_and_all_wait_for_one_that_is_not() -> None:
    needs = made_up()
    leaving = chosen(needs, 2 * 4096)
    fast = timeline(needs, leaving, 2 * 4096, Disk(4096 / 0.9, 4096 / 0.9, 1.0, 0.0))
    assert fast.waited == 0
    assert fast.seconds == 10
    assert fast.most <= 2 * 4096
    for moved in fast.moved:
        assert moved.candidate.last < moved.gone <= moved.back <= moved.candidate.next
        assert moved.write[1] <= fast.starts[moved.gone]
        assert moved.read[1] <= fast.starts[moved.candidate.next]
    slow = timeline(needs, leaving, 2 * 4096, Disk(4096 / 5, 4096 / 5, 1.0, 0.0))
    assert slow.seconds == pytest.approx(10 + slow.waited)
    assert slow.waited > 5
    assert slow.most <= 2 * 4096


def test_transfers_that_are_just_in_time_leave_more_room_and_take_no_more_time() -> None:
    needs = made_up()
    leaving = chosen(needs, 4096)
    found = timeline(needs, leaving, 3 * 4096, Disk(4096 / 0.5, 4096 / 0.5, 1.0, 0.0))
    just = just_in_time(found, 1.5)
    away = [sum(moved.back - moved.gone for moved in schedule.moved) for schedule in (found, just)]
    assert away[1] > away[0]
    assert just.seconds == found.seconds
    for before, moved in zip(found.moved, just.moved, strict=True):
        assert moved.candidate.last < moved.gone <= before.gone
        assert before.back <= moved.back <= moved.candidate.next
        assert just.starts[moved.back] + 1.5 * 0.5 <= just.starts[moved.candidate.next] or moved.back == before.back
        assert moved.read[1] <= just.starts[moved.candidate.next]
        assert just.starts[moved.gone] >= moved.write[0] + 1.5 * 0.5 or moved.gone == before.gone
    spans = sorted(moved.read for moved in just.moved)
    assert all(first[1] <= second[0] for first, second in itertools.pairwise(spans))


def test_two_queues_share_the_disk() -> None:
    queues = Queues(Disk(100.0, 50.0, 0.5, 0.0))
    queues.add("write", 0, 100)
    queues.add("write", 1, 100)
    queues.add("read", 0, 50)
    assert queues.finish("write", 1) == pytest.approx(3)
    assert queues.spans == {
        ("write", 0): pytest.approx((0, 2)),
        ("read", 0): pytest.approx((0, 2)),
        ("write", 1): pytest.approx((2, 3)),
    }


def test_speeds_of_a_disk_are_measured_once_and_kept(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(disk_speed, "BYTES", 16 << 20)
    first = disk_speed.disk_of(str(tmp_path))
    assert first.write > 0
    assert first.read > 0
    monkeypatch.setattr(disk_speed, "measure", None)
    assert disk_speed.disk_of(str(tmp_path)) == first


@pytest.mark.parametrize("damage", [{"write": 0}, {"read": -1.0}, {"together": 2.0}, {"read": None}])
def test_speeds_that_no_disk_has_are_measured_again(tmp_path, monkeypatch, damage) -> None:
    right = Disk(2e9, 3e9, 0.5)
    disk_speed.keep(str(tmp_path), right)
    contents = json.loads(disk_speed.DISKS.path.read_text())
    for what, value in damage.items():
        (name,) = (name for name in contents["figures"] if name.endswith(what))
        contents["figures"][name] = value
        if value is None:
            del contents["figures"][name]
    disk_speed.DISKS.path.write_text(json.dumps(contents))
    disk_speed.DISKS.forget()
    monkeypatch.setattr(disk_speed, "measure", lambda folder: right)
    assert disk_speed.disk_of(str(tmp_path)) == right


def test_times_below_zero_are_not_those_of_steps(tmp_path, monkeypatch) -> None:
    measured_times.STEPS.add({f"{measured_times._head(2)}{name}": value for name, value in (("a", 0.5), ("b", -1.0))})
    assert measured_times.measured(2) == {"a": 0.5}
