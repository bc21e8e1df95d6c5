"""What a Profiler records of training, and that it leaves nothing behind."""

import itertools
import json
import time

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import layers, replica
from pydtconv.profiling import Profile, Profiler, recorder
from pydtconv.trainers.strategy import Strategy


def small_model():
    model = keras.Sequential([
        keras.Input((8, 8, 3)),
        layers.Conv2D(4, 3, activation="relu"),
        layers.BatchNormalization(),
        layers.Flatten(),
        layers.Dense(5),
    ])  # fmt: skip
    model.compile(keras.optimizers.SGD(0.01, momentum=0.9), "mse")
    return model


def data(n):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 8, 8, 3)).astype("float32"), rng.normal(size=(n, 5)).astype("float32")


def test_a_context_records_steps_in_order_and_accounts_for_all_of_their_time(monkeypatch):
    # a clock that goes on by a microsecond whenever it is looked at: medians of a real one move with the machine's load
    monkeypatch.setattr(recorder, "_now", itertools.count(0, 1000).__next__)
    model = small_model()
    steps = 5
    with Profiler(model, steps=steps, skip=1) as profiler:
        for _ in range(steps + 3):
            model.train_on_batch(*data(16))
    profile = profiler.profile
    assert (profile.batch_size, profile.samples, profile.variant) == (16, steps, keras.config.conv_variant())
    inside = [timing for timing in profile.timings if timing.index >= 0]
    assert [timing.index for timing in inside] == sorted(timing.index for timing in inside)
    kinds = [(timing.kind, timing.direction) for timing in inside]
    forward, backward = kinds.index(("conv", "forward")), kinds.index(("conv", "backward_weights"))
    assert kinds[backward - 1] == ("conv", "backward_bias")
    assert forward < kinds.index(("dense", "backward_data")) < backward
    outside = {timing.node: timing for timing in profile.timings if timing.index < 0}
    assert set(outside) == {"optimizer", "metrics", "inputs", "results", "between"}
    total = sum(timing.seconds for timing in profile.timings)
    assert total == pytest.approx(profile.seconds)
    assert all(timing.seconds >= 0 for timing in profile.timings)
    store = model._pydt_steps.memory.store
    assert outside["optimizer"].bytes == store.parameters.nbytes * 5
    ready = [part for timing in profile.timings for part in timing.gradients]
    assert ready == [(part.start, part.stop) for part in map(store.slice_of, store.variables)]


def test_fit_takes_it_as_a_callback_and_the_most_frequent_batch_counts():
    model = small_model()
    profiler = Profiler(steps=20, skip=1)
    model.fit(*data(44), batch_size=16, epochs=4, verbose=0, callbacks=[profiler])
    assert profiler.profile.batch_size == 16
    assert profiler.profile.samples == 4 * 2 - 1


def test_the_same_numbers_are_trained_and_nothing_stays_behind():
    results = []
    for profiled in (False, True):
        keras.utils.set_random_seed(7)
        model = small_model()
        before = set(vars(model))
        callbacks = [Profiler(steps=2, skip=0)] if profiled else []
        model.fit(*data(32), batch_size=8, verbose=0, callbacks=callbacks)
        memory = model._pydt_steps.memory
        assert not memory.hooks
        assert memory.state.part_done is None
        assert not {"_pydt_step", "_pydt_apply_gradients", "_pydt_note"} & (set(vars(model)) - before)
        results.append(model.get_weights())
    for plain, watched in zip(*results, strict=True):
        np.testing.assert_array_equal(plain, watched)


def test_evaluation_within_training_is_not_recorded():
    model = small_model()
    profiler = Profiler(steps=50, skip=0)
    model.fit(*data(16), batch_size=16, epochs=3, verbose=0, validation_data=data(16), callbacks=[profiler])
    profile = profiler.profile
    assert profile.samples == 3
    assert sum(timing.kind == "conv" and timing.direction == "forward" for timing in profile.timings) == 1


def test_table_and_file(tmp_path):
    model = small_model()
    with Profiler(model, steps=2, skip=0) as profiler:
        for _ in range(2):
            model.train_on_batch(*data(4))
    text = str(profiler.profile)
    assert "backward_weights" in text
    assert "convgemm" in text
    path = profiler.write(tmp_path / "deep" / "step.json")
    assert Profile.load(path) == profiler.profile


class OwnStep(keras.Model):
    """A train_step that runs more than one plan."""

    def train_step(self, data):
        x, y = data
        with keras.GradientTape() as tape:
            loss = keras.ops.mean(keras.ops.square(self(x, training=True) - y))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply(gradients, self.trainable_variables)
        return {"loss": loss}


def own_model():
    inputs = keras.Input((8, 8, 3))
    model = OwnStep(inputs, layers.Dense(5)(layers.Flatten()(inputs)))
    model.compile("sgd")
    return model


def threads(path):
    """The events of each thread, in order."""
    found = {}
    for event in json.loads(path.read_text())["traceEvents"]:
        if event["ph"] == "X":
            found.setdefault((event["pid"], event["tid"]), []).append(event)
    return found


def own_times(events):
    """Pairs of an event and its time without those inside; fails where events of a thread do not nest."""
    inside, found = [], []
    for event in sorted(events, key=lambda event: (event["ts"], -event["dur"])):
        while inside and inside[-1][0]["ts"] + inside[-1][0]["dur"] <= event["ts"] + 1e-3:
            inside.pop()
        if inside:
            outer = inside[-1]
            assert event["ts"] + event["dur"] <= outer[0]["ts"] + outer[0]["dur"] + 1e-3, (event, outer[0])
            outer[1] -= event["dur"]
        inside.append([event, event["dur"]])
        found.append(inside[-1])
    return found


