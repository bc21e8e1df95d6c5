"""Spectrograms of signals: STFTSpectrogram, by convolutions, and MelSpectrogram, of mel frequencies."""

from __future__ import annotations

from typing import Any

import numpy as np

from pydtconv import config, initializers, ops
from pydtconv.dtypes import FLOATING
from pydtconv.extents import check
from pydtconv.graph.ir.variable import Variable
from pydtconv.initializers.fourier import SCALINGS
from pydtconv.layers.base.arguments import format_of, positive
from pydtconv.layers.base.layer import Layer
from pydtconv.layers.numpy_layer import NumpyLayer
from pydtconv.serialization.budget import claim
from pydtconv.serialization.configurable import builtin
from pydtconv.support.windows import window_of, written

MODES = ("log", "magnitude", "psd", "real", "imag", "angle", "stft")


@builtin
class STFTSpectrogram(Layer):
    """(batch, time, channels) -> (batch, frames, channels * bins), bins = fft_length // 2 + 1, of each channel alone.

    The transform is a convolution whose filters are weights: they can be trained, unless trainable=False.

    mode: "stft" (real and imaginary parts, 2 bins), "real", "imag", "angle", "magnitude", "log" (of the magnitude), or
    "psd" (power, of positive and negative frequencies together).  frame_step: half of frame_length for None.
    fft_length: a power of 2, at least frame_length.  expand_dims: (batch, frames, bins, channels) instead.
    """

    computes_integers = False

    def __init__(
        self,
        mode: str = "log",
        frame_length: int = 256,
        frame_step: int | None = None,
        fft_length: int | None = None,
        window: Any = "hann",
        periodic: bool = False,
        scaling: str | None = "density",
        padding: str = "valid",
        expand_dims: bool = False,
        data_format: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        kind = type(self).__name__
        if mode not in MODES:
            raise ValueError(f"{kind}: mode: expected one of {', '.join(MODES)}, got {mode!r}")
        if scaling not in SCALINGS:
            raise ValueError(f"{kind}: scaling: expected 'density', 'spectrum' or None, got {scaling!r}")
        if padding not in ("valid", "same"):
            raise ValueError(f"{kind}: padding: expected 'valid' or 'same', got {padding!r}")
        self.frame_length = positive(kind, "frame_length", frame_length)
        if frame_step is not None and not 1 <= frame_step <= frame_length:
            raise ValueError(f"{kind}: frame_step: expected 1 to frame_length = {frame_length}, got {frame_step}")
        if fft_length is not None and (fft_length < frame_length or fft_length & (fft_length - 1)):
            raise ValueError(f"{kind}: fft_length: expected a power of 2 from {frame_length} on, got {fft_length}")
        claim(8 * frame_length, f"STFTSpectrogram: a window of {frame_length} numbers")
        window_of(window, frame_length, periodic)  # whether it can be
        self.mode, self.window, self.periodic, self.scaling = mode, window, periodic, scaling
        check(f"{kind}: fft_length", fft_length)
        self.frame_step, self.fft_length, self.padding = frame_step, fft_length, padding
        self.expand_dims, self.data_format = expand_dims, format_of(kind, data_format)
        self._step = frame_step or max(1, self.frame_length // 2)
        self._bins = (fft_length or 1 << (self.frame_length - 1).bit_length()) // 2 + 1
        self.real_kernel: Variable | None = None
        self.imag_kernel: Variable | None = None

    def build(self, input_shape: Any) -> None:
        if len(input_shape) != 3:
            told = f"expected an input of three axes (batch, time, channels), got {tuple(input_shape)}"
            raise ValueError(f"STFTSpectrogram {self.name!r}: {told}")
        shape, options = (self.frame_length, 1, self._bins), (self.window, self.scaling, self.periodic)
        if self.mode != "imag":
            self.real_kernel = self.add_weight(shape, initializers.STFT("real", *options), name="real_kernel")
        if self.mode != "real":
            self.imag_kernel = self.add_weight(shape, initializers.STFT("imag", *options), name="imag_kernel")

    def call(self, inputs: Any) -> Any:
        if inputs.dtype not in FLOATING:
            raise TypeError(f"STFTSpectrogram {self.name!r}: expected signals of floats, got {inputs.dtype}")
        signals = ops.transpose(inputs, (0, 2, 1)) if self.data_format == "channels_last" else inputs
        _, channels, time = signals.shape
        signals = ops.reshape(signals, (-1, time, 1))

        def filtered(kernel: Any) -> Any:
            found = ops.conv(signals, kernel, self._step, self.padding, "channels_last")
            return ops.reshape(found, (-1, channels, *found.shape[1:]))  # (batch, channels, frames, bins)

        parts = [filtered(kernel) for kernel in (self.real_kernel, self.imag_kernel) if kernel is not None]
        return self._arranged(self._of_mode(*parts))

    def _of_mode(self, real: Any, imag: Any = None) -> Any:
        if imag is None or self.mode == "imag":
            return real
        if self.mode == "angle":
            return ops.arctan2(imag, real)
        if self.mode == "stft":
            return ops.concatenate([real, imag], axis=-1)
        power = ops.square(real) + ops.square(imag)
        if self.mode == "psd":
            both = np.full(self._bins, 2, np.float32)
            both[[0, -1]] = 1  # of which there is no negative frequency
            return power * both
        magnitude = ops.sqrt(ops.maximum(power, config.epsilon()))
        return magnitude if self.mode == "magnitude" else ops.log(ops.maximum(magnitude, config.epsilon()))

    def _arranged(self, y: Any) -> Any:
        """(batch, channels, frames, bins) as the data format and expand_dims want it."""
        _, channels, frames, bins = y.shape
        last = self.data_format == "channels_last"
        if self.expand_dims:
            return ops.transpose(y, (0, 2, 3, 1)) if last else y
        if last:
            return ops.reshape(ops.transpose(y, (0, 2, 1, 3)), (-1, frames, channels * bins))
        return ops.reshape(ops.transpose(y, (0, 1, 3, 2)), (-1, channels * bins, frames))

    def get_config(self) -> dict[str, Any]:
        names = ("mode", "frame_length", "frame_step", "fft_length", "periodic", "scaling", "padding", "expand_dims")
        own = {name: getattr(self, name) for name in names}
        return {**super().get_config(), **own, "window": written(self.window), "data_format": self.data_format}


def mel_of(hertz: Any) -> Any:
    """Frequencies in mel, as the Hidden Markov Model Toolkit defines it: 1127 ln(1 + f / 700)."""
    return 1127.0 * np.log1p(np.asarray(hertz, np.float64) / 700.0)


@builtin
class MelSpectrogram(NumpyLayer):
    """(time,) or (batch, time) -> (num_mel_bins, frames) or (batch, num_mel_bins, frames), in decibel.

    Before a model, on arrays or as its first layer: it has no gradient. Windows of sequence_length (fft_length for
    None), sequence_stride apart, are transformed; magnitudes to the power of mag_exp are summed up with triangles
    between min_freq and max_freq (half of sampling_rate for None), evenly on the mel scale. power_to_db: 10 log10(s /
    ref_power) of values of min_power and more, at most top_db below the largest.
    """

    reads_integers = False

    def __init__(
        self,
        fft_length: int = 2048,
        sequence_stride: int = 512,
        sequence_length: int | None = None,
        window: Any = "hann",
        sampling_rate: int = 16000,
        num_mel_bins: int = 128,
        min_freq: float = 20.0,
        max_freq: float | None = None,
        power_to_db: bool = True,
        top_db: float = 80.0,
        mag_exp: float = 2.0,
        min_power: float = 1e-10,
        ref_power: float = 1.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        kind = type(self).__name__
        self.fft_length = positive(kind, "fft_length", fft_length)
        self.sequence_stride = positive(kind, "sequence_stride", sequence_stride)
        self.sequence_length = (
            fft_length if sequence_length is None else positive(kind, "sequence_length", sequence_length)
        )
        if self.sequence_length > self.fft_length:
            raise ValueError(
                f"{kind}: sequence_length: expected at most fft_length = {fft_length}, got {sequence_length}"
            )
        claim(16 * self.sequence_length, f"{kind}: a window of {self.sequence_length} numbers")
        window_of(window, self.sequence_length, periodic=True)  # whether it can be
        self.num_mel_bins = positive(kind, "num_mel_bins", num_mel_bins)
        self.window, self.sampling_rate, self.min_freq = window, sampling_rate, min_freq
        self.max_freq = int(sampling_rate / 2) if max_freq is None else max_freq
        if not 0 <= self.min_freq < self.max_freq:
            raise ValueError(f"{kind}: min_freq: expected 0 to max_freq = {self.max_freq}, got {min_freq}")
        self.power_to_db, self.top_db, self.mag_exp = power_to_db, top_db, mag_exp
        self.min_power, self.ref_power = min_power, ref_power

    def compute_output_shape(self, input_shape: Any) -> tuple[int | None, ...]:
        if len(input_shape) not in (1, 2):
            raise ValueError(
                f"MelSpectrogram {self.name!r}: expected (time,) or (batch, time), got {tuple(input_shape)}"
            )
        *batch, time = input_shape
        if time is None:
            return (*batch, self.num_mel_bins, None)
        padded = time + 2 * (self.fft_length // 2)
        return (*batch, self.num_mel_bins, 1 + (padded - self.fft_length) // self.sequence_stride)

    def forward(self, x: np.ndarray, *weights: np.ndarray) -> np.ndarray:
        real, imag = ops.stft(x, self.sequence_length, self.sequence_stride, self.fft_length, self.window, center=True)
        power = np.hypot(real, imag).astype(np.float64) ** self.mag_exp
        bands = power @ self._triangles()
        if self.power_to_db:
            bands = 10 * np.log10(np.maximum(bands, self.min_power))
            bands -= 10 * np.log10(max(abs(self.ref_power), self.min_power))
            bands = np.maximum(bands, bands.max() - self.top_db)
        return np.swapaxes(bands, -1, -2).astype(x.dtype)

    def _triangles(self) -> np.ndarray:
        """The weights (bins, num_mel_bins); the frequency 0 has none."""
        bins = mel_of(np.linspace(0, self.sampling_rate / 2, self.fft_length // 2 + 1))[:, None]
        edges = np.linspace(mel_of(self.min_freq), mel_of(self.max_freq), self.num_mel_bins + 2)
        low, center, high = edges[:-2], edges[1:-1], edges[2:]
        weights = np.maximum(0, np.minimum((bins - low) / (center - low), (high - bins) / (high - center)))
        weights[0] = 0
        return np.asarray(weights)

    def get_config(self) -> dict[str, Any]:
        names = (
            "fft_length sequence_stride sequence_length sampling_rate num_mel_bins min_freq max_freq power_to_db top_db"
        )
        own = {name: getattr(self, name) for name in [*names.split(), "mag_exp", "min_power", "ref_power"]}
        return {**super().get_config(), **own, "window": written(self.window)}
