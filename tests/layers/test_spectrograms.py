"""Spectrograms against real Keras: every mode, layouts, training, files, and arguments that are wrong."""

import numpy as np
import pytest

import pydtconv
from pydtconv import initializers, layers
from tests.real_keras import import_keras

# of Keras on torch, with NumPy 2
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
RANDOM = np.random.default_rng(0)
SIGNALS = RANDOM.normal(size=(2, 90, 3)).astype("float32")
MODES = ["log", "magnitude", "psd", "real", "imag", "angle", "stft"]
CASES = [
    *({"mode": mode} for mode in MODES),
    {"mode": "magnitude", "expand_dims": True, "frame_step": 5, "padding": "same", "scaling": "spectrum"},
    {"mode": "stft", "data_format": "channels_first", "window": "hamming", "periodic": True},
    {"mode": "psd", "data_format": "channels_first", "expand_dims": True, "window": None, "fft_length": 64},
    {"mode": "real", "window": np.linspace(0.1, 1, 20), "scaling": None},
]


def values(library, layer, x):
    return np.asarray(library.ops.convert_to_numpy(layer(x)))


@pytest.mark.parametrize("options", CASES, ids=range(len(CASES)))
def test_stft_spectrogram_is_that_of_keras(options):
    pytest.importorskip("scipy", reason="Keras takes its windows from SciPy")
    keras = import_keras()
    x = SIGNALS.transpose(0, 2, 1) if options.get("data_format") == "channels_first" else SIGNALS
    theirs = keras.layers.STFTSpectrogram(frame_length=20, trainable=False, **options)
    ours = layers.STFTSpectrogram(frame_length=20, trainable=False, **options)
    want, got = values(keras, theirs, x), values(pydtconv, ours, x)
    assert got.shape == want.shape
    if options["mode"] == "angle":  # of numbers near the negative axis it jumps by a turn
        got, want = np.exp(1j * got), np.exp(1j * want)
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=2e-5)
    model = pydtconv.Sequential([pydtconv.Input(x.shape[1:]), ours])
    assert model.output_shape[1:] == want.shape[1:]
    assert layers.STFTSpectrogram.from_config(ours.get_config()).get_config() == ours.get_config()


def test_its_filters_are_trained():
    """One step of SGD, from the same filters."""
    pytest.importorskip("scipy", reason="Keras takes its windows from SciPy")
    found = []
    for library in (import_keras(), pydtconv):
        spectrogram = library.layers.STFTSpectrogram("magnitude", frame_length=16)
        model = library.Sequential([library.Input((90, 3)), spectrogram])
        model.compile(library.optimizers.SGD(0.5), "mse")
        y = np.zeros((2, *model.output_shape[1:]), "float32")
        losses = [float(model.train_on_batch(SIGNALS, y)) for _ in range(3)]
        found.append((losses, [np.array(w) for w in model.get_weights()]))
    np.testing.assert_allclose(found[1][0], found[0][0], rtol=1e-4)
    for ours, theirs in zip(found[1][1], found[0][1], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "shape"),
    [
        ({"fft_length": 64, "sequence_stride": 16, "num_mel_bins": 10}, (2, 200)),
        (
            {"fft_length": 64, "sequence_length": 50, "sequence_stride": 7, "num_mel_bins": 8, "window": "hamming"},
            (201,),
        ),
        ({"fft_length": 32, "sequence_stride": 10, "num_mel_bins": 5, "power_to_db": False, "mag_exp": 1.0}, (3, 99)),
        ({"fft_length": 64, "num_mel_bins": 12, "min_freq": 300, "max_freq": 3000, "sampling_rate": 8000}, (2, 1200)),
        ({"fft_length": 64, "num_mel_bins": 6, "top_db": 5.0, "ref_power": 0.5, "min_power": 1e-3}, (1, 600)),
    ],
)
def test_mel_spectrogram_is_that_of_keras(options, shape):
    keras = import_keras()
    x = RANDOM.normal(size=shape).astype("float32")
    want = values(keras, keras.layers.MelSpectrogram(**options), x)
    ours = layers.MelSpectrogram(**options)
    np.testing.assert_allclose(values(pydtconv, ours, x), want, rtol=1e-3, atol=1e-3)
    assert ours.compute_output_shape(shape) == want.shape
    if len(shape) == 2:
        model = pydtconv.Sequential([pydtconv.Input(shape[1:]), ours])
        np.testing.assert_allclose(model.predict(x, verbose=0), want, rtol=1e-3, atol=1e-3)
    assert layers.MelSpectrogram.from_config(ours.get_config()).get_config() == ours.get_config()


@pytest.mark.parametrize("side", ["real", "imag"])
def test_initializer_is_that_of_keras(side):
    pytest.importorskip("scipy", reason="Keras takes its windows from SciPy")
    keras = import_keras()
    for options in ({}, {"window": "hamming", "scaling": "spectrum", "periodic": True}, {"window": None}):
        want = keras.ops.convert_to_numpy(keras.initializers.STFT(side, **options)((20, 1, 17)))
        np.testing.assert_allclose(initializers.STFT(side, **options)((20, 1, 17)), want, atol=1e-5)
    for name in ("stft", "STFT", "STFTInitializer"):
        assert isinstance(initializers.get(name), initializers.STFT)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: layers.STFTSpectrogram("loud"), "mode: expected one of log, magnitude, .* got 'loud'"),
        (
            lambda: layers.STFTSpectrogram(frame_length=8, frame_step=9),
            "frame_step: expected 1 to .* = 8, got 9",
        ),
        (
            lambda: layers.STFTSpectrogram(frame_length=8, fft_length=12),
            "a power of 2 from 8 on, got 12",
        ),
        (lambda: layers.STFTSpectrogram(window="unknowable"), "window"),
        (lambda: layers.STFTSpectrogram(scaling="x"), "scaling: expected 'density', 'spectrum' or None, got 'x'"),
        (lambda: layers.STFTSpectrogram()(np.ones((2, 300), "float32")), r"expected an input of three axes"),
        (
            lambda: layers.STFTSpectrogram(frame_length=4, window=[1, 2]),
            "expected 4 values",
        ),
        (
            lambda: layers.MelSpectrogram(fft_length=8, sequence_length=9),
            "expected at most fft_length = 8",
        ),
        (
            lambda: layers.MelSpectrogram(min_freq=5000, max_freq=200),
            "expected 0 to max_freq = 200, got 5000",
        ),
        (lambda: layers.MelSpectrogram()(np.ones((2, 3, 4), "float32")), r"expected \(time,\) or \(batch, time\)"),
        (lambda: initializers.STFT("left"), "side: expected 'real' or 'imag', got 'left'"),
        (lambda: initializers.STFT()((4, 2, 3)), r"expected a shape \(frame_length, 1, fft_length // 2 \+ 1\)"),
    ],
)
def test_wrong_arguments(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_signals_are_floats():
    with pytest.raises(TypeError, match="STFTSpectrogram 'signals': expected signals of floats, got int64"):
        layers.STFTSpectrogram(name="signals")(np.ones((2, 300, 1), "int64"))
