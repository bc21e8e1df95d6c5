"""Names of tensorflow for signals, strings, matrices, parts of images, modules and checkpoints."""

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import GradientTape
from tests.disks import file_size_limit


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


def test_sounds_are_written_and_read(tf):
    x = np.linspace(-0.9, 0.9, 50, dtype="float32")[:, None]
    found, rate = tf.audio.decode_wav(tf.audio.encode_wav(x, 16000), desired_channels=2, desired_samples=60)
    assert (found.shape, int(rate)) == ((60, 2), 16000)
    np.testing.assert_allclose(found[:50], np.repeat(x, 2, axis=1), atol=1e-4)
    assert not np.any(found[50:])


def test_strings(tf):
    names = tf.data.Dataset.from_tensor_slices(["a/cat/1.png", "a/dog/2.png"])
    assert [tf.strings.split(name, "/")[-2] for name in names] == ["cat", "dog"]
    assert tf.strings.unicode_split("xyz", input_encoding="UTF-8").tolist() == ["x", "y", "z"]
    assert tf.strings.reduce_join([["a", "b"], ["c", "d"]], axis=-1).tolist() == ["ab", "cd"]
    assert tf.strings.regex_replace(np.array(["a1", "b22"]), "[0-9]+", "").tolist() == ["a", "b"]
    assert (tf.strings.length("abc"), tf.strings.lower("AB"), tf.strings.substr("hello", 1, 3)) == (3, "ab", "ell")
    assert (float(tf.strings.to_number("3.5")), tf.strings.as_string(3), tf.strings.join(["a", "b"], "-")) == (
        3.5,
        "3",
        "a-b",
    )


def test_matrices(tf):
    x = np.arange(1, 19, dtype="float32").reshape(2, 3, 3)
    np.testing.assert_array_equal(tf.linalg.band_part(x, -1, 0), np.tril(x))
    np.testing.assert_array_equal(tf.linalg.band_part(x, 0, 1), np.triu(x) - np.triu(x, 2))
    np.testing.assert_array_equal(tf.linalg.diag_part(x), [[1, 5, 9], [10, 14, 18]])
    np.testing.assert_array_equal(tf.linalg.diag(x[0]), [np.diag(row) for row in x[0]])
    np.testing.assert_array_equal(tf.linalg.set_diag(x, x[:, 0]) - x, [np.diag(m[0] - np.diag(m)) for m in x])
    np.testing.assert_array_equal(tf.eye(2, batch_shape=[3]), np.stack([np.eye(2)] * 3))
    np.testing.assert_allclose(tf.norm(x, ord=1, axis=-1), x.sum(-1))


def test_loops_and_gradients_of_ones_own(tf):
    count, total = tf.while_loop(lambda i, s: i < 5, lambda i, s: (i + 1, s + i), [tf.constant(0), tf.constant(0)])
    assert (int(count), int(total)) == (5, 10)
    rows = tf.map_fn(fn=tf.reduce_sum, elems=np.ones((3, 4), "float32"), fn_output_signature=tf.float32)
    np.testing.assert_array_equal(rows, [4, 4, 4])

    @tf.custom_gradient
    def reversed_gradient(x):
        return tf.identity(x), lambda dy: -2.0 * dy

    v = tf.Variable(3.0)
    with GradientTape() as tape:
        y = reversed_gradient(v * 2.0) * 5.0
    assert float(tape.gradient(y, v)) == -20


def test_crops_of_images_in_one_size(tf):
    x = np.random.default_rng(0).random((2, 5, 5, 3), "float32")
    found = tf.image.crop_and_resize(x, [[0, 0, 1, 1], [0.25, 0.5, 0.75, 1.0], [0, 0.5, 1, 1.5]], [0, 1, 1], (5, 3))
    np.testing.assert_allclose(found[0], x[0][:, ::2], atol=1e-6)
    np.testing.assert_allclose(found[1][::2], x[1][1:4, 2:], atol=1e-6)
    np.testing.assert_allclose(found[2], np.stack([x[1][:, 2], x[1][:, 4], 0 * x[1][:, 0]], axis=1), atol=1e-6)
    down, right = tf.image.image_gradients(x)
    np.testing.assert_allclose(down[:, :-1], x[:, 1:] - x[:, :-1], atol=1e-6)
    assert not np.any(down[:, -1])
    assert not np.any(right[:, :, -1])
    ramp = np.arange(16, dtype="float32").reshape(1, 4, 4, 1)
    np.testing.assert_array_equal(tf.image.sobel_edges(ramp)[0, 1, 1, 0], [32, 8])
    boxes = [[0, 0, 1, 1], [0, 0, 1, 0.95], [0, 2, 1, 3]]
    np.testing.assert_array_equal(tf.image.non_max_suppression(boxes, [0.8, 0.9, 0.1], 10), [1, 2])
    same = np.random.default_rng(0).random((2, 16, 16, 3), "float32")
    np.testing.assert_allclose(tf.image.ssim(same, same, max_val=1.0), [1, 1], atol=1e-5)


