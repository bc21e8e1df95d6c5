"""`tf.summary`: scalars, images, histograms and texts in event files, as TensorBoard reads them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from pydtconv.callbacks.tensorboard import EventFile, check_package, histogram_of
from pydtconv.files.pixels import encoded_png


class Writer:
    """Events in a file of a folder."""

    def __init__(self, logdir: str) -> None:
        check_package()
        self._file = EventFile(Path(logdir))

    @contextmanager
    def as_default(self, step: Any = None) -> Iterator[Writer]:
        """What is written in it goes to this file; step: that of what names none."""
        before = _state.writer, _state.step
        _state.writer, _state.step = self, _state.step if step is None else step
        try:
            yield self
        finally:
            _state.writer, _state.step = before
            self.flush()

    def set_as_default(self, step: Any = None) -> None:
        """What is written from now on goes to this file."""
        _state.writer, _state.step = self, _state.step if step is None else step

    def add(self, tag: str, step: int, **value: Any) -> None:
        """An event of one value."""
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary

        summary = Summary(value=[Summary.Value(tag=tag, **value)])
        self._file.add(Event(wall_time=time.time(), step=step, summary=summary))

    def flush(self) -> None:
        """Nothing: what was added is in the file."""

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    init = flush


class Silent(Writer):
    """Writes nothing."""

    def __init__(self) -> None:
        """Has no file."""

    def add(self, tag: str, step: int, **value: Any) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


class _State:
    """What is written to, and whether."""

    writer: Writer | None = None
    step: Any = None
    records: Any = True


_state = _State()


def _write(name: str, data: Any, step: Any, value: Any) -> bool:
    """Writes value(data) for a tag; False where there is no writer, or nothing is to be recorded.

    Raises ValueError without a step.  Code that is traced asks for values here, and so runs as it is written.
    """
    records = _state.records() if callable(_state.records) else _state.records
    if _state.writer is None or not bool(records):
        return False
    found = _state.step if step is None else step
    if found is None:
        raise ValueError(f"tf.summary: {name}: step: expected a number, got None: see tf.summary.experimental.set_step")
    number, plain = int(np.asarray(found)), np.asarray(data)
    _state.writer.add(name, number, **value(plain))
    return True


def scalar(name: str, data: Any, step: Any = None, description: str | None = None) -> bool:
    """A number."""
    return _write(name, data, step, lambda x: {"simple_value": float(x)})


def image(name: str, data: Any, step: Any = None, max_outputs: int = 3, description: str | None = None) -> bool:
    """The first images of (n, h, w, 1 to 4), of uint8, or of floats from 0 to 1."""
    from tensorboard.compat.proto.summary_pb2 import Summary

    pixels, written = np.asarray(data), False
    if pixels.ndim != 4:
        raise ValueError(f"tf.summary.image: data: expected (n, h, w, channels), got {pixels.shape}")
    if pixels.dtype != np.uint8:
        pixels = (np.clip(pixels, 0, 1) * 255 + 0.5).astype(np.uint8)
    for i, each in enumerate(pixels[:max_outputs]):
        h, w, c = each.shape
        shown = Summary.Image(height=h, width=w, colorspace=c, encoded_image_string=encoded_png(each))
        tag = f"{name}/image/{i}" if len(pixels[:max_outputs]) > 1 else f"{name}/image"
        written = _write(tag, 0, step, lambda _, shown=shown: {"image": shown})
    return written


def histogram(name: str, data: Any, step: Any = None, buckets: int = 30, description: str | None = None) -> bool:
    """How often numbers are in so many ranges."""
    return _write(name, data, step, lambda x: {"histo": histogram_of(x, int(buckets or 30))})


def text(name: str, data: Any, step: Any = None, description: str | None = None) -> bool:
    """A text, which TensorBoard reads as Markdown."""
    from tensorboard.compat.proto.summary_pb2 import SummaryMetadata
    from tensorboard.compat.proto.tensor_pb2 import TensorProto
    from tensorboard.compat.proto.types_pb2 import DT_STRING

    def value(x: np.ndarray) -> dict[str, Any]:
        parts = [each if isinstance(each, bytes) else str(each).encode() for each in x.reshape(-1).tolist()]
        metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="text"))
        return {"tensor": TensorProto(dtype=DT_STRING, string_val=parts), "metadata": metadata}

    return _write(name, np.asarray(data, object), step, value)


def audio(
    name: str,
    data: Any,
    sample_rate: int,
    step: Any = None,
    max_outputs: int = 3,
    encoding: str | None = None,
    description: str | None = None,
) -> bool:
    """The first sounds of (n, samples, channels) from -1 to 1."""
    from tensorboard.compat.proto.summary_pb2 import Summary

    from pydtconv.compat.tensorflow.signals import encode_wav

    written = False
    for i, each in enumerate(np.asarray(data)[:max_outputs]):
        sound = Summary.Audio(
            sample_rate=float(sample_rate), num_channels=each.shape[1], length_frames=len(each),
            encoded_audio_string=bytes(encode_wav(each, sample_rate)), content_type="audio/wav",
        )  # fmt: skip
        written = _write(f"{name}/audio/{i}", 0, step, lambda _, sound=sound: {"audio": sound})
    return written


def create_file_writer(
    logdir: Any, max_queue: Any = None, flush_millis: Any = None, filename_suffix: Any = None, name: Any = None
) -> Writer:
    """A writer into a folder.  Raises ImportError without the package tensorboard."""
    return Writer(str(logdir))


def flush(writer: Any = None, name: str | None = None) -> None:
    """Nothing: what was added is in the file."""


@contextmanager
def record_if(condition: Any) -> Iterator[None]:
    """What is written in it is written only where the condition, or what it gives, is true."""
    before, _state.records = _state.records, condition
    try:
        yield
    finally:
        _state.records = before


def should_record_summaries() -> bool:
    """Whether there is a writer, and something is to be recorded."""
    return _state.writer is not None and bool(_state.records() if callable(_state.records) else _state.records)


def _nothing(*args: Any, **kwargs: Any) -> None:
    """What means nothing here."""


def _set_step(step: Any) -> None:
    _state.step = step


def table() -> dict[str, Any]:
    """The names of `tf.summary`; graphs are not written."""
    own = scalar, image, histogram, text, audio, create_file_writer, flush, record_if, should_record_summaries
    traces = ("graph", "trace_on", "trace_off", "trace_export")
    found: dict[str, Any] = {each.__name__: each for each in own} | dict.fromkeys(traces, _nothing)
    return found | {"SummaryWriter": Writer, "create_noop_writer": Silent}


def experimental() -> dict[str, Any]:
    """The names of `tf.summary.experimental`."""
    return {"get_step": lambda: _state.step, "set_step": _set_step}
