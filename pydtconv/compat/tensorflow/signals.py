"""`tf.signal` and `tf.audio`, on arrays: what pipelines of sounds use."""

from __future__ import annotations

import io
import wave
from collections.abc import Callable
from typing import Any

import numpy as np

from pydtconv.compat.tensorflow.arrays import array, bytes_of, name_of


def hann_window(window_length: int, periodic: bool = True, dtype: Any = "float32", name: str | None = None) -> Any:
    """A half wave of cosine, raised: 0 at its ends."""
    return _cosines(window_length, periodic, dtype, 0.5)


def hamming_window(window_length: int, periodic: bool = True, dtype: Any = "float32", name: str | None = None) -> Any:
    """As `hann_window`, of 0.08 at its ends."""
    return _cosines(window_length, periodic, dtype, 0.54)


def _cosines(length: int, periodic: bool, dtype: Any, mean: float) -> Any:
    turns = np.arange(length) / max(length - 1 + (periodic and length % 2 == 0), 1)  # an odd length is never periodic
    return array(np.ones(1) if length == 1 else mean - (1 - mean) * np.cos(2 * np.pi * turns), name_of(dtype))


def frame(
    signal: Any,
    frame_length: int,
    frame_step: int,
    pad_end: bool = False,
    pad_value: float = 0,
    axis: int = -1,
    name: str | None = None,
) -> Any:
    """The windows (..., windows, frame_length, ...) of a signal along an axis."""
    x, length, step = np.moveaxis(np.asarray(signal), axis, -1), int(frame_length), int(frame_step)
    count = -(-x.shape[-1] // step) if pad_end else max(0, 1 + (x.shape[-1] - length) // step)
    missing = max(0, (count - 1) * step + length - x.shape[-1]) if pad_end else 0
    x = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, missing)], constant_values=pad_value)
    found = x[..., np.arange(count)[:, None] * step + np.arange(length)]
    place = axis % np.ndim(signal)
    return array(np.moveaxis(found, (-2, -1), (place, place + 1)))


def stft(
    signals: Any,
    frame_length: int,
    frame_step: int,
    fft_length: int | None = None,
    window_fn: Callable[..., Any] | None = hann_window,
    pad_end: bool = False,
    name: str | None = None,
) -> Any:
    """Complex spectra (..., windows, fft_length // 2 + 1); fft_length: the power of 2 that holds a window."""
    frames = np.asarray(frame(signals, frame_length, frame_step, pad_end))
    if window_fn is not None:
        frames = frames * np.asarray(window_fn(frame_length))
    size = 1 << (int(frame_length) - 1).bit_length() if fft_length is None else int(fft_length)
    return array(np.fft.rfft(frames, size).astype("complex64"))


def rfft(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Any:
    """The spectrum of real numbers along the last axis."""
    size = None if fft_length is None else int(np.reshape(fft_length, -1)[-1])
    return array(np.fft.rfft(np.asarray(input_tensor), size).astype("complex64"))


def irfft(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Any:
    """The real numbers of which these are the spectra."""
    size = None if fft_length is None else int(np.reshape(fft_length, -1)[-1])
    return array(np.fft.irfft(np.asarray(input_tensor), size), "float32")


def _transformed(transform: Any) -> Callable[..., Any]:
    def of(input: Any, name: str | None = None) -> Any:
        return array(transform(np.asarray(input)).astype("complex64"))

    return of


def linear_to_mel_weight_matrix(
    num_mel_bins: int = 20,
    num_spectrogram_bins: int = 129,
    sample_rate: float = 8000,
    lower_edge_hertz: float = 125.0,
    upper_edge_hertz: float = 3800.0,
    dtype: Any = "float32",
    name: str | None = None,
) -> Any:
    """Triangles (bins of a spectrum, bins of mel) that are evenly spaced in mel."""

    def mel(hertz: Any) -> Any:
        return 1127.0 * np.log1p(np.asarray(hertz) / 700.0)

    bins = mel(np.linspace(0, sample_rate / 2, int(num_spectrogram_bins))[1:])[:, None]  # without that of 0
    edges = np.linspace(mel(lower_edge_hertz), mel(upper_edge_hertz), int(num_mel_bins) + 2)
    lower, middle, upper = edges[:-2], edges[1:-1], edges[2:]
    rows = np.maximum(0, np.minimum((bins - lower) / (middle - lower), (upper - bins) / (upper - middle)))
    return array(np.pad(rows, ((1, 0), (0, 0))), name_of(dtype))


def decode_wav(
    contents: Any, desired_channels: int = -1, desired_samples: int = -1, name: str | None = None
) -> tuple[Any, Any]:
    """The samples (n, channels) from -1 to 1 of a WAV file of 16 bits, and their rate."""
    with wave.open(io.BytesIO(bytes_of(contents))) as file:
        if file.getsampwidth() != 2:
            raise ValueError(f"decode_wav: expected samples of 16 bits, got {8 * file.getsampwidth()}")
        rate, channels = file.getframerate(), file.getnchannels()
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2").reshape(-1, channels) / np.float32(32768)
    wanted = samples.shape[1] if desired_channels == -1 else int(desired_channels)
    count = len(samples) if desired_samples == -1 else int(desired_samples)
    samples = samples[:count, np.minimum(np.arange(wanted), channels - 1)]
    return array(np.pad(samples, ((0, count - len(samples)), (0, 0)))), array(rate)


def encode_wav(audio: Any, sample_rate: Any, name: str | None = None) -> bytes:
    """A WAV file of 16 bits of samples (n, channels) from -1 to 1."""
    data, samples = io.BytesIO(), np.asarray(audio)
    with wave.open(data, "wb") as file:
        file.setnchannels(samples.shape[1])
        file.setsampwidth(2)
        file.setframerate(int(sample_rate))
        file.writeframes(np.clip(np.rint(samples * 32767), -32768, 32767).astype("<i2").tobytes())
    return data.getvalue()


def signal_table() -> dict[str, Any]:
    """The names of `tf.signal`."""
    own = hann_window, hamming_window, frame, stft, rfft, irfft, linear_to_mel_weight_matrix
    transforms = {
        "fft": np.fft.fft,
        "ifft": np.fft.ifft,
        "fft2d": np.fft.fft2,
        "ifft2d": np.fft.ifft2,
        "rfft2d": np.fft.rfft2,
    }
    return {each.__name__: each for each in own} | {name: _transformed(each) for name, each in transforms.items()}


def audio_table() -> dict[str, Any]:
    """The names of `tf.audio`."""
    return {"decode_wav": decode_wav, "encode_wav": encode_wav}
