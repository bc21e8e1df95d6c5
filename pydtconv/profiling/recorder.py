"""`Profiler`: records training steps by the hooks of the plan and the seams of the trainer."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydtconv import config, hooks, replica
from pydtconv.callbacks.callback import Callback, Logs
from pydtconv.graph.schedule.steps import RecomputeStep, Step
from pydtconv.profiling.profile import Profile, Timing
from pydtconv.profiling.record import Record, median, outside_of, reductions_of, timing_of
from pydtconv.profiling.trace import Trace, check_path
from pydtconv.profiling.work import update_bytes
from pydtconv.support.machine import cpu_name

_now = time.perf_counter_ns


class Profiler(Callback):
    """Records where the time of training steps goes; a callback of `fit`, or a context around `train_on_batch`.

      profiler = Profiler()
      model.fit(x, y, callbacks=[profiler])         or         with Profiler(model) as profiler: ...
      print(profiler.profile)
      profiler.write("step.json")

    steps: training steps that are recorded; later ones run as without it.  skip: first steps of each batch size that
    are not recorded, unless there are no others.
    path: a file into which the time line is written (see `write`) when these steps are done, or `fit` is; `fit`'s
    `trace` is such a profiler, or the path of one that is among its callbacks.

    Where several processes train one model, each has a Profiler, which times its own share of the batches.

    Raises ValueError for numbers that are too small and what is no path, OSError for one that cannot be written.
    """

    def __init__(
        self, model: Any = None, *, steps: int = 10, skip: int = 2, path: str | os.PathLike[str] | None = None
    ) -> None:
        for name, value, least in (("steps", steps, 1), ("skip", skip, 0)):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(f"Profiler: {name}: expected an integer of {least} or more, got {value!r}")
        if path is not None and (not isinstance(path, (str, os.PathLike)) or not os.fspath(path)):
            raise ValueError(f"trace: expected the path of a file, got {path!r}")
        if path is not None and replica.current().is_main:
            check_path(Path(path))
        self.steps, self.skip = steps, skip
        self._paths = [] if path is None else [Path(path)]
        self.trace = Trace()
        self._profiled: Any = None
        self._memory: Any = None
        self._replaced: list[tuple[Any, str]] = []
        self._records: list[Record] = []
        self._skipped: list[Record] = []  # the last one, while there is no other
        self._seen: Counter[int] = Counter()
        self._record: Record | None = None  # of the step that runs
        self._next = Record()  # of the one after it
        self._started = self._part_started = self._index = self._base = self._count = 0
        self._again = False
        self._given = model

    @property
    def steers(self) -> bool:  # type: ignore[override]
        """True where it writes a file in training, which all processes do together, after the same step."""
        return bool(self._paths)

    # --- where it is put -------------------------------------------------------------------------------------------
    def __enter__(self) -> Profiler:
        if self._given is None:
            raise ValueError("Profiler: expected a model: with Profiler(model) as profiler")
        self._attach(self._given)
        return self

    def __exit__(self, *error: object) -> None:
        self._detach()

    def on_train_begin(self, logs: Logs | None = None) -> None:
        self._attach(self.model)

    def on_train_end(self, logs: Logs | None = None) -> None:
        self._write_paths()

    def join(self, listeners: Any, model: Any) -> None:
        """Puts itself among the callbacks; where there is a Profiler already, that one writes its file, too."""
        other = next((each for each in listeners.callbacks if isinstance(each, Profiler)), None)
        if other is None:
            self.set_model(model)
            listeners.append(self)
        else:
            other._paths += self._paths

    def release(self) -> None:
        self._detach()

    def _attach(self, model: Any) -> None:
        self._detach()
        self._profiled = model
        self._replica = replica.current()
        self._replica.observer = self
        self.trace.rank = self._replica.rank
        self._memory = model._pydt_training.memory
        self._memory.hooks.append(self)
        self._memory.state.part_done = self._part_done
        self._memory.observe_transfers(self._transferred)
        around = [
            (model, "_pydt_step", self._around_step),
            (model, "_pydt_apply_gradients", self._around("optimizer")),
            (model._pydt_steps.workspace, "step", self._around("optimizer")),  # of a train_step of its class
            (model, "_pydt_note", self._around("metrics")),
        ]
        if model._pydt_position is not None:  # within fit
            around.append((model._pydt_position.batches, "next_batch", self._around_data))
        for owner, name, wrap in around:
            object.__setattr__(owner, name, wrap(getattr(owner, name)))
            self._replaced.append((owner, name))

    def _detach(self) -> None:
        if self._profiled is None:
            return
        self._replica.observer = None
        self._memory.hooks.remove(self)
        self._memory.state.part_done = None
        self._memory.observe_transfers(None)
        for owner, name in self._replaced:
            object.__delattr__(owner, name)
        self._replaced = []
        self._profiled = self._record = None

    # --- what it is told -------------------------------------------------------------------------------------------
    def _around_step(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def step(kind: str, batch: Any, *arguments: Any) -> Any:
            if kind != "train":
                return call(kind, batch, *arguments)
            self._count, self._base = self._count + 1, 0
            record, self._next = self._next, Record()
            record.number, record.batch_size, record.total = self._count, batch.size, batch.total
            record.start, self._record = _now(), record
            result = call(kind, batch, *arguments)
            self._finish()
            return result

        return step

    def _around_data(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def next_batch() -> Any:
            start = _now()
            batch = call()
            self._next.data.append((start, _now()))
            return batch

        return next_batch

    def _around(self, name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def wrap(call: Callable[..., Any]) -> Callable[..., Any]:
            def timed(*arguments: Any, **named: Any) -> Any:
                start = _now()
                result = call(*arguments, **named)
                if self._record is not None:
                    self._record.outside.append((name, start, _now()))
                return result

            return timed

        return wrap

    def before(self, index: int, step: Step) -> None:
        if index == 0 and self._record is not None and self._record.steps:  # another plan of the same training step
            self._base = max(self._record.steps) + 1
        self._index, self._again = self._base + index, isinstance(step, RecomputeStep)
        self._started = self._part_started = _now()

    def _part_done(self, name: str) -> None:
        now = _now()
        if self._record is not None:
            part = name.replace("forward", "recompute") if self._again else name
            self._record.parts[self._index, part] = (self._part_started, now)
        self._part_started = now

    def after(self, index: int, step: Step) -> None:
        now = _now()
        if self._record is not None:
            self._record.steps[self._index] = step
            if self._part_started == self._started:  # no part was announced
                self._record.parts[self._index, step.kind] = (self._started, now)

    def gradient_ready(self, part: slice) -> None:
        if self._record is not None:
            self._record.gradients.setdefault(self._index, []).append((part.start, part.stop))

    def communicated(self, what: str, start: int, stop: int) -> None:
        (self._record or self._next).communication.append((what, start, stop))  # another thread may say so

    def waited(self, what: str, start: int, stop: int) -> None:
        if self._record is not None:
            self._record.waits.append((what, start, stop))

    def _transferred(self, name: str, start: int, stop: int, wrote: bool) -> None:
        record = self._record  # another thread may say so
        if record is not None:
            record.transfers.append((name, start, stop, wrote))

    def _finish(self) -> None:
        record, self._record = self._record, None
        if record is None:
            return
        record.stop = _now()
        spans = list(record.parts.values())
        if spans:
            record.outside.append(("inputs", record.start, spans[0][0]))
            following = [start for _, start, _ in record.outside if start >= spans[-1][1]]
            record.outside.append(("results", spans[-1][1], min(following, default=record.stop)))
        self._seen[record.total] += 1  # the same in all processes, which thus record the same steps
        if self._seen[record.total] > self.skip:
            self._keep(record)
        elif not self._records:
            self._skipped = [record]
        if len(self._records) >= self.steps:
            self._detach()
            self._write_paths()

    def _keep(self, record: Record) -> None:
        self._records.append(record)
        self._skipped = []
        record.draw(self.trace)

    # --- what it found ---------------------------------------------------------------------------------------------
    @property
    def profile(self) -> Profile:
        """Medians over the steps of the batch size that was recorded most often.  Raises ValueError without any."""
        self._keep_skipped()
        records = self._most()
        if not records:
            raise ValueError("Profiler: no step was recorded: expected a training step")
        size = records[0].batch_size
        model = self._given if self._given is not None else self.model
        store, first = model._pydt_training.memory.store, records[-1]
        slots = len(model.optimizer.all_slots())
        timings = [timing_of(key, records, slots) for key in first.parts]
        seconds = median([record.stop - record.start for record in records])
        outside = outside_of(records)
        moved = 0 if store is None else update_bytes(store.parameters.nbytes, slots)
        timings += [
            Timing(-1, name, name, "outside", value, bytes=moved if name == "optimizer" else 0)
            for name, value in outside.items()
        ]
        return Profile(
            model=model.name,
            batch_size=size,
            threads=config.num_threads(),
            dtype="float32" if store is None else f"float{8 * store.itemsize}",
            variant=config.conv_variant(),
            cpu=cpu_name(),
            samples=len(records),
            seconds=seconds,
            gradient_elements=0 if store is None else store.size,
            timings=timings,
            step_seconds=[record.seconds for record in records],
            ranks=self._replica.size,
        )

    def _most(self) -> list[Record]:
        """The records of the batch size that was recorded most often."""
        sizes = Counter(record.batch_size for record in self._records)
        return [record for record in self._records if record.batch_size == sizes.most_common(1)[0][0]]

    def write(self, path: str | Path) -> Path:
        """Writes the time line of all recorded steps; returns the path.

        As JSON for chrome://tracing and Perfetto, with the profile in it; where the path ends in .prv, for Paraver,
        with names in files that end in .pcf and .row.
        Where several processes train one model all must call it: the first one writes the time lines of all, by its own
        clock, with its own profile and all ranks' seconds of steps and reductions.  Raises ValueError where it has
        recorded no step, and OSError.
        """
        merged = self._merged()
        if merged.profile is None:
            raise ValueError("Profiler: no step was recorded: expected a training step")
        return merged.write(path)

    def _merged(self) -> Trace:
        self._keep_skipped()
        self.trace.profile = self.profile.to_dict() if self._records else None
        here = replica.current()
        self.trace.offset = here.clock_offset()
        own = [(record.seconds, record.reductions) for record in self._most()]
        traces, ranks = zip(*here.collected((self.trace, own), "the time lines of all ranks"), strict=True)
        merged = Trace.merge(traces)
        if merged.profile is not None:
            merged.profile = {
                **merged.profile,
                "step_seconds": [seconds for steps in ranks for seconds, _ in steps],
                "reduction_seconds": reductions_of([[reductions for _, reductions in steps] for steps in ranks]),
            }
        return merged

    def _keep_skipped(self) -> None:
        """Where no step came after those to be skipped, the last one of these counts."""
        for record in self._skipped:
            self._keep(record)

    def _write_paths(self) -> None:
        """Writes the files that are to be written in training, once."""
        paths, self._paths = self._paths, []
        merged = self._merged() if paths else None
        for path in paths:
            assert merged is not None
            merged.write(path)


@hooks.tracer.fill
def tracer(path: str | os.PathLike[str]) -> Profiler:
    """What `fit` gives its argument `trace` to."""
    return Profiler(path=path)
