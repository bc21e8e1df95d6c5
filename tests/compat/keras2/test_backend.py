"""Functions of `keras.backend` of Keras 2.3 beside NumPy."""

import numpy as np
import pytest

import pydtconv as keras
from pydtconv.compat.keras2 import backend

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")
RNG = np.random.default_rng(0)
X, IMAGES, W = (RNG.random(shape).astype("float32") for shape in ((2, 3, 4), (2, 5, 5, 3), (2, 2, 3, 4)))

#: what `keras.backend` of Keras 2.3.1 has
NAMES = [
    "abs", "all", "any", "arange", "argmax", "argmin", "backend", "batch_dot", "batch_flatten", "batch_get_value",
    "batch_normalization", "batch_set_value", "bias_add", "binary_crossentropy", "cast", "cast_to_floatx",
    "categorical_crossentropy", "clear_session", "clip", "concatenate", "constant", "control_dependencies",
    "conv1d", "conv2d", "conv2d_transpose", "conv3d", "conv3d_transpose", "cos", "count_params", "ctc_batch_cost",
    "ctc_decode", "ctc_label_dense_to_sparse", "cumprod", "cumsum", "depthwise_conv2d", "dot", "dropout", "dtype",
    "eager", "elu", "epsilon", "equal", "eval", "exp", "expand_dims", "eye", "flatten", "floatx", "foldl",
    "foldr", "function", "gather", "get_session", "get_uid", "get_value", "get_variable_shape", "gradients",
    "greater", "greater_equal", "hard_sigmoid", "identity", "image_data_format", "image_dim_ordering",
    "in_test_phase", "in_top_k", "in_train_phase", "int_shape", "is_keras_tensor", "is_placeholder", "is_sparse",
    "is_tensor", "is_variable", "l2_normalize", "learning_phase", "less", "less_equal", "local_conv1d",
    "local_conv2d", "log", "logsumexp", "manual_variable_initialization", "map_fn", "max", "maximum", "mean",
    "min", "minimum", "moving_average_update", "name_scope", "ndim", "normalize_batch_in_training",
    "normalize_data_format", "not_equal", "one_hot", "ones", "ones_like", "permute_dimensions", "placeholder",
    "pool2d", "pool3d", "pow", "print_tensor", "prod", "random_binomial", "random_normal",
    "random_normal_variable", "random_uniform", "random_uniform_variable", "relu", "repeat", "repeat_elements",
    "reset_uids", "reshape", "resize_images", "resize_volumes", "reverse", "rnn", "round", "separable_conv1d",
    "separable_conv2d", "set_epsilon", "set_floatx", "set_image_data_format", "set_image_dim_ordering",
    "set_learning_phase", "set_session", "set_value", "shape", "sigmoid", "sign", "sin", "size", "slice",
    "softmax", "softplus", "softsign", "sparse_categorical_crossentropy", "spatial_2d_padding",
    "spatial_3d_padding", "sqrt", "square", "squeeze", "stack", "std", "stop_gradient", "sum", "switch",
    "symbolic", "tanh", "temporal_padding", "tile", "to_dense", "transpose", "truncated_normal", "update",
    "update_add", "update_sub", "v1_variable_initialization", "var", "variable", "zeros", "zeros_like",
]  # fmt: skip


@pytest.fixture
def K(tf):
    from keras import backend as found

    return found


def test_every_function_of_keras_2_is_there(K):
    assert {name for name in NAMES if not hasattr(K, name)} == set()


def same(found, expected):
    np.testing.assert_allclose(np.asarray(found), expected, rtol=2e-5, atol=1e-6)


