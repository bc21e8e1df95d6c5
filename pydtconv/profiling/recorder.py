"""`Profiler`: records training steps by the hooks of the plan and the seams of the trainer."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydtconv import config, replica
from pydtconv.callbacks.callback import Callback, Logs
from pydtconv.graph.schedule.steps import RecomputeStep, Step
from pydtconv.profiling.profile import Profile, Timing
from pydtconv.profiling.record import Record, median, outside_of, reductions_of, timing_of
from pydtconv.profiling.trace import COMMUNICATION, HOST, READS, WAIT, WRITES, Trace
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
    are not recorded.

    Where several processes train one model, each has a Profiler, which times its own share of the batches.
    """

    def __init__(self, model: Any = None, *, steps: int = 10, skip: int = 2) -> None:
        for name, value, least in (("steps", steps, 1), ("skip", skip, 0)):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(f"Profiler: {name}: expected an integer of {least} or more, got {value!r}")
        self.steps, self.skip = steps, skip
        self.trace = Trace()
        self._profiled: Any = None
        self._memory: Any = None
        self._replaced: list[str] = []
        self._records: list[Record] = []
        self._seen: Counter[int] = Counter()
        self._record: Record | None = None
        self._started = self._part_started = self._index = 0
        self._again = False
        self._given = model

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
        for name, wrap in (
            ("_pydt_train_batch", self._around_step),
            ("_pydt_apply_gradients", self._around("optimizer")),
            ("_pydt_note", self._around_metrics),
        ):
            object.__setattr__(model, name, wrap(getattr(model, name)))
            self._replaced.append(name)

    def _detach(self) -> None:
        if self._profiled is None:
            return
        self._replica.observer = None
        self._memory.hooks.remove(self)
        self._memory.state.part_done = None
        self._memory.observe_transfers(None)
        for name in self._replaced:
            object.__delattr__(self._profiled, name)
        self._replaced = []
        self._profiled = self._record = None

    # --- what it is told -------------------------------------------------------------------------------------------
    def _around_step(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def train_batch(batch: Any, *arguments: Any) -> Any:
            self._record = Record(batch.size, _now())
            return call(batch, *arguments)

        return train_batch

    def _around(self, name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def wrap(call: Callable[..., Any]) -> Callable[..., Any]:
            def timed(*arguments: Any) -> Any:
                start = _now()
                result = call(*arguments)
                if self._record is not None:
                    self._record.outside.append((name, start, _now()))
                return result

            return timed

        return wrap

    def _around_metrics(self, call: Callable[..., Any]) -> Callable[..., Any]:
        timed = self._around("metrics")(call)

        def note(*arguments: Any) -> Any:
            result = timed(*arguments)
            self._finish()
            return result

        return note

    def before(self, index: int, step: Step) -> None:
        self._index, self._again = index, isinstance(step, RecomputeStep)
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
            self._record.steps[index] = step
            if self._part_started == self._started:  # no part was announced
                self._record.parts[index, step.kind] = (self._started, now)

    def gradient_ready(self, part: slice) -> None:
        if self._record is not None:
            self._record.gradients.setdefault(self._index, []).append((part.start, part.stop))

    def communicated(self, what: str, start: int, stop: int) -> None:
        if self._record is not None:
            self._record.communication.append((what, start, stop))

    def waited(self, what: str, start: int, stop: int) -> None:
        if self._record is not None:
            self._record.waits.append((what, start, stop))

    def _transferred(self, name: str, start: int, stop: int, wrote: bool) -> None:
        if self._record is not None:
            self._record.transfers.append((name, start, stop, wrote))

    def _finish(self) -> None:
        record, self._record = self._record, None
        if record is None or not record.parts:
            return
        record.stop = _now()
        spans = list(record.parts.values())
        record.outside.append(("inputs", record.start, spans[0][0]))
        following = [start for _, start, _ in record.outside if start >= spans[-1][1]]
        record.outside.append(("results", spans[-1][1], min(following, default=record.stop)))
        self._seen[record.batch_size] += 1
        if self._seen[record.batch_size] > self.skip:
            self._records.append(record)
            self._draw(record)
        if len(self._records) == self.steps:
            self._detach()

    def _draw(self, record: Record) -> None:
        for (index, part), (start, stop) in record.parts.items():
            step = record.steps[index]
            self.trace.add(f"{step.node.name} {part}", start, stop, kind=step.node.op.name, index=index)
        for track, spans in ((HOST, record.outside), (COMMUNICATION, record.communication), (WAIT, record.waits)):
            for name, start, stop in spans:
                self.trace.add(name, start, stop, track)
        for name, start, stop, wrote in record.transfers:
            self.trace.add(name, start, stop, WRITES if wrote else READS)

    # --- what it found ---------------------------------------------------------------------------------------------
    @property
    def profile(self) -> Profile:
        """Medians over the steps of the batch size that was recorded most often.  Raises ValueError without any."""
        records = self._most()
        if not records:
            raise ValueError(self._nothing())
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
        """Writes the time line of all recorded steps, with the profile in it, as JSON; returns the path.

        Where several processes train one model all must call it: the first one writes the time lines of all, on their
        systems' clocks, with its own profile and all ranks' seconds of steps and reductions.  Raises ValueError where
        it has recorded no step, and OSError.
        """
        self.trace.profile = self.profile.to_dict() if self._records else None
        own = [(record.seconds, record.reductions) for record in self._most()]
        traces, ranks = zip(*replica.current().collected((self.trace, own), "the time lines of all ranks"), strict=True)
        if traces[0].profile is None:
            raise ValueError(self._nothing())
        trace = Trace.merge(traces)
        trace.profile = traces[0].profile | {
            "step_seconds": [seconds for steps in ranks for seconds, _ in steps],
            "reduction_seconds": reductions_of([[reductions for _, reductions in steps] for steps in ranks]),
        }
        return trace.write(path)

    def _nothing(self) -> str:
        return f"Profiler: no step was recorded: expected more than {self.skip} training steps"
