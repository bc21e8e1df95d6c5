# ruff: noqa: E501
"""Calls of functions of tensorflow, as text, with the inputs that they read; `tensorflow_values.json` has the results.

Each line of CALLS is an expression of `tf`, `np` and the names of `inputs()`.  Where TensorFlow is installed,
`TF_ENABLE_ONEDNN_OPTS=0 python -m tests.compat.tensorflow_calls` writes what it gives for them.
"""

import json
from pathlib import Path

import numpy as np

VALUES = Path(__file__).parent / "tensorflow_values.json"


def inputs():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3, 4)).astype("float32")
    square = rng.normal(size=(3, 3)).astype("float32")
    return {
        "np": np,
        "x": x,
        "y": rng.normal(size=(3, 4)).astype("float32"),
        "p": rng.uniform(0.1, 3, (3, 4)).astype("float32"),
        "w": rng.normal(size=(3,)).astype("float32"),
        "m": square,
        "spd": square @ square.T + np.eye(3, dtype="float32"),
        "i": np.array([[5, -3, 0, 2], [1, 7, -4, 2], [2, 2, 2, -9]], "int32"),
        "ids": np.array([0, 0, 2], "int32"),
        "image": rng.uniform(0, 1, (1, 5, 4, 2)).astype("float32"),
        "rgb": rng.uniform(0, 1, (4, 5, 3)).astype("float32"),
        "line": rng.normal(size=(1, 7, 2)).astype("float32"),
        "volume": rng.normal(size=(1, 4, 3, 4, 1)).astype("float32"),
        "f1": rng.normal(size=(3, 2, 2)).astype("float32"),
        "f2": rng.normal(size=(3, 2, 2, 3)).astype("float32"),
        "f2t": rng.normal(size=(3, 2, 3, 2)).astype("float32"),
        "f3": rng.normal(size=(2, 2, 2, 1, 2)).astype("float32"),
        "depth": rng.normal(size=(3, 2, 2, 1)).astype("float32"),
        "flat": rng.normal(size=(2, 3, 2)).astype("float32"),
        "point": rng.normal(size=(1, 1, 2, 3)).astype("float32"),
        "logits": rng.normal(size=(5, 2, 4)).astype("float32"),
        "boxes": np.array([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 0.5, 1, 1.5], [0, 2, 1, 3]], "float32"),
    }