def test_values(K):
    y = RNG.random((2, 4, 5)).astype("float32")
    same(K.batch_dot(X, y), np.einsum("bij,bjk->bik", X, y))
    same(K.batch_dot(X, y, axes=(2, 1)), np.einsum("bij,bjk->bik", X, y))
    same(K.batch_dot(X, X, axes=2), np.einsum("bij,bkj->bik", X, X))
    same(K.batch_dot(X, X, axes=[1, 1]), np.einsum("bij,bik->bjk", X, X))
    same(K.batch_dot(X[:, 0], X[:, 1], axes=1), (X[:, 0] * X[:, 1]).sum(1, keepdims=True))
    same(K.batch_dot(X[:, :, 0], X, axes=(1, 1)), np.einsum("bi,bij->bj", X[:, :, 0], X))
    same(K.batch_dot(X, X[:, 0], axes=(2, 1)), np.einsum("bij,bj->bi", X, X[:, 0]))
    u = RNG.random((2, 3, 6, 4)).astype("float32")  # capsules: two axes go along
    same(K.batch_dot(X, u, [2, 3]), np.einsum("bij,bikj->bik", X, u))
    same(K.bias_add(IMAGES, np.ones(3, "float32")), IMAGES + 1)
    windows = np.lib.stride_tricks.sliding_window_view(IMAGES, (2, 2), (1, 2))
    same(K.conv2d(IMAGES, W), np.einsum("nhwcij,ijco->nhwo", windows, W))
    same(K.pool2d(IMAGES, (2, 2)), windows.max((-1, -2)))
    same(K.pool2d(IMAGES, (2, 2), pool_mode="avg"), windows.mean((-1, -2)))
    same(K.depthwise_conv2d(IMAGES, W[..., :1]), np.einsum("nhwcij,ijc->nhwc", windows, W[..., 0]))
    same(K.temporal_padding(X, (1, 2)), np.pad(X, ((0, 0), (1, 2), (0, 0))))
    same(K.spatial_2d_padding(IMAGES, ((1, 2), (0, 1))), np.pad(IMAGES, ((0, 0), (1, 2), (0, 1), (0, 0))))
    same(K.repeat(X[:, 0], 3), np.repeat(X[:, :1], 3, 1))
    same(K.slice(X, (0, 1, 1), (2, -1, 2)), X[:, 1:, 1:3])
    same(K.map_fn(lambda x: x * 2, X), X * 2)
    same(K.foldl(lambda a, x: a + x, X), X.sum(0))
    same(K.conv1d(X, W[0, :, [0, 1, 2, 0]].transpose(1, 0, 2), padding="causal")[:, 0], X[:, 0] @ W[0, 1, [0, 1, 2, 0]])
    mean, var = X.mean((0, 1)), X.var((0, 1))
    normed, *found = K.normalize_batch_in_training(X, None, None, [0, 1])
    same(normed, (X - mean) / np.sqrt(var + 1e-3))
    same(K.batch_normalization(X, mean, var, None, None), (X - mean) / np.sqrt(var + 1e-3))
    same(np.squeeze(found[0]), mean)
    assert float(K.l2(X)) == pytest.approx((X**2).sum(), rel=1e-5)


def gradient_of_a_convolution(tf, y, kernel, shape, strides, padding):
    x = tf.zeros(shape)
    with tf.GradientTape() as tape:
        tape.watch(x)
        loss = tf.reduce_sum(keras.ops.conv(x, kernel, strides, padding) * y)
    return tape.gradient(loss, x)


@pytest.mark.parametrize("rank", [2, 3])
def test_transposed_convolutions_are_gradients_of_convolutions(tf, K, rank):
    kernel = RNG.random((*(3, 2, 2)[:rank], 4, 5)).astype("float32")
    function = {2: K.conv2d_transpose, 3: K.conv3d_transpose}[rank]
    for padding, extents in (("same", (6, 5, 6)), ("same", (5, 6, 5)), ("valid", (7, 6, 7)), ("valid", (8, 7, 6))):
        shape = (2, *extents[:rank], 4)
        made = keras.ops.conv(np.zeros(shape, "float32"), kernel, 2, padding).shape
        y = RNG.random(made).astype("float32")
        expected = gradient_of_a_convolution(tf, y, kernel, shape, 2, padding)
        same(function(y, kernel, shape, (2,) * rank, padding), expected)
        turned = np.moveaxis(y, -1, 1), kernel, (2, 4, *shape[1:-1]), (2,) * rank, padding, "channels_first"
        same(function(*turned), np.moveaxis(expected, -1, 1))


