"""Training with offload to pinned memory on a device: the bits of training without it, within the limit."""

from __future__ import annotations

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import config, devices, layers, utils
from pydtconv.devices import names, pinned
from pydtconv.devices.accelerator import Rates
from pydtconv.devices.gpu import missing
from pydtconv.devices.host import Host
from pydtconv.devices.pinned import PinnedMemory
from pydtconv.graph import disk_speed
from pydtconv.graph.ir.graph import Graph, Thresholds
from tests.devices import cupy_stand_in

X = np.random.default_rng(0).normal(size=(4, 12, 12, 4))
Y = np.arange(4)


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    """Tensors of some pages may leave, and copies take no time, so that nothing is recomputed instead."""
    monkeypatch.setattr(Graph, "thresholds", Thresholds(offloaded=4096))
    monkeypatch.setattr(Host, "rates", lambda self: Rates(1e9, 1e9, 1e15))


def network(depth=4):
    config.set_floatx("float64")
    utils.set_random_seed(5)
    model = keras.Sequential([keras.Input(X.shape[1:])])
    for _ in range(depth):
        model.add(layers.Conv2D(6, 1, activation="tanh"))
    model.add(layers.BatchNormalization())
    model.add(layers.GlobalAveragePooling2D())
    model.add(layers.Dense(5, activation="softmax"))
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9), "sparse_categorical_crossentropy")
    return model


def trained(device="host", epochs=4, **options):
    """Losses, weights and the plan of some steps on one batch; the second one and later ones are captured."""
    model = network()
    with keras.device(device):
        found = model.fit(X, Y, batch_size=4, epochs=epochs, shuffle=False, verbose=0, **options).history["loss"]
    return found, model.get_weights(), model._pydt_steps.plans[-1]


@pytest.fixture
def limit():
    """A limit that the plan does not meet by itself."""
    with keras.device("host"):
        plan = network().plan(4)
    return int(0.75 * plan.peak_bytes)


@pytest.mark.parametrize("late", [True, False], ids=["copies as late as can be", "copies at once"])
def test_results_are_the_bits_of_training_without(limit, late, monkeypatch):
    """Copies are done when somebody waits for them, or when they are asked for: either way nobody sees a difference."""
    monkeypatch.setattr(Host, "late", late)
    losses, weights, without = trained()
    got, found, plan = trained(memory_limit=limit, offload="host")
    assert plan.offloaded.folder == "host"
    assert plan.offloaded.scratch_bytes >= 4 * 4096
    assert plan.peak_bytes <= limit < without.peak_bytes
    assert got == losses
    for mine, other in zip(found, weights, strict=True):
        np.testing.assert_array_equal(mine, other)
    assert "waiting for pinned memory" in str(plan)


def test_the_plan_is_that_of_a_plan_that_does_not_run(limit):
    _, _, plan = trained(epochs=1, memory_limit=limit, offload="host")
    with keras.device("host"):
        for where in ("host", True):
            planned = network().plan(4, memory_limit=limit, offload=where)
            assert planned.peak_bytes == plan.peak_bytes
            assert [step.kind for step in planned.steps] == [step.kind for step in plan.steps]


def test_the_arena_is_no_larger_than_planned(limit, monkeypatch):
    sizes = []
    arena = Host.arena
    monkeypatch.setattr(Host, "arena", lambda self, nbytes: sizes.append(nbytes) or arena(self, nbytes))
    _, _, plan = trained(epochs=1, memory_limit=limit, offload="host")
    assert max(sizes) == plan.arena_bytes
    assert plan.arena_bytes + plan.parameter_bytes + plan.gradient_bytes + plan.slot_bytes == plan.peak_bytes


def test_a_copy_that_nobody_waits_for_is_not_there():
    host = devices.get("host")
    memory = PinnedMemory(host)
    memory.reserve(8192)
    array = host.arena(4096)
    array.memory[:] = 7
    write, written = memory.bind(array, 4096, True, "write")
    read, there = memory.bind(array, 4096, False, "read")
    write()
    written()
    written()  # again, as after an error
    array.memory[:] = 0
    read()
    assert not array.memory.any()
    there()
    assert (array.memory == 7).all()
    memory.close()
    assert memory.nbytes == 0


def test_what_cannot_be_is_refused(tmp_path):
    model = network(1)
    with keras.device("host"):
        for value in (str(tmp_path), True, "HOST"):
            with pytest.raises(ValueError, match="offload: expected 'host', its pinned memory, on host, got"):
                model.fit(X, Y, verbose=0, memory_limit="1GB", offload=value)
        with pytest.raises(ValueError, match="offload: expected memory_limit too"):
            model.fit(X, Y, verbose=0, offload="host")
    with pytest.raises(ValueError, match="offload: expected a folder that is there, got 'host'"):
        model.fit(X, Y, verbose=0, memory_limit="1GB", offload="host")


