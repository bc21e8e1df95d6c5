"""`tf.signal` and `tf.audio`: spectra of windows, sounds in files."""

import numpy as np


def test_spectra_of_windows(tf):
    x = np.random.default_rng(0).standard_normal((2, 100)).astype("float32")
    windows = np.stack([x[:, 8 * i : 8 * i + 20] for i in range(11)], axis=1)
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(20) / 20)
    expected = np.abs(np.fft.rfft(windows * hann, 32))
    np.testing.assert_allclose(tf.abs(tf.signal.stft(x, 20, 8)), expected, atol=1e-4)
    np.testing.assert_allclose(tf.signal.hann_window(5), 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(5) / 4), atol=1e-6)
    np.testing.assert_array_equal(tf.signal.frame(np.arange(5), 3, 2, pad_end=True), [[0, 1, 2], [2, 3, 4], [4, 0, 0]])
    spectrum = tf.signal.fft(tf.cast(tf.complex(real=x, imag=tf.zeros_like(x)), tf.complex64))
    np.testing.assert_allclose(tf.math.real(spectrum), np.fft.fft(x).real, atol=1e-3)
    mel = tf.signal.linear_to_mel_weight_matrix(8, 17, 8000, 80.0, 3800.0)
    assert mel.shape == (17, 8)
    assert not np.any(mel[0])
    assert np.all(mel.max(0) > 0.4)


def test_sounds_are_written_and_read(tf, tmp_path):
    x = np.linspace(-0.9, 0.9, 50, dtype="float32")[:, None]
    found, rate = tf.audio.decode_wav(tf.audio.encode_wav(x, 16000), desired_channels=2, desired_samples=60)
    assert (found.shape, int(rate)) == ((60, 2), 16000)
    np.testing.assert_allclose(found[:50], np.repeat(x, 2, axis=1), atol=1e-4)
    assert not np.any(found[50:])
    (tmp_path / "sound.wav").write_bytes(tf.audio.encode_wav(x, 16000))
    again, _ = tf.audio.decode_wav(tf.io.read_file(str(tmp_path / "sound.wav")), 2, 60)
    np.testing.assert_array_equal(again, found)