def test_convolutions_with_weights_of_each_place(K):
    kernel = RNG.random((2 * 3, 2 * 2 * 3, 4)).astype("float32")
    windows = np.lib.stride_tricks.sliding_window_view(IMAGES, (2, 2), (1, 2))[:, ::3]
    expected = np.zeros((2, 2, 3, 4), "float32")
    for r, c in np.ndindex(2, 3):
        flat = windows[:, r, c].transpose(0, 2, 3, 1).reshape(2, -1)  # rows, columns, channels
        expected[:, r, c] = flat @ kernel[r * 3 + c]
    images = IMAGES[:, :, :4]
    same(K.local_conv2d(images, kernel, (2, 2), (3, 1), (2, 3)), expected)
    first = kernel.reshape(6, 2, 2, 3, 4).transpose(0, 3, 1, 2, 4).reshape(kernel.shape)
    found = K.local_conv2d(images.transpose(0, 3, 1, 2), first, (2, 2), (3, 1), (2, 3), "channels_first")
    same(found, expected.transpose(0, 3, 1, 2))
    lines = RNG.random((2, 2 * 4, 5)).astype("float32")
    expected = np.stack([X[:, i : i + 2].reshape(2, -1) @ lines[i] for i in range(2)], 1)
    same(K.local_conv1d(X, lines, (2,), (1,)), expected)


def test_windows_of_volumes_and_lines(K):
    volume = RNG.random((1, 4, 3, 4, 2)).astype("float32")
    windows = np.lib.stride_tricks.sliding_window_view(volume, (2, 2, 2), (1, 2, 3))
    kernel = RNG.random((2, 2, 2, 2, 3)).astype("float32")
    same(K.conv3d(volume, kernel), np.einsum("ndhwcijk,ijkco->ndhwo", windows, kernel))
    same(K.pool3d(volume, (2, 2, 2)), windows.max((-1, -2, -3)))
    same(K.pool3d(volume, (2, 2, 2), (2, 2, 2), pool_mode="avg"), windows[:, ::2, ::2, ::2].mean((-1, -2, -3)))
    with pytest.raises(ValueError, match="expected 'max' or 'avg', got 'sum'"):
        K.pool2d(IMAGES, (2, 2), pool_mode="sum")
    deep, point = RNG.random((2, 4, 1)).astype("float32"), RNG.random((1, 4, 3)).astype("float32")
    windows = np.lib.stride_tricks.sliding_window_view(X, 2, 1)
    same(K.separable_conv1d(X, deep, point), np.einsum("nwci,icm,co->nwo", windows, deep, point[0]))
    same(K.resize_volumes(volume, 2, 1, 3, "channels_last"), volume.repeat(2, 1).repeat(3, 3))
    same(K.resize_volumes(volume, 2, 1, 3, "channels_first"), volume.repeat(2, 2).repeat(3, 4))


def test_folds_and_sparse_tensors(K):
    same(K.foldr(lambda a, x: a - x, X), X[1] - X[0])
    same(K.foldl(lambda a, x: a - x, X), X[0] - X[1])
    labels = K.ctc_label_dense_to_sparse(np.array([[3, 4, 5], [6, 7, 8]]), np.array([2, 3]))
    assert K.is_sparse(labels)
    assert not K.is_sparse(X)
    same(K.to_dense(labels), [[3, 4, 0], [6, 7, 8]])
    assert K.to_dense(X) is X


def test_labels_end_at_a_blank_or_beyond(K):
    likely = RNG.random((2, 6, 5)).astype("float32")
    padded = np.array([[1, 2, 99, 99], [3, 4, 4, 4]])
    found = K.ctc_batch_cost(padded, likely, np.full((2, 1), 6), np.full((2, 1), 4))
    for i, count in enumerate((2, 1)):
        row = slice(i, i + 1)
        same(found[row], K.ctc_batch_cost(padded[row, :count], likely[row], [[6]], [[count]]))


def test_variables_and_phases(K):
    v = K.variable(np.zeros(3))
    K.batch_set_value([(v, np.arange(3.0))])
    same(K.batch_get_value([v])[0], np.arange(3))
    K.moving_average_update(v, np.ones(3), 0.5)
    same(v, (np.arange(3) + 1) / 2)
    assert K.is_variable(v)
    assert K.get_variable_shape(v) == (3,)
    assert K.random_uniform_variable((4,), 2.0, 3.0).numpy().min() >= 2
    assert K.in_train_phase(1, lambda: 2) == 2
    assert K.in_train_phase(1, 2, training=True) == 1
    assert K.learning_phase() == 0
    K.set_learning_phase(0)
    with pytest.raises(NotImplementedError, match="training=True"):
        K.set_learning_phase(1)
    kept = np.asarray(K.dropout(np.ones(4000, "float32"), 0.25, seed=1))
    assert set(np.unique(kept)) == {0, np.float32(1 / 0.75)}
    assert 0.2 < (kept == 0).mean() < 0.3