def test_a_gpu_copies_on_streams_of_its_own(monkeypatch, tmp_path, limit):
    """Pinned memory, two streams, an event on each side of every copy; captured; speeds are measured once and kept."""
    monkeypatch.setattr(names, "_made", {name: made for name, made in names._made.items() if "gpu" not in name})
    monkeypatch.setattr(disk_speed.DISKS, "_read", None)
    monkeypatch.setattr(pinned, "speeds", lambda device: (1e15, 1e15))
    monkeypatch.setattr(type(disk_speed.DISKS), "path", property(lambda self: tmp_path / self.file))
    cupy = cupy_stand_in.install(monkeypatch)
    stream, slots = cupy.cuda.Stream, cupy_stand_in.Pinned.allocated
    monkeypatch.setattr(devices.get("gpu"), "rates", lambda: Rates(1e9, 1e9, 1e15))
    losses, weights, _ = trained("gpu")
    monkeypatch.setattr(stream, "copies", [])
    monkeypatch.setattr(stream, "waits", [])
    got, found, plan = trained("gpu", memory_limit=limit, offload="host")
    assert got == losses
    for mine, other in zip(found, weights, strict=True):
        np.testing.assert_array_equal(mine, other)
    assert slots[-1] == plan.offloaded.scratch_bytes
    moved = len(plan.offloaded.moved)
    run_and_capture = 2  # the Python calls; then the graph is launched
    assert [what for what, _, _ in stream.copies].count("to host") == run_and_capture * moved
    streams = {what: {on for what_, on, _ in stream.copies if what_ == what} for what in ("to host", "from host")}
    assert len(streams["to host"]) == len(streams["from host"]) == 1
    assert streams["to host"] != streams["from host"]
    assert len(stream.waits) == 2 * len(stream.copies), "a copy waits for kernels, and kernels for the copy"
    kept = disk_speed.DISKS.all()
    assert sorted(name.rsplit(" ", 1)[-1] for name in kept if " pinned " in name) == ["read", "write"]


@pytest.mark.gpu
@pytest.mark.skipif(missing() is not None, reason=missing() or "")
def test_the_bits_of_training_without_on_a_gpu(monkeypatch):
    gpu = devices.get("gpu")
    monkeypatch.setattr(type(gpu), "rates", lambda self: Rates(1e9, 1e9, 1e15))
    monkeypatch.setattr(pinned, "speeds", lambda device: (1e15, 1e15))
    losses, weights, without = trained("gpu")
    limit = int(0.75 * without.peak_bytes)
    got, found, plan = trained("gpu", memory_limit=limit, offload="host")
    assert plan.offloaded.folder == "host"
    assert plan.offloaded.moved
    assert plan.peak_bytes <= limit
    assert got == losses
    for mine, other in zip(found, weights, strict=True):
        np.testing.assert_array_equal(mine, other)
    monkeypatch.undo()
    assert min(pinned.speeds(gpu)) > 1e8, "bytes per second that a bus of any year copies"


def test_how_fast_copies_are_is_measured_by_events(monkeypatch):
    monkeypatch.setattr(names, "_made", {name: made for name, made in names._made.items() if "gpu" not in name})
    cupy_stand_in.install(monkeypatch)
    assert min(pinned.speeds(devices.get("gpu"), 1 << 16)) > 0
    assert cupy_stand_in.Pinned.allocated[-1] == 1 << 16


def test_a_plan_takes_no_more_than_the_device_has(monkeypatch):
    """It computes tensors again where they do not fit; where nothing fits, the least that would do is told."""
    losses, weights, free = trained(epochs=1)
    with keras.device("host"):
        lots = network().plan(4).peak_bytes
        with pytest.raises(MemoryError) as caught:
            network().plan(4, memory_limit=1000)
    least = caught.value.smallest_bytes
    monkeypatch.setattr(Host, "room", lambda self: (lots + least) // 2)
    got, found, plan = trained(epochs=1)
    assert plan.peak_bytes <= (lots + least) // 2 < free.peak_bytes
    assert plan.recomputed
    assert got == losses
    for mine, other in zip(found, weights, strict=True):
        np.testing.assert_array_equal(mine, other)
    monkeypatch.setattr(Host, "room", lambda self: least - 1000)
    message = f"device host: expected at least {least} bytes, the smallest plan of this model and batch size, got"
    with pytest.raises(MemoryError, match=message):
        trained(epochs=1)
    with pytest.raises(MemoryError, match=message):
        trained(epochs=1, memory_limit="1GB")
    with pytest.raises(MemoryError, match="memory_limit: expected at least"):
        trained(epochs=1, memory_limit=1000)


def test_a_second_fit_pins_memory_anew(limit):
    """Between two trainings the memory is given back; what was bound to it is bound again."""
    losses, _, _ = trained(epochs=4)
    model = network()
    options = {"batch_size": 4, "epochs": 2, "shuffle": False, "verbose": 0, "memory_limit": limit, "offload": "host"}
    with keras.device("host"):
        got = model.fit(X, Y, **options).history["loss"]
        assert model._pydt_steps.memory.scratch_file.nbytes == 0
        got += model.fit(X, Y, **options).history["loss"]
    assert got == losses