CALLS = {
    "math": """
tf.math.lgamma(p)
tf.math.lgamma([-0.5, -2.3, 0.1, 1.0, 2.0, 30.0, 1e6])
tf.math.digamma(p)
tf.math.digamma([-0.5, -2.3, 0.1, 1.0, 30.0, 1e6])
tf.math.lbeta(p)
tf.math.xlogy([0.0, 2.0], [0.0, 3.0])
tf.math.xlog1py([0.0, 2.0], [-1.0, 3.0])
tf.math.xdivy([0.0, 2.0], [0.0, 3.0])
tf.math.multiply_no_nan([float('inf'), 2.0], [0.0, 3.0])
tf.math.reciprocal_no_nan([0.0, 2.0])
tf.math.polyval([1.0, -2.0, 3.0], x)
tf.math.zero_fraction(i)
tf.math.reduce_euclidean_norm(x, axis=1, keepdims=True)
tf.math.cumulative_logsumexp(x, axis=1, exclusive=False, reverse=True)
tf.math.cumulative_logsumexp(x)
tf.math.cumulative_logsumexp(x, axis=1, exclusive=True)
tf.math.invert_permutation([2, 0, 1])
tf.math.is_non_decreasing([1, 1, 2])
tf.math.is_strictly_increasing([1, 1, 2])
tf.math.scalar_mul(3.0, x)
tf.math.accumulate_n([x, y, x])
tf.math.imag(tf.math.conj(np.array([1 + 2j], 'complex64')))
tf.math.conj(x)
tf.math.erfc(x)
tf.math.erfinv([0.1, -0.7])
tf.math.log_sigmoid(x)
tf.math.softsign(x)
tf.math.rint([0.5, 1.5, -2.5])
tf.math.bessel_i0(x)
tf.math.bessel_i0e(x)
tf.math.nextafter(x1=np.float32([1.0]), x2=np.float32([2.0]))
tf.math.atan2(y=y, x=x)
tf.math.acosh(p + 1)
tf.math.asinh(x)
tf.math.atanh(x / 10)
tf.math.tan(x)
tf.math.sinh(x)
tf.math.cosh(x)
tf.math.top_k(x, 2)
tf.math.top_k(i)[1]
tf.math.segment_sum(x, ids)
tf.math.segment_mean(x, ids)
tf.math.segment_prod(x, ids)
tf.math.segment_max(x, ids)
tf.math.segment_min(x, ids)
tf.math.segment_mean(i, ids)
tf.math.unsorted_segment_sum(x, [1, -1, 1], 3)
tf.math.unsorted_segment_mean(x, [1, -1, 1], 3)
tf.math.unsorted_segment_prod(x, [1, -1, 1], 3)
tf.math.unsorted_segment_max(x, [1, -1, 1], 3)
tf.math.unsorted_segment_min(i, [1, -1, 1], 3)
tf.math.unsorted_segment_sqrt_n(x, [1, -1, 1], 3)
tf.math.unsorted_segment_sum(x, [[0, 1, 0, 1]] * 3, 2)
tf.math.log_softmax(x, axis=0)
tf.math.softmax(x)
tf.math.confusion_matrix([0, 1, 1], [0, 1, 0])
tf.math.approx_max_k(x, 2)[0]
tf.math.reduce_variance(x, axis=0)
tf.math.count_nonzero(i)
tf.math.count_nonzero([[0, 1], [2, 3]], axis=1, dtype='int32')
tf.math.bincount([1, 1, 3])
tf.math.bincount([1, 1, 3], weights=[0.5, 2.0, 1.0], minlength=6)
tf.math.bincount([[1, 1, 3], [0, 0, 5]], axis=-1, maxlength=4, binary_output=True)
tf.math.in_top_k(targets=[0, 1, 2], predictions=x, k=2)
""",
    "tf": """
tf.truncatediv([-7, 7], [2, -2])
tf.truncatemod([-7, 7], [2, -2])
tf.realdiv(x, p)
tf.bitcast([1.0, -2.0], tf.int32)
tf.bitcast(np.array([[1, 2, 3, 4]], 'uint8'), tf.uint32)
tf.unravel_index([22, 3], [4, 6])
tf.dynamic_partition(x, [1, 0, 1], 2)
tf.dynamic_stitch([[0, 2], [[1]]], [x[:2], [[x[2]]]])
tf.dynamic_stitch([[0, 1], [1, 3]], [[1.0, 2.0], [3.0, 4.0]])
tf.histogram_fixed_width([-1.0, 0.0, 1.5, 2.0, 5.0, 15.0], [0.0, 5.0], nbins=5)
tf.histogram_fixed_width_bins([-1.0, 0.0, 1.5, 2.0, 5.0, 15.0], [0.0, 5.0], nbins=5)
tf.unique_with_counts([1, 1, 2, 4, 4, 4, 7, 8, 8])
tf.edit_distance(tf.sparse.from_dense([[1, 2, 3], [4, 0, 0]]), tf.sparse.from_dense([[1, 3, 0], [5, 6, 0]]))
tf.edit_distance(tf.sparse.from_dense([[1, 2, 3]]), tf.sparse.from_dense([[1, 3, 0]]), normalize=False)
tf.sparse.to_dense(tf.SparseTensor(indices=[[0, 0], [1, 2]], values=[1, 2], dense_shape=[3, 4]))
tf.scan(lambda a, e: a * 0.5 + e, x)
tf.scan(lambda a, e: a + e, x, initializer=w[0] * np.ones(4, 'float32'), reverse=True)
tf.foldl(lambda a, e: a * 2.0 + e, x)
tf.foldr(lambda a, e: a * 2.0 + e, x)
tf.case([(tf.constant(False), lambda: tf.constant(1)), (tf.constant(True), lambda: tf.constant(2))])
tf.switch_case(tf.constant(1), [lambda: tf.constant(4), lambda: tf.constant(5)])
tf.reverse_sequence(x, [1, 3, 4], seq_axis=1, batch_axis=0)
tf.reverse_sequence(x, [1, 3, 2, 3], seq_axis=0, batch_axis=1)
tf.space_to_batch(image[:, :4], [2, 2], [[0, 0], [1, 1]])
tf.batch_to_space(np.concatenate([image] * 4), [2, 2], [[1, 0], [0, 2]])
tf.tensor_scatter_nd_max(x, [[0], [2]], y[:2])
tf.tensor_scatter_nd_min(x, [[0, 1], [2, 2]], [-9.0, 9.0])
tf.strided_slice(x, [0, 1], [3, 4], [2, 1])
tf.shape_n([x, m])
tf.ensure_shape(x, [None, 4])
tf.broadcast_static_shape(tf.TensorShape([3, 1]), tf.TensorShape([4])).as_list()
tf.broadcast_dynamic_shape([3, 1], [4])
tf.norm(m, ord=1, axis=[0, 1])
tf.norm(m, ord=2, axis=[0, 1])
tf.norm(m, ord=np.inf, axis=(0, 1), keepdims=True)
tf.norm(m, ord=3, axis=1)
tf.norm(m, ord=1)
tf.norm(m)
tf.matrix_square_root(spd)
tf.cumsum(x, axis=1, exclusive=True)
tf.math.cumprod(x, axis=1, exclusive=True, reverse=True)
tf.size(x)
tf.linspace(start=0.0, stop=1.0, num=3)
tf.slice(input_=x, begin=[1, 0], size=[2, 3])
tf.searchsorted(sorted_sequence=[1.0, 2.0, 3.0], values=[0.5, 2.0])
tf.get_static_value(tf.constant([1, 2]))
tf.nest.is_nested([1]), tf.nest.is_nested(1)
tf.bitwise.bitwise_and([6, 5], [3, 4]), tf.bitwise.left_shift([1, 2], [3, 1]), tf.bitwise.invert([1, 2])
""",
    "nn": """
tf.nn.conv1d(line, f1, stride=2, padding='SAME')
tf.nn.conv2d(image, f2, strides=[1, 2, 1, 1], padding='VALID')
tf.nn.conv2d(image, f2, 1, [[0, 0], [1, 0], [2, 1], [0, 0]])
tf.nn.conv3d(volume, f3, [1, 1, 1, 1, 1], 'SAME')
tf.nn.convolution(image, f2, padding='SAME', dilations=2)
tf.nn.atrous_conv2d(image, f2, 2, 'SAME')
tf.nn.depthwise_conv2d(image, depth, [1, 1, 1, 1], 'SAME')
tf.nn.separable_conv2d(image, depth, point, [1, 1, 1, 1], 'VALID')
tf.nn.conv2d_transpose(image, f2t, [1, 10, 8, 3], 2, 'SAME')
tf.nn.conv2d_transpose(image, f2t, output_shape=[1, 9, 7, 3], strides=[1, 2, 2, 1])
tf.nn.conv2d_transpose(image, f2t, [1, 12, 9, 3], 2, 'VALID')
tf.nn.conv1d_transpose(line, f1, [1, 14, 2], 2)
tf.nn.conv3d_transpose(volume, f3[..., ::-1, :].transpose(0, 1, 2, 4, 3), [1, 8, 6, 8, 2], 2)
tf.nn.atrous_conv2d_transpose(image, f2t, [1, 5, 4, 3], 2, 'SAME')
tf.nn.max_pool1d(line, 2, 2, 'SAME')
tf.nn.avg_pool3d(volume, 2, 1, 'VALID')
tf.nn.avg_pool2d(image, [1, 3, 3, 1], [1, 2, 2, 1], 'SAME')
tf.nn.pool(image, [2, 2], 'AVG', strides=[1, 2], padding='SAME')
tf.nn.max_pool_with_argmax(image, 2, 2, 'SAME')
tf.nn.max_pool_with_argmax(np.concatenate([image, -image]), [1, 3, 2, 1], [1, 2, 1, 1], 'VALID', include_batch_in_index=True)
tf.nn.dilation2d(image, flat, [1, 1, 1, 1], 'SAME', 'NHWC', [1, 1, 1, 1])
tf.nn.dilation2d(image, flat, [1, 2, 1, 1], 'VALID', 'NHWC', [1, 1, 2, 1])
tf.nn.erosion2d(image, flat, [1, 1, 1, 1], 'SAME', 'NHWC', [1, 1, 1, 1])
tf.nn.local_response_normalization(image, 1, 1.0, 0.5, 0.75)
tf.nn.lrn(rgb[None])
tf.nn.space_to_batch(image[:, :4], [2, 2], [[0, 0], [0, 0]])
tf.nn.depth_to_space(np.concatenate([image, image], -1), 2)
tf.nn.bias_add(image, w[:2])
tf.nn.embedding_lookup(x, [2, 0])
tf.nn.embedding_lookup(x, [2, 0], max_norm=0.5)
tf.nn.crelu(features=x)
tf.nn.relu(features=x)
tf.nn.gelu(x)
tf.nn.gelu(x, approximate=True)
tf.nn.silu(x, beta=2.0)
tf.nn.leaky_relu(x)
tf.nn.log_softmax(x)
tf.nn.softmax(x, axis=0)
tf.nn.top_k(x, k=2)[1]
tf.nn.in_top_k([0, 1, 2], x, 2)
tf.nn.l2_normalize(x, axis=1)
tf.nn.l2_loss(x)
tf.nn.weighted_cross_entropy_with_logits(labels=p / 4, logits=x, pos_weight=2.0)
tf.nn.sigmoid_cross_entropy_with_logits(labels=p / 4, logits=x)
tf.nn.softmax_cross_entropy_with_logits(labels=p, logits=x)
tf.nn.log_poisson_loss(p, x, compute_full_loss=True)
tf.nn.moments(x, [0])
tf.nn.weighted_moments(x, 1, p)
tf.nn.weighted_moments(x, [0, 1], p, keepdims=True)
tf.nn.sufficient_statistics(x, [0])[:3]
tf.nn.normalize_moments(3.0, x, p + x * x, 0.5)
tf.nn.batch_normalization(x, 0.5, 2.0, 1.0, 3.0, 1e-3)
tf.nn.batch_norm_with_global_normalization(image, w[:2], w[:2] ** 2, w[1:], w[:2], 1e-3, True)
tf.nn.conv_transpose(image, f2t, [1, 10, 8, 3], 2)
tf.nn.batch_normalization(x, 0.5, 2.0, None, None, 1e-3)
tf.nn.compute_average_loss(w, global_batch_size=4)
tf.nn.ctc_loss([[1, 2, 1], [3, 0, 0]], logits, [3, 1], [5, 4])
tf.nn.ctc_loss([[1, 2], [0, 0]], logits.transpose(1, 0, 2), [2, 1], [5, 4], logits_time_major=False, blank_index=-1)
tf.nn.ctc_loss(tf.sparse.from_dense([[1, 2, 1], [2, 0, 0]]), logits, None, [5, 4], blank_index=-1)
tf.nn.ctc_greedy_decoder(logits, [5, 4])[1]
tf.sparse.to_dense(tf.nn.ctc_greedy_decoder(logits, [5, 4])[0][0])
tf.nn.ctc_beam_search_decoder(logits, [5, 4], 100, 2)[1]
tf.sparse.to_dense(tf.nn.ctc_beam_search_decoder(logits, [5, 4], 100, 1)[0][0])
tf.nn.collapse_repeated([[1, 1, 2, 2, 3], [4, 4, 4, 5, 0]], [5, 4])
tf.nn.zero_fraction(i)
""",
    "linalg": """
tf.linalg.svd(m, compute_uv=False)
tf.linalg.svd(m)[0]
(lambda s, u, v: tf.matmul(u, tf.linalg.diag(s)) @ tf.transpose(v))(*tf.linalg.svd(x))
(lambda s, u, v: (s.shape, u.shape, v.shape))(*tf.linalg.svd(x, full_matrices=True))
(lambda q, r: (q.shape, r.shape))(*tf.linalg.qr(x, full_matrices=True))
tf.linalg.inv(m, adjoint=True)
tf.linalg.solve(m, x, adjoint=True)
tf.linalg.triangular_solve(m, x)
tf.linalg.triangular_solve(m, x, lower=False, adjoint=True)
tf.linalg.cholesky(spd)
tf.linalg.cholesky_solve(tf.linalg.cholesky(spd), x)
tf.linalg.lstsq(x[:, :2], y)
tf.linalg.lstsq(x, y[:, :1], l2_regularizer=0.5)
tf.linalg.logdet(spd)
tf.linalg.slogdet(spd)
tf.linalg.det(m)
tf.linalg.trace(m)
tf.linalg.eigh(spd)[0]
tf.linalg.eigvalsh(spd)
tf.linalg.pinv(x)
tf.linalg.matrix_rank(x)
tf.linalg.expm(m)
tf.linalg.sqrtm(spd)
tf.linalg.diag(w)
tf.linalg.diag(x, k=1)
tf.linalg.diag(w, k=-2)
tf.linalg.diag_part(m)
tf.linalg.diag_part(m, k=-1)
tf.linalg.set_diag(x, w)
tf.linalg.set_diag(x, w, k=1)
tf.linalg.set_diag(x, w[:2], k=-1)
tf.linalg.band_part(m, 1, 0)
tf.linalg.matrix_transpose(x)
tf.linalg.adjoint(x)
tf.linalg.matvec(m, w, transpose_a=True)
tf.linalg.normalize(x, axis=1)
tf.linalg.norm(x, axis=-1)
tf.linalg.tensor_diag(w)
tf.linalg.tensor_diag_part(m)
tf.linalg.cross(m, spd)
tf.linalg.matmul(x, y, transpose_b=True)
""",
    "image": """
tf.image.resize(image, (3, 4), 'area')
tf.image.resize(image, (7, 9), 'area')
tf.image.resize(image, (3, 9), 'area')
tf.image.resize(image, (3, 4), 'gaussian')
tf.image.resize(image, (8, 9), 'gaussian', antialias=True)
tf.image.resize(image, (3, 4), 'gaussian', antialias=True)
tf.image.resize(image, (3, 4), 'mitchellcubic', antialias=True)
tf.image.resize(image, (8, 9), 'mitchellcubic')
tf.image.resize(image, (3, 4), 'lanczos3', antialias=True)
tf.image.resize(image, (8, 9), 'lanczos3')
tf.image.resize(image, (3, 4), 'lanczos5', antialias=True)
tf.image.resize(image, (3, 4), 'lanczos5')
tf.image.resize(image, (3, 4), 'bicubic', antialias=True)
tf.image.resize(image, (3, 4), 'bilinear', antialias=True)
tf.image.resize(image, (3, 4), 'bilinear')
tf.image.resize(image, (9, 4), 'bicubic')
tf.image.resize(image, (3, 4), 'nearest')
tf.image.resize(image, (10, 4), preserve_aspect_ratio=True)
tf.image.resize_with_pad(rgb, 6, 6, method='area')
tf.image.rgb_to_yiq(rgb)
tf.image.yiq_to_rgb(rgb)
tf.image.ssim_multiscale(np.stack([np.tile(rgb, (12, 12, 1))] * 2), np.stack([np.tile(rgb ** 2, (12, 12, 1)), np.tile(rgb, (12, 12, 1))]), 1.0, filter_size=3, power_factors=(0.3, 0.4, 0.3))
tf.image.non_max_suppression_with_scores(boxes, [0.9, 0.8, 0.7, 0.6], 4, iou_threshold=0.5)
tf.image.non_max_suppression_with_scores(boxes, [0.9, 0.8, 0.7, 0.6], 4, iou_threshold=1.0, score_threshold=0.1, soft_nms_sigma=0.5)
tf.image.non_max_suppression_padded(boxes, [0.9, 0.8, 0.7, 0.6], 4, iou_threshold=0.5, pad_to_max_output_size=True)
tf.image.non_max_suppression_overlaps([[1.0, 0.8, 0.1], [0.8, 1.0, 0.2], [0.1, 0.2, 1.0]], [0.5, 0.9, 0.3], 3, 0.5)
tuple(tf.image.combined_non_max_suppression(np.tile(boxes[None, :, None], (2, 1, 1, 1)) / 2, np.array([[[0.9, 0.2], [0.8, 0.7], [0.1, 0.6], [0.3, 0.65]]] * 2, 'float32'), 3, 5, 0.5, 0.25))
tuple(tf.image.combined_non_max_suppression(np.tile(boxes[None, :, None], (1, 1, 2, 1)), np.array([[[0.9, 0.2], [0.8, 0.7], [0.1, 0.6], [0.3, 0.65]]], 'float32'), 2, 5, clip_boxes=False, pad_per_class=True))
tf.image.draw_bounding_boxes(np.zeros((1, 5, 6, 3), 'float32'), [[[0.1, 0.2, 0.8, 0.9], [0.5, 0.5, 2.0, 2.0]]], [[1.0, 0.5, 0.0], [0.0, 0.0, 1.0]])
tf.image.central_crop(image[0], 0.5)
tf.image.adjust_gamma(rgb, 2.0, 0.5)
""",
}


def plain(value):
    """A result as lists of [dtype, shape, numbers], in one list."""
    numbers = isinstance(value, (list, tuple)) and value and all(isinstance(each, int) for each in value)
    if isinstance(value, (list, tuple)) and not numbers:
        return [part for each in value for part in plain(each)]
    array = np.asarray(value)
    numbers = array.reshape(-1).tolist()
    numbers = [float(f"{n:.5g}") for n in numbers] if array.dtype.kind == "f" else numbers
    return [[array.dtype.name, list(array.shape), numbers]]


def called(tf, call):
    return plain(eval(call, {"tf": tf, **inputs()}))


def calls(part):
    return [line for line in CALLS[part].splitlines() if line]


if __name__ == "__main__":
    import tensorflow

    found = {}
    for part in CALLS:
        for call in calls(part):
            try:
                found[call] = called(tensorflow, call)
            except Exception as error:  # whatever it is, the call is wrong
                print(call, repr(error)[:300])
    VALUES.write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in found.items()) + "\n}\n")