@pytest.mark.parametrize("made", [small_model, own_model])
def test_fit_writes_a_trace_that_accounts_for_all_of_a_steps_time(made, tmp_path):
    path = tmp_path / "deep" / "time.json"
    made().fit(*data(64), batch_size=4, verbose=0, trace=path)
    ((thread, events),) = threads(path).items()
    assert thread == (0, 0)
    steps = [event for event in events if event["cat"] == "step"]
    assert [step["name"] for step in steps] == [f"step {number}" for number in range(3, 13)]
    assert [event["cat"] for event in events].count("data") == 10
    kinds = {event["name"].rpartition(" ")[2] for event in events if event["cat"] == "compute"}
    assert {"forward", "backward_weights"} <= kinds
    for step in steps:
        stop = step["ts"] + step["dur"]
        within = [event for event in events if step["ts"] <= event["ts"] and event["ts"] + event["dur"] <= stop + 1e-3]
        assert sum(time for _, time in own_times(within)) == pytest.approx(step["dur"], abs=0.1)
    own_times(events)


def test_a_trace_is_of_the_steps_that_a_profiler_records_else_of_those_there_are(tmp_path):
    model, profiler = small_model(), Profiler(steps=3, skip=1, path=tmp_path / "own.json")
    model.fit(*data(64), batch_size=8, verbose=0, callbacks=[profiler], trace=str(tmp_path / "both.json"))
    for name in ("own.json", "both.json"):
        (events,) = threads(tmp_path / name).values()
        assert [event["name"] for event in events if event["cat"] == "step"] == ["step 2", "step 3", "step 4"]
    model.fit(*data(8), batch_size=8, verbose=0, trace=tmp_path / "one.json")
    (events,) = threads(tmp_path / "one.json").values()
    assert [event["name"] for event in events if event["cat"] == "step"] == ["step 1"]
    model.fit(*data(8), epochs=0, verbose=0, trace=tmp_path / "none.prv")
    assert (tmp_path / "none.prv").exists()


def test_a_trace_is_written_while_training_goes_on(tmp_path):
    path, there = tmp_path / "time.prv", []
    noting = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: there.append(path.exists()))
    small_model().fit(*data(64), batch_size=4, verbose=0, callbacks=[noting], trace=path)
    assert there == [batch >= 11 for batch in range(16)]


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("folder", IsADirectoryError),
        ("file/time.json", FileExistsError),
        ("names.prv", IsADirectoryError),
        ("", ValueError),
        (3, ValueError),
        (True, ValueError),
    ],
)
def test_a_bad_path_of_a_trace_is_refused_before_training(path, error, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "names.pcf").mkdir()
    (tmp_path / "file").touch()
    model = small_model()
    before = model.get_weights()
    with pytest.raises(error, match=r"trace: expected the path of a file, got|folder|'file'|names.pcf"):
        model.fit(*data(8), verbose=0, trace=path)
    for now, then in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(now, then)


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        ("[", "step.json: expected a file written by a profiler"),
        ('{"traceEvents": []}', "it holds no profile"),
        (
            '{"profile": {"format": "other", "version": 1}}',
            "expected format 'pydtconv profile', version 1, got 'other'",
        ),
        ('{"profile": {"format": "pydtconv profile", "version": 99}}', "got 'pydtconv profile', version 99"),
        ('{"profile": {"format": "pydtconv profile", "version": 1}}', "timings"),
    ],
    ids=["torn", "other", "format", "version", "fields"],
)
def test_other_files_are_refused(contents, message, tmp_path):
    path = tmp_path / "step.json"
    path.write_text(contents)
    with pytest.raises(ValueError, match=message):
        Profile.load(path)


def test_misuse_is_told():
    with pytest.raises(ValueError, match="steps: expected an integer of 1 or more, got 0"):
        Profiler(steps=0)
    with pytest.raises(ValueError, match="skip: expected an integer of 0 or more, got -1"):
        Profiler(skip=-1)
    with pytest.raises(ValueError, match="expected a model"), Profiler():
        pass
    with pytest.raises(ValueError, match="no step was recorded"):
        _ = Profiler(small_model()).profile


def test_communication_and_waits_are_told_apart_from_what_goes_on_meanwhile(tmp_path):
    """A replica that lets one bucket be reduced beside backward, and waits for it within the optimizer's step."""

    class Slow(Strategy):
        rank = 5

        def apply(self, optimizer, store):
            start = time.perf_counter_ns()
            time.sleep(0.02)
            stop = time.perf_counter_ns()
            self.observer.communicated("bucket 1", start - 1000, stop)
            self.observer.waited("bucket 1", start, stop)
            optimizer.apply(store)

    replica.set_current(Slow())
    try:
        model = small_model()
        with Profiler(model, steps=2, skip=0) as profiler:
            for _ in range(2):
                model.train_on_batch(*data(4))
        assert replica.current().observer is None
        path = profiler.write(tmp_path / "step.json")
    finally:
        replica.set_current(None)
    written = Profile.load(path)
    assert written.step_seconds == profiler.profile.step_seconds
    assert (
        max(written.step_seconds)
        < min(event["dur"] for event in json.loads(path.read_text())["traceEvents"] if event["name"] == "optimizer")
        * 1e-6
    )
    assert all(0.02 <= seconds < 1 for seconds in written.reduction_seconds)
    outside = {timing.node: timing.seconds for timing in profiler.profile.timings if timing.index < 0}
    assert outside["wait"] >= 0.02
    assert outside["optimizer"] < profiler.profile.seconds - 0.02
    events = [event for event in json.loads(path.read_text())["traceEvents"] if event["name"] == "bucket 1"]
    assert [event["cat"] for event in events] == ["communication", "wait"] * 2
    assert {event["pid"] for event in events} == {5}