def test_losses_of_sequences_of_the_old_backend(tf):
    p, labels = np.full((1, 2, 3), 1 / 3, "float32"), np.array([[1]])
    found = tf.keras.backend.ctc_batch_cost(labels, p, np.array([[2]]), np.array([[1]]))
    np.testing.assert_allclose(found, [[-np.log(3 / 9)]], rtol=1e-4)  # 1 1, 1 blank, blank 1
    p = np.eye(3, dtype="float32")[None, [0, 0, 2, 1]]
    for greedy in True, False:
        (path,), score = tf.keras.backend.ctc_decode(p, [4], greedy=greedy, beam_width=5)
        assert path.tolist() == [[0, 1, -1, -1]]
        assert score.shape == (1, 1)


def test_modules_and_checkpoints(tf, tmp_path):
    class Own(tf.Module):
        def __init__(self):
            super().__init__()
            self.w, self.parts = tf.Variable([1.0, 2.0]), [tf.Variable(1.0, trainable=False)]
            self.dense = keras.layers.Dense(3)
            self.dense.build((None, 2))

    assert (len(Own().variables), len(Own().trainable_variables), Own().name) == (4, 3, "own")
    model, step = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2)]), tf.Variable(0)
    optimizer = keras.optimizers.Adam()
    optimizer.build(model.trainable_variables)
    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, step=step)
    manager = tf.train.CheckpointManager(checkpoint, tmp_path, max_to_keep=2)
    before = model.get_weights()
    for _ in range(3):
        checkpoint.step.assign_add(1)
        last = manager.save()
    model.set_weights([0 * w for w in before])
    step.assign(9)
    assert tf.train.latest_checkpoint(tmp_path) == last == manager.checkpoints[-1]
    assert len(manager.checkpoints) == 2
    checkpoint.restore(last).expect_partial()
    np.testing.assert_array_equal(model.get_weights()[0], before[0])
    assert int(step) == 3
    with pytest.raises(ValueError, match="step: expected the 1 variables of"):
        tf.train.Checkpoint(step=[]).read(last)
    with file_size_limit(256), pytest.raises(OSError, match="what was there before is untouched"):
        checkpoint.write(last)
    checkpoint.restore(last)


def test_arrays_are_as_little_changed_in_place_as_tensors(tf):
    x = before = tf.constant([1.0, 2.0])
    x += 1.0
    x /= [2.0, 3.0]
    np.testing.assert_array_equal(before, [1, 2])
    np.testing.assert_array_equal(x, [1, 1])
    assert x.dtype == "float32"
    with tf.GradientTape() as tape:
        tape.watch(before)
        y = before * before
    moved = tf.identity(before)
    moved += tape.gradient(y, before)
    np.testing.assert_array_equal(moved, [3, 6])


def test_numbers_of_the_gamma_distribution_have_the_axes_of_alpha_behind(tf):
    call = lambda: tf.random.gamma(shape=[2, 3], alpha=[0.5, 2.0, 4.0])  # noqa: E731
    assert call().shape == tf.function(call)().shape == (2, 3, 3)
    assert tf.random.gamma([4], 2.0).shape == (4,)
    x = tf.random.gamma([4000], [1.0, 9.0], seed=1)
    np.testing.assert_allclose(np.mean(x, axis=0), [1, 9], rtol=0.1)
    assert abs(np.corrcoef(x.T)[0, 1]) < 0.1


def test_extents_may_have_been_calculated(tf):
    n = tf.math.ceil(7 / 2**1)
    assert tf.tile(tf.ones((1, 2)), [n, 1]).shape == tf.reshape(tf.ones(8), [n, 2]).shape == (4, 2)
    assert tf.strings.reduce_join(["a", "b"]).numpy().decode("utf-8") == "ab"
