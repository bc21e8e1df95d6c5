"""`fit` with offload: equal weights, errors before the first step, and what is seen in traces."""

from __future__ import annotations

import json
import os
import threading
import time

import numpy as np
import pytest

import pydtconv as keras
from pydtconv.graph import Disk, TransferError, disk_speed, measured_times
from pydtconv.graph.ir.graph import Graph, Thresholds
from pydtconv.graph.runtime import scratch_file
from pydtconv.graph.schedule import offload_search
from pydtconv.graph.schedule.asynchronous import StartStep, WaitStep
from pydtconv.graph.schedule.step_times import signature
from pydtconv.profiling import Profiler
from tests.graph.networks import NETWORKS


@pytest.fixture(autouse=True)
def fast_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("PYDTCONV_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(disk_speed, "measure", lambda folder: Disk(50e9, 50e9, 1.0, 0.0))


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "scratch").mkdir()
    return tmp_path / "scratch"


def compiled() -> keras.Model:
    keras.utils.set_random_seed(5)
    model = NETWORKS["residual"](32, 16)
    model.compile(keras.optimizers.SGD(0.01, momentum=0.9), keras.losses.SparseCategoricalCrossentropy(True))
    return model


def data(count: int = 64) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.random((count, 32, 32, 3), np.float32), rng.integers(0, 10, count)


def test_weights_after_training_are_the_same_bits(folder) -> None:
    x, y = data(8 * 8 + 3)  # a smaller batch at the end, and more steps than are timed before the plan is made anew
    weights = []
    for offload in (False, True):
        model = compiled()
        limit = int(0.8 * model.plan(8).peak_bytes) if offload else None
        model.fit(x, y, batch_size=8, shuffle=False, verbose=0, memory_limit=limit, offload=folder if offload else None)
        weights.append(model.get_weights())
        if offload:
            plans = model._pydt_steps.plans
            assert any(plan.offloaded is not None and plan.offloaded.moved for plan in plans)
            assert model._pydt_steps.memory.scratch_file.nbytes == 0  # given back
            assert model._pydt_steps._planned_anew
    for a, b in zip(*weights, strict=True):
        np.testing.assert_array_equal(a, b)
    assert not os.listdir(folder)


