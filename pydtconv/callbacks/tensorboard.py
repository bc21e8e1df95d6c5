"""Results as TensorBoard shows them."""

from __future__ import annotations

import io
import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pydtconv.callbacks.callback import Callback, Logs
from pydtconv.files.growing_file import GrowingFile
from pydtconv.files.whole_file import before_training, check_writable, training_goes_on


class TensorBoard(Callback):
    """Writes scalars to log_dir/train and log_dir/validation, by the package `tensorboard`.

    histogram_freq: epochs between histograms of the weights, 0 for none.  update_freq: "epoch", "batch", or a number of
    batches, for the results of training.  write_steps_per_second: also the speed of each epoch.
    A folder that cannot be written to is an OSError before training begins.  Where the disk is full later, a warning
    says so, training goes on, and events are written as soon as there is room.
    write_graph, write_images, profile_batch, embeddings_freq and embeddings_metadata of Keras's are not there: only
    their values for "nothing" are accepted (write_graph also True, its default, which writes no graph).
    """

    state_names = ("_step", "_test_step")

    main_only = True

    def __init__(
        self,
        log_dir: str | Path = "logs",
        histogram_freq: int = 0,
        write_graph: bool = True,
        write_images: bool = False,
        write_steps_per_second: bool = False,
        update_freq: str | int = "epoch",
        profile_batch: int | tuple[int, int] = 0,
        embeddings_freq: int = 0,
        embeddings_metadata: Any = None,
    ) -> None:
        super().__init__()
        refused = {
            "write_images": write_images,
            "profile_batch": profile_batch,
            "embeddings_freq": embeddings_freq,
            "embeddings_metadata": embeddings_metadata,
        }
        for name, value in refused.items():
            if value:
                raise ValueError(f"TensorBoard: {name} is not supported: expected it to be left out, got {value!r}")
        if update_freq not in ("epoch", "batch") and not (isinstance(update_freq, int) and update_freq >= 1):
            raise ValueError(f"TensorBoard: expected update_freq 'epoch', 'batch' or a number, got {update_freq!r}")
        check_package()
        self.log_dir = Path(log_dir)
        self.histogram_freq = histogram_freq
        self.write_graph = write_graph
        self.write_steps_per_second = write_steps_per_second
        self.update_freq = 1 if update_freq == "batch" else update_freq
        self._writers: dict[str, EventFile] = {}
        self._step = 0
        self._test_step = 0
        self._fitting = False
        self._epoch_start: tuple[float, int] = (0.0, 0)

    def on_train_begin(self, logs: Logs | None = None) -> None:
        with before_training("TensorBoard"):
            check_writable(self.log_dir / "train" / "events")
        self._step = 0
        self._fitting = True

    def set_state(self, state: Mapping[str, Any]) -> None:
        super().set_state(state)
        self._epoch_start = (time.perf_counter(), self._step)

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        self._epoch_start = (time.perf_counter(), self._step)

    def on_train_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        self._step += 1
        if isinstance(self.update_freq, int) and self._step % self.update_freq == 0:
            self._scalars("train", {f"batch_{name}": value for name, value in (logs or {}).items()}, self._step)

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        logs = logs or {}
        train = {f"epoch_{name}": value for name, value in logs.items() if not name.startswith("val_")}
        rate = getattr(self.model, "optimizer", None)
        if rate is not None:
            train["epoch_learning_rate"] = float(rate.learning_rate)
        if self.write_steps_per_second:
            start, step = self._epoch_start
            train["epoch_steps_per_second"] = (self._step - step) / max(time.perf_counter() - start, 1e-9)
        self._scalars("train", train, epoch)
        validation = {f"epoch_{name[4:]}": value for name, value in logs.items() if name.startswith("val_")}
        if validation:
            self._scalars("validation", validation, epoch)
        if self.histogram_freq and epoch % self.histogram_freq == 0:
            self._histograms(epoch)

    @property
    def reads_state(self) -> bool:  # type: ignore[override]
        return bool(self.histogram_freq)  # of weights

    def on_test_end(self, logs: Logs | None = None) -> None:
        if not self._fitting:
            self._scalars("validation", {f"evaluation_{k}": v for k, v in (logs or {}).items()}, self._test_step)
            self._test_step += 1
            self._close()

    def on_train_end(self, logs: Logs | None = None) -> None:
        self._fitting = False
        self._close()

    def release(self) -> None:
        """Closes the files of a run that an exception has ended."""
        self._fitting = False
        self._close()

    def _writer(self, name: str) -> EventFile:
        if name not in self._writers:
            self._writers[name] = EventFile(self.log_dir / name)
        return self._writers[name]

    def _scalars(self, name: str, values: dict[str, Any], step: int) -> None:
        from tensorboard.compat.proto.summary_pb2 import Summary

        parts = [Summary.Value(tag=tag, simple_value=float(np.mean(value))) for tag, value in values.items()]
        self._add(name, Summary(value=parts), step)

    def _histograms(self, epoch: int) -> None:
        from tensorboard.compat.proto.summary_pb2 import Summary

        parts = [
            Summary.Value(tag=f"{variable.path}/histogram", histo=histogram_of(variable.value))
            for variable in self.model.weights
        ]
        self._add("train", Summary(value=parts), epoch)

    def _add(self, name: str, summary: Any, step: int) -> None:
        from tensorboard.compat.proto.event_pb2 import Event

        with training_goes_on(f"TensorBoard, step {step}"):
            self._writer(name).add(Event(wall_time=time.time(), step=step, summary=summary))

    def _close(self) -> None:
        for writer in self._writers.values():
            writer.close()
        self._writers = {}


def histogram_of(values: Any, buckets: int = 30) -> Any:
    """The finite ones of numbers, as TensorBoard's HistogramProto."""
    from tensorboard.compat.proto.summary_pb2 import HistogramProto

    x = np.asarray(values, np.float64).ravel()
    x = x[np.isfinite(x)]
    counts, edges = np.histogram(x, bins=buckets)
    return HistogramProto(
        min=x.min() if x.size else 0,
        max=x.max() if x.size else 0,
        num=x.size,
        sum=x.sum(),
        sum_squares=np.square(x).sum(),
        bucket_limit=edges[1:].tolist(),
        bucket=counts.tolist(),
    )


class EventFile:
    """A file of events: a record for each, with its checksums."""

    def __init__(self, folder: Path) -> None:
        from tensorboard.compat.proto.event_pb2 import Event

        EventFile.count += 1
        name = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}.{EventFile.count}"
        self._file = GrowingFile(folder / name)
        self._file.pending = _record(Event(wall_time=time.time(), file_version="brain.Event:2"))

    count = 0

    def add(self, event: Any) -> None:
        self._file.add(_record(event))

    def close(self) -> None:
        self._file.close()


def _record(event: Any) -> bytes:
    from tensorboard.summary.writer.record_writer import RecordWriter

    buffer = io.BytesIO()
    RecordWriter(buffer).write(event.SerializeToString())
    return buffer.getvalue()


def check_package() -> None:
    try:
        import tensorboard.summary.writer.record_writer  # noqa: F401
    except ImportError as error:
        raise ImportError("TensorBoard needs the package tensorboard: pip install 'pydtconv[tensorboard]'") from error