def test_orderings(K):
    assert K.image_dim_ordering() == "tf"
    K.set_image_dim_ordering("th")
    assert K.image_data_format() == "channels_first"
    assert K.image_dim_ordering() == "th"
    K.set_image_dim_ordering("tf")
    with pytest.raises(ValueError, match="expected 'tf' or 'th'"):
        K.set_image_dim_ordering("x")


def test_tables_do_not_hide_functions_that_keras_3_gives(K):
    assert not {"sum", "mean", "cast"} & backend.table().keys()


def test_functions_and_gradients_of_symbolic_tensors(tf, K):
    x = tf.keras.Input((5, 5, 3))
    conv = tf.keras.layers.Conv2D(4, 2, activation="relu")(x)
    y = tf.keras.layers.Dense(2, activation="softmax")(tf.keras.layers.Flatten()(tf.keras.layers.Dropout(0.5)(conv)))
    model = tf.keras.Model(x, y)
    features, scores = K.function([model.input, K.learning_phase()], [conv, model.output])([IMAGES, 0])
    same(scores, model.predict(IMAGES, verbose=0))
    assert (K.function([x, K.learning_phase()], [y])([IMAGES, 1])[0] != scores).any()
    same(features, tf.keras.Model(x, conv)(IMAGES))
    loss = K.sum(model.output[:, 1])
    by_input, by_features = K.gradients(loss, [x, conv])
    scaled = by_input / (K.sqrt(K.mean(K.square(by_input))) + 1e-5)
    found = K.function([x], [loss, by_input, by_features, scaled])([IMAGES])
    image, inner = tf.constant(IMAGES), tf.constant(np.asarray(features))
    rest = tf.keras.Model(conv, y)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(image)
        tape.watch(inner)
        whole, part = tf.reduce_sum(model(image)[:, 1]), tf.reduce_sum(rest(inner)[:, 1])
    expected = np.asarray(tape.gradient(whole, image))
    same(found[0], scores[:, 1].sum())
    same(found[1], expected)
    same(found[2], tape.gradient(part, inner))
    same(found[3], expected / (np.sqrt((expected**2).mean()) + 1e-5))
    with pytest.raises(NotImplementedError, match="GradientTape"):
        K.gradients(1.0, x)


def test_sessions_are_accepted_and_do_nothing(tf, K):
    config = tf.ConfigProto(gpu_options=tf.GPUOptions(allow_growth=True), allow_soft_placement=True)
    config.gpu_options.per_process_gpu_memory_fraction = 0.3
    with tf.Session(config=config) as session:
        K.set_session(session)
        session.run(tf.global_variables_initializer())
    K.get_session()
    tf.compat.v1.disable_eager_execution()
    assert tf.compat.v1.keras.layers.Dense is tf.keras.layers.Dense
    tf.logging.set_verbosity(tf.logging.ERROR)
    with pytest.raises(NotImplementedError, match=r"keras\.Input"):
        tf.placeholder("float32", (None, 3))


def test_old_attributes_of_tensors_and_layers(tf):
    x = tf.keras.Input((4, 3))
    layer = tf.keras.layers.Dense(2)
    y = layer(x)
    assert y._keras_shape == (None, 4, 2)
    assert y.get_shape().as_list() == y.shape.as_list() == [None, 4, 2]
    assert layer.W is layer.kernel
    assert layer.b is layer.bias
    with pytest.raises(AttributeError, match="nothing"):
        layer.nothing  # noqa: B018
    model = tf.keras.Model(x, tf.keras.layers.Dense(3)(y))
    assert model.layers[0].input is x  # of an InputLayer, too: a part of a model begins at it
    part = tf.keras.Model(model.layers[0].input, layer.output)
    same(part(X[:, [0, 1, 2, 0], :3]), model.layers[1](X[:, [0, 1, 2, 0], :3]))

    class Own(tf.keras.layers.Layer):
        def build(self, input_shape):
            assert type(input_shape) is tuple
            self.w = self.add_weight("w", (input_shape[-1], 2), initializer="ones")
            super().build(input_shape)

        def call(self, inputs, mask=None):
            return tf.keras.backend.dot(inputs, self.w)

    own = Own()
    assert own(x).shape == (None, 4, 2)
    assert own.w.name == "w"