def test_training_goes_on_with_its_plan_where_none_is_found_anew(folder, monkeypatch) -> None:
    x, y = data(8 * 8)
    usual, searches = offload_search.Search.run, []

    def run(self, *args):
        searches.append(self)
        return usual(self, *args) if len(searches) <= 2 else (None, 1 << 40)

    monkeypatch.setattr(offload_search.Search, "run", run)
    model = compiled()
    limit = int(0.8 * model.plan(8).peak_bytes)
    model.fit(x, y, batch_size=8, shuffle=False, verbose=0, memory_limit=limit, offload=folder)
    # twice by the first plan, once for its options and once by measured speeds, then both for the plan made anew
    assert [search.like is None for search in searches] == [True, False, False, False]
    free = compiled()
    free.fit(x, y, batch_size=8, shuffle=False, verbose=0)
    for a, b in zip(model.get_weights(), free.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


def trained(folder, share=0.8, batches=3, callbacks=(), **options):
    """The weights of a training, with offload where a folder is given."""
    x, y = data(8 * batches)
    model = compiled()
    options |= {"batch_size": 8, "shuffle": False, "verbose": 0, "callbacks": list(callbacks)}
    if folder is not None:
        options |= {"memory_limit": int(share * model.plan(8).peak_bytes), "offload": folder}
    model.fit(x, y, **options)
    plans = model._pydt_steps.plans
    assert folder is None or any(plan.offloaded is not None and plan.offloaded.moved for plan in plans)
    return model.get_weights()


def same(found, want) -> None:
    for a, b in zip(found, want, strict=True):
        np.testing.assert_array_equal(a, b)


def test_bfloat16_gives_the_same_bits(folder) -> None:
    """By the direct method: winograd does not round a normalized image that it reads in passing, a stored one is."""
    before = keras.mixed_precision.global_policy()
    keras.mixed_precision.set_global_policy("mixed_bfloat16")
    keras.config.set_conv_precision("strict")
    try:
        same(trained(folder, 0.8), trained(None))
    finally:
        keras.mixed_precision.set_global_policy(before)
        keras.config.set_conv_precision("fast")


def test_a_slow_disk_is_waited_for(folder, monkeypatch) -> None:
    real = scratch_file.transfer

    def slow(*arguments):
        time.sleep(0.003)
        real(*arguments)

    want = trained(None)
    monkeypatch.setattr(scratch_file, "transfer", slow)
    same(trained(folder), want)


def test_a_read_error_leaves_the_last_checkpoint_to_resume_from(folder, tmp_path, monkeypatch) -> None:
    def backup():
        return keras.callbacks.BackupAndRestore(tmp_path / "saved", save_freq=1)

    want = trained(None, batches=4)
    real, begun = scratch_file.transfer, []

    class Count(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            begun.append(batch)

    def broken(descriptor, array, place, writes, cached):
        if not writes and len(begun) == 3 and array.nbytes > 4096:
            raise OSError(5, "Input/output error")
        real(descriptor, array, place, writes, cached)

    with monkeypatch.context() as patch:
        patch.setattr(scratch_file, "transfer", broken)
        with pytest.raises(OSError, match="the step was interrupted: Input/output error"):
            trained(folder, batches=4, callbacks=[Count(), backup()])
    begun.clear()
    same(trained(folder, batches=4, callbacks=[Count(), backup()]), want)
    assert len(begun) == 2  # of four steps two were done


def test_a_step_that_breaks_off_before_the_optimizer_is_undone_and_kept(folder, tmp_path, monkeypatch) -> None:
    def backup():
        return keras.callbacks.BackupAndRestore(tmp_path / "saved")  # by epochs

    want, begun, tried = trained(None, batches=4), [], []
    real = scratch_file.transfer

    class Count(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            begun.append(batch)

    def broken(descriptor, array, place, writes, cached):
        if not writes and len(begun) == 3 and array.nbytes > 4096:
            tried.append(place)
            raise OSError(5, "Input/output error")
        real(descriptor, array, place, writes, cached)

    monkeypatch.setattr(scratch_file, "PAUSE", 0.0)
    with monkeypatch.context() as patch:
        patch.setattr(scratch_file, "transfer", broken)
        with pytest.raises(TransferError, match="the step was interrupted: Input/output error"):
            trained(folder, batches=4, callbacks=[Count(), backup()])
    assert tried.count(tried[0]) == 1 + scratch_file.RETRIES
    begun.clear()
    same(trained(folder, batches=4, callbacks=[Count(), backup()]), want)
    assert len(begun) == 2  # of four steps two were done, the averages of the third are forgotten


def test_a_folder_that_is_removed_during_training_is_no_loss(folder) -> None:
    """The file has no name in it anyway; a batch of another size is planned after that, too."""

    class Remove(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if batch == 1:
                folder.rmdir()

    x, y = data(8 * 8 + 3)
    weights = []
    for offload in (False, True):
        model = compiled()
        limit = int(0.8 * model.plan(8).peak_bytes) if offload else None
        options = {"memory_limit": limit, "offload": folder if offload else None}
        model.fit(x, y, batch_size=8, shuffle=False, verbose=0, callbacks=[Remove()] * offload, **options)
        weights.append(model.get_weights())
    assert not folder.exists()
    assert model._pydt_steps._planned_anew
    assert not any(thread.name.startswith("pydtconv ") for thread in threading.enumerate())
    same(*weights)


def test_an_error_that_passes_is_not_seen(folder, monkeypatch) -> None:
    want, real, tried = trained(None), scratch_file.transfer, []

    def sometimes(descriptor, array, place, writes, cached):
        tried.append(place)
        if len(tried) % 3 == 0:
            raise OSError(5, "Input/output error")
        real(descriptor, array, place, writes, cached)

    monkeypatch.setattr(scratch_file, "transfer", sometimes)
    monkeypatch.setattr(scratch_file, "PAUSE", 0.0)
    same(trained(folder), want)
    assert len(tried) > 10


@pytest.mark.parametrize("writes", [True, False], ids=["write", "read"])
def test_nothing_is_kept_of_a_step_in_which_the_optimizer_has_begun(folder, tmp_path, monkeypatch, writes) -> None:
    real, begun = scratch_file.transfer, []

    class Count(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            begun.append(batch)

    def broken(descriptor, array, place, is_write, cached):
        if len(begun) == 2 and is_write is writes and array.nbytes > 4096:
            raise OSError(5, "Input/output error")
        real(descriptor, array, place, is_write, cached)

    monkeypatch.setattr(Graph, "thresholds", Thresholds(applied_gradients=0))  # applied one by one
    monkeypatch.setattr(scratch_file, "transfer", broken)
    monkeypatch.setattr(scratch_file, "PAUSE", 0.0)
    backup = keras.callbacks.BackupAndRestore(tmp_path / "saved")
    with pytest.raises(TransferError) as error:
        trained(folder, batches=4, callbacks=[Count(), backup])
    assert error.value.undone is writes  # writes are waited for in forward, reads after first updates
    assert len(backup.checkpoints.paths) == writes


def test_a_plan_that_is_made_anew_predicts_by_what_was_measured(folder) -> None:
    plans = []

    class Look(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            (step,) = (step for step in self.model._pydt_steps._steps.values() if step.executor.plan.offloaded)
            if not plans or plans[-1] is not step.executor.plan:
                plans.append(step.executor.plan)

    trained(folder, batches=6, callbacks=[Look()])
    first, second = plans
    assert [*first.algorithms.values()] == [*second.algorithms.values()]
    known = measured_times.measured(second.threads)
    steps = [step for step in second.steps if not isinstance(step, (StartStep, WaitStep))]
    by_name = [known.get(signature(step)) for step in steps]
    assert sum(value is not None for value in by_name) > len(steps) // 2
    at_least = sum(value for value in by_name if value is not None)  # which Python 3.12 sums by rounding less
    assert second.offloaded.seconds >= at_least * (1 - 1e-12)


def test_training_without_offload_knows_nothing_of_disks(monkeypatch) -> None:
    for module, name in ((disk_speed, "measure"), (offload_search, "Search"), (scratch_file, "ScratchFile")):
        monkeypatch.setattr(module, name, None)
    model, (x, y) = compiled(), data(8)
    model.fit(x, y, batch_size=8, verbose=0, memory_limit=int(0.8 * model.plan(8).peak_bytes))
    assert not any(thread.name.startswith("pydtconv ") for thread in threading.enumerate())


def test_the_trace_shows_transfers_beside_computing(folder, tmp_path) -> None:
    model, (x, y) = compiled(), data(32)
    limit = int(0.8 * model.plan(8).peak_bytes)
    profiler = Profiler(steps=2, skip=1)
    model.fit(x, y, batch_size=8, verbose=0, memory_limit=limit, offload=folder, callbacks=[profiler])
    events = json.loads(profiler.write(tmp_path / "trace.json").read_text())["traceEvents"]
    kinds = {event.get("cat") for event in events}
    assert {"compute", "writes", "reads"} <= kinds
    written = [event for event in events if event.get("cat") == "writes"]
    assert all(event["name"].startswith("write ") for event in written)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"offload": "none/such", "memory_limit": 10**9}, "offload: expected a folder that is there, got 'none/such'"),
        ({"offload": ".", "memory_limit": None}, "offload: expected memory_limit too"),
        ({"offload": True, "memory_limit": 10**9}, "offload: expected a folder, got True"),
        ({"offload": "", "memory_limit": 10**9}, "offload: expected a folder, got ''"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_changes(options, words) -> None:
    model, (x, y) = compiled(), data(8)
    before = model.get_weights()
    with pytest.raises(ValueError, match=words):
        model.fit(x, y, batch_size=8, verbose=0, **options)
    for a, b in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_disk_without_room_is_told_of_before_the_first_step(folder, monkeypatch) -> None:
    def full(descriptor, start, nbytes):
        raise OSError(28, "No space left on device")

    model, (x, y) = compiled(), data(8)
    limit = int(0.8 * model.plan(8).peak_bytes)
    before = model.get_weights()
    monkeypatch.setattr(scratch_file, "_allocate", full)
    with pytest.raises(OSError, match=r"offload: expected .* MiB in .*: No space left on device"):
        model.fit(x, y, batch_size=8, verbose=0, memory_limit=limit, offload=folder)
    for a, b in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs a folder in which nobody can make a file")
def test_a_folder_that_cannot_be_written_to_is_told_of_before_the_first_step() -> None:
    model, (x, y) = compiled(), data(8)
    limit = int(0.8 * model.plan(8).peak_bytes)
    before = model.get_weights()
    with pytest.raises(OSError, match="offload: expected a folder that can be written to, got '/proc/self/fd'"):
        model.fit(x, y, batch_size=8, verbose=0, memory_limit=limit, offload="/proc/self/fd")
    same(model.get_weights(), before)


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="needs a folder in memory")
def test_a_folder_in_memory_is_warned_of_and_used() -> None:
    want = trained(None)
    with pytest.warns(UserWarning, match="is a tmpfs, whose files are memory: offloading to it saves none"):
        same(trained("/dev/shm"), want)


def test_a_read_error_ends_training_and_the_next_fit_goes_on(folder, monkeypatch) -> None:
    model, (x, y) = compiled(), data(8)
    limit = int(0.8 * model.plan(8).peak_bytes)
    real = scratch_file.transfer

    def broken(descriptor, array, place, writes, cached):
        if not writes and array.nbytes > 4096:
            raise OSError(5, "Input/output error")
        real(descriptor, array, place, writes, cached)

    with monkeypatch.context() as patch:
        patch.setattr(scratch_file, "transfer", broken)
        with pytest.raises(OSError, match=r"offload: could not read .* the step was interrupted: Input/output error"):
            model.fit(x, y, batch_size=8, verbose=0, memory_limit=limit, offload=folder)
    model.fit(x, y, batch_size=8, verbose=0, memory_limit=limit, offload=folder)
