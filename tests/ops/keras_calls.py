"""Calls of the functions of `keras.ops` that have a gradient or a value to compare: a table, walked by the tests.

A parameter of a function without a default gets a value by its name; `CALLS` has further calls, and those of functions
whose arguments are of a kind of their own.
"""

from __future__ import annotations

import inspect

import numpy as np

RANDOM = np.random.default_rng(4)
X = RANDOM.uniform(0.1, 0.9, (2, 3, 4)).astype("float32")
Y = RANDOM.uniform(0.1, 0.9, (2, 3, 4)).astype("float32")
WIDE = RANDOM.standard_normal((2, 3, 4)).astype("float32")
ROW = RANDOM.standard_normal(4).astype("float32")
ROW2 = RANDOM.standard_normal(4).astype("float32")
INTS = RANDOM.integers(1, 9, (2, 3, 4)).astype("int32")
INTS2 = RANDOM.integers(1, 5, (2, 3, 4)).astype("int32")
BOOLS = RANDOM.random((2, 3, 4)) > 0.5
GAPS = np.where(BOOLS, X, np.nan).astype("float32")
GAPS[:, 0] = X[:, 0]
IMAGES = RANDOM.uniform(0, 1, (2, 4, 6, 3)).astype("float32")
FIRST = np.ascontiguousarray(IMAGES.transpose(0, 3, 1, 2))
SQUARE = (np.eye(3) * 2 + RANDOM.uniform(-0.5, 0.5, (2, 3, 3))).astype("float32")
POSITIVE = (SQUARE @ SQUARE.transpose(0, 2, 1) + np.eye(3)).astype("float32")
EDGE = np.array([-np.inf, -1.5, -0.5, 0.0, 0.5, 1.5, np.inf, np.nan], "float32")
SORTED = np.sort(ROW)
LOGITS = 2 * RANDOM.standard_normal((3, 8, 5)).astype("float32")
STEPS = np.array([8, 6, 5], "int32")
SPECTRUM = RANDOM.standard_normal((2, 5, 9)).astype("float32")
LABELS = np.array([[1, 1, 3], [4, 2, 2], [3, 4, 1]], "int32")

#: what an argument of this name is, where it has no default
BY_NAME = {
    "x": X,
    "x1": X,
    "x2": Y,
    "a": X,
    "y": Y,
    "array": X,
    "variable": X,
    "inputs": X,
    "xs": [X, Y],
    "num_classes": 9,
    "repeats": 2,
    "shift": 1,
    "k": 2,
    "kth": 1,
    "q": 0.3,
    "dtype": "float32",
}
_BITS = ["bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift"]
_BITS += ["left_shift", "right_shift", "gcd", "lcm"]
_AXES = ["all", "any", "max", "min", "sum", "mean", "std", "var", "prod", "median", "ptp", "logsumexp", "norm"]
_NANS = ["nanmax", "nanmin", "nansum", "nanmean", "nanprod", "nanstd", "nanvar", "nanmedian"]
_KINDS = ["isfinite", "isinf", "isnan", "isneginf", "isposinf", "signbit", "nan_to_num"]

#: functions of other files' tests
OTHERS = [
    "cond",
    "switch",
    "while_loop",
    "fori_loop",
    "scan",
    "map",
    "vectorized_map",
    "vectorize",
    "allclose",
    "convert_to_numpy",
    "copy",
    "dtype",
    "is_tensor",
    "ndim",
    "shape",
    "size",
    "conv",
    "conv_transpose",
    "depthwise_conv",
    "batch_normalization",
    "average_pool",
    "max_pool",
    "moments",
    "separable_conv",
    "sparsemax",
    "einsum",
    "dot_product_attention",
    "adaptive_average_pool",
    "adaptive_max_pool",
    "custom_gradient",
    "jvp",
    "angle",
    "real",
    "imag",
]

#: further calls, by function: positional arguments, and keyword arguments where the last one is a dict
CALLS: dict[str, list[tuple]] = {
    **{name: [(INTS, INTS2)] for name in _BITS},
    **{name: [(INTS,)] for name in ("bitwise_not", "bitwise_invert")},
    **{name: [(WIDE, {"axis": 1}), (WIDE, {"axis": (0, 2), "keepdims": True})] for name in _AXES if name != "median"},
    **{name: [(GAPS,), (GAPS, {"axis": 1}), (GAPS, {"axis": 2, "keepdims": True})] for name in _NANS},
    **{name: [(EDGE,)] for name in _KINDS},
    **{name: [(RANDOM.uniform(1.1, 3, (3, 4)).astype("float32"),)] for name in ("arccosh",)},
    **{name: [(WIDE,), (WIDE, {"axis": 1})] for name in ("argmax", "argmin", "argsort", "sort", "cumsum", "cumprod")},
    **{name: [(BOOLS, ~BOOLS), (BOOLS, X > 0.5)] for name in ("logical_and", "logical_or", "logical_xor")},
    **{name: [(X, ROW), (3, X), (WIDE, 0.0)] for name in ("less", "greater", "equal", "not_equal", "less_equal")},
    "logical_not": [(BOOLS,)],
    "median": [(WIDE, {"axis": 1}), (WIDE, {"axis": 2, "keepdims": True})],
    "argpartition": [],
    "associative_scan": [],
    "append": [(X, Y), (X, Y, {"axis": 1})],
    "arange": [(5,), (1, 7, 2), (0.0, 1.0, 0.25)],
    "array": [([1.0, 2.0],)],
    "array_split": [(X, 3, {"axis": 2})],
    "average": [(X,), (X, {"axis": 1}), (X, {"axis": 2, "weights": ROW})],
    "bartlett": [(7,)],
    "blackman": [(7,)],
    "hamming": [(7,)],
    "hanning": [(7,)],
    "kaiser": [(7, 3.0)],
    "binary_crossentropy": [(X, Y), (X, WIDE, {"from_logits": True})],
    "bincount": [(INTS.reshape(-1),), (INTS.reshape(-1), {"weights": X.reshape(-1), "minlength": 12})],
    "broadcast_to": [(ROW, (2, 3, 4))],
    "cast": [(INTS, "float32")],
    "cdist": [(X, Y)],
    "cholesky": [(POSITIVE,), (POSITIVE, {"upper": True})],
    "cholesky_inverse": [(np.linalg.cholesky(POSITIVE),), (POSITIVE,), (POSITIVE, {"upper": True})],
    "clip": [(WIDE, -0.5, 0.5)],
    "concatenate": [([X, Y], {"axis": 1})],
    "convert_to_tensor": [([1.0, 2.0],), ([1, 2],)],
    "corrcoef": [(X[0],)],
    "correlate": [(ROW, ROW2, {"mode": "same"}), (ROW, ROW2, {"mode": "full"})],
    "count_nonzero": [(INTS - 1,), (INTS[0] - 1, {"axis": 1})],
    "cross": [(X[:, :2, :3], Y[:, :2, :3])],
    "ctc_decode": [
        (LOGITS, STEPS),
        (LOGITS, STEPS, {"merge_repeated": False, "mask_index": 2}),
        (LOGITS, STEPS, {"mask_index": None}),
        (LOGITS, STEPS, {"strategy": "beam_search"}),
        (LOGITS, STEPS, {"strategy": "beam_search", "beam_width": 9, "top_paths": 3, "mask_index": 1}),
    ],
    "ctc_loss": [
        (LABELS, LOGITS, np.array([3, 1, 0], "int32"), STEPS),
        (np.where(LABELS == 2, 0, LABELS), LOGITS, np.array([2, 3, 1], "int32"), STEPS, {"mask_index": 2}),
        (np.array([[1, 1, 3]], "int32"), LOGITS[:1], np.array([3], "int32"), np.array([4], "int32")),
    ],
    "depth_to_space": [
        (RANDOM.random((2, 2, 3, 8), np.float32), 2),
        (RANDOM.random((2, 8, 2, 3), np.float32), 2, {"data_format": "channels_first"}),
    ],
    "space_to_depth": [(IMAGES, 2), (FIRST, 2, {"data_format": "channels_first"})],
    "det": [(SQUARE,)],
    "diag": [(ROW,), (X[0], {"k": 1})],
    "diagflat": [(X[0], {"k": -1})],
    "diagonal": [(X, {"offset": 1, "axis1": 1, "axis2": 2})],
    "diff": [(X,), (X, {"n": 2, "axis": 1}), (BOOLS,), (INTS,)],
    "digitize": [(X, np.array([0.3, 0.6], "float32"))],
    "divide": [(X, Y), (X, 2), (2, X), (WIDE, 0.0)],
    "divide_no_nan": [(X, Y), (X, np.where(BOOLS, Y, 0).astype("float32"))],
    "dot": [(X[0], Y[0].T.copy()), (ROW, ROW2)],
    "dsplit": [(X, 2)],
    "empty": [],
    "empty_like": [],
    "expand_dims": [(X, 1)],
    "extract_sequences": [(X, 2, 1)],
    "eye": [(3,), (3, {"M": 4, "k": 1})],
    "fft": [((X, Y),)],
    "fft2": [((X, Y),)],
    "ifft2": [((X, Y),)],
    "flip": [(X, {"axis": 1}), (X, {"axis": (0, 2)})],
    "fold": [(RANDOM.random((2, 3 * 4, 15), np.float32), (4, 6), 2)],
    "unfold": [(FIRST, 2), (FIRST, (3, 2), {"stride": 2, "padding": 1, "dilation": (1, 2)})],
    "full": [((2, 3), 1.5)],
    "full_like": [(X, 2.0)],
    "geomspace": [(1.0, 8.0, 4)],
    "linspace": [(0.0, 1.0, 5), (0.0, 1.0, {"num": 4, "endpoint": False})],
    "logspace": [(0.0, 2.0, 3)],
    "get_item": [(X, 1), (X, (slice(None), slice(0, 3, 2)))],
    "heaviside": [(WIDE, X)],
    "histogram": [(X.reshape(-1), {"bins": 5})],
    "hsplit": [(X, 3)],
    "identity": [(3,)],
    "in_top_k": [(np.array([1, 0, 3]), RANDOM.random((3, 5), np.float32), 2)],
    "inner": [(X, Y[0]), (ROW, ROW2)],
    "inv": [(SQUARE,)],
    "isin": [(INTS, np.array([2, 4], "int32"))],
    "isclose": [(X, X + 1e-7), (X, Y)],
    "layer_normalization": [
        (X,),
        (X, Y[0, 0], Y[1, 1], {"epsilon": 0.1}),
        (X, Y[0].copy(), None, {"axis": [1, 2]}),
    ],  # on PyTorch, Keras takes the last axes alone
    "irfft": [((X, Y),), ((X, Y), {"fft_length": 5}), ((X, Y), {"fft_length": 9})],
    "istft": [
        ((SPECTRUM, SPECTRUM[::-1].copy()), 8, 4, 16),
        ((SPECTRUM, SPECTRUM[::-1].copy()), 8, 4, 16, {"length": 12, "window": "hamming"}),
    ],
    "kron": [(X[0], Y[1]), (X, Y[1])],
    "logdet": [(POSITIVE,)],
    "lstsq": [(SQUARE[0], X[0, :, :2].copy())],
    "max": [(WIDE, {"axis": 1, "initial": 0.5})],
    "matmul": [(X, Y.transpose(0, 2, 1).copy())],
    "matrix_rank": [(SQUARE,)],
    "meshgrid": [(ROW, SORTED[:3]), (ROW, SORTED[:3], {"indexing": "ij"})],
    "mod": [(WIDE, Y), (INTS, INTS2)],
    "moveaxis": [(X, 0, 2)],
    "multi_hot": [(INTS[0], 9)],
    "nanargmax": [(GAPS, {"axis": 1})],
    "nanargmin": [(GAPS, {"axis": 1})],
    "nancumprod": [(GAPS, {"axis": 1})],
    "nancumsum": [(GAPS, {"axis": 1})],
    "nanpercentile": [(GAPS, 30.0, {"axis": 1})],
    "nanquantile": [(GAPS, 0.3, {"axis": 1})],
    "nonzero": [],
    "norm": [(WIDE[0], {"ord": order, "axis": 1}) for order in (1, 2, 3, np.inf, -np.inf, 0)]
    + [(WIDE[0], {"ord": order}) for order in ("fro", 1, -1, np.inf)],
    "normalize": [(WIDE,), (WIDE, {"order": 1}), (WIDE, {"order": 3, "axis": 1})],
    "one_hot": [(INTS, 9), (INTS, 9, {"axis": 1}), (INTS, 9, {"dtype": "bool"})],
    "ones": [((2, 3),)],
    "zeros": [((2, 3),)],
    "outer": [(ROW, ROW2)],
    "pad": [(X, ((0, 0), (1, 2), (0, 1))), (X, ((1, 1),) * 3, {"mode": "constant", "constant_values": 2.0})],
    "percentile": [(X, 30.0), (X, 60.0, {"axis": 1, "keepdims": True})],
    "pinv": [(X,)],
    "polar": [(X, Y)],
    "psnr": [(X, Y, 1.0)],
    "power": [(X, Y), (X, 2), (2.0, WIDE), (0.0, X), (-2.0, np.array([0.0, 1.0, 2.0], "float32"))],
    "qr": [],
    "quantile": [(X, 0.3), (X, 0.6, {"axis": (0, 2)}), (X, [0.2, 0.5], {"axis": 1, "keepdims": True})]
    + [(X, 0.37, {"axis": 1, "method": method}) for method in ("lower", "higher", "nearest", "midpoint")],
    "rearrange": [(IMAGES, "b (h p) w c -> b h w (p c)", {"p": 2})],
    "rms_normalization": [(X, Y[0, 0]), (X, {"epsilon": 0.1})],
    "repeat": [(X, 2), (X, 2, {"axis": 1})],
    "reshape": [(X, (4, 6)), (X, -1)],
    "rfft": [(X,), (X, {"fft_length": 3}), (X, {"fft_length": 6})],
    "roll": [(X, 1), (X, 2, {"axis": 1})],
    "rot90": [(X,), (X, {"k": 3, "axes": (1, 2)})],
    "round": [(WIDE,), (WIDE, {"decimals": 1})],
    "saturate_cast": [(300 * WIDE, "uint8")],
    "scatter": [(np.array([[0], [2], [0]]), X[0], (4, 4))],
    "scatter_update": [(X, np.array([[0, 1], [1, 2]]), Y[0, :2].copy())],
    "searchsorted": [(SORTED, X.reshape(-1)), (SORTED, X.reshape(-1), {"side": "right"})],
    "segment_sum": [(X.reshape(6, 4), np.array([0, 0, 2, 2, 1, 1]), 4)],
    "segment_max": [(X.reshape(6, 4), np.array([0, 0, 2, 2, 1, 1]), 3)],
    "segment_min": [(X.reshape(6, 4), np.array([0, 0, 2, 2, 1, 1]), 3)],
    "segment_prod": [],
    "select": [([X > 0.5, X > 0.3], [X, Y], {"default": 2.0})],
    "slice": [(X, (0, 1, 1), (2, 2, 2))],
    "slice_update": [(X, (0, 1, 1), Y[:, :2, :2].copy())],
    "slogdet": [(SQUARE,)],
    "solve": [(SQUARE, X)],
    "solve_triangular": [(np.tril(SQUARE), X, {"lower": True})],
    "eigh": [],
    "eig": [],
    "svd": [(X, {"compute_uv": False})],
    "lu_factor": [(SQUARE,)],
    "sparse_categorical_crossentropy": [(INTS2[..., 0] % 4, X / X.sum(-1, keepdims=True))],
    "categorical_crossentropy": [(X / X.sum(-1, keepdims=True), Y / Y.sum(-1, keepdims=True))],
    "split": [(X, 2, {"axis": 2}), (X, [1, 3], {"axis": 2})],
    "squeeze": [(X[:, :1],), (X[:, :1], {"axis": 1})],
    "stack": [([X, Y], {"axis": 1})],
    "stft": [
        (RANDOM.standard_normal((2, 40)).astype("float32"), 8, 4, 16),
        (X.reshape(2, 12), 6, 2, 7, {"center": False}),
    ],
    "swapaxes": [(X, 0, 2)],
    "take": [(X, np.array([0, 2, 2])), (X, np.array([[0, 1], [2, 2]]), {"axis": 1}), (X, -1, {"axis": 2})],
    "take_along_axis": [(X, INTS % 3, {"axis": 1}), (X, INTS[..., :1] % 4, {"axis": 2})],
    "tensordot": [(X, Y.transpose(1, 2, 0).copy()), (X, Y, {"axes": ([0, 2], [0, 2])})],
    "threshold": [(WIDE, 0.2, 1.5)],
    "tile": [(X, 2), (X, (2, 1, 3))],
    "top_k": [(X, 2)],
    "trace": [(X,), (X, {"offset": 1, "axis1": 1, "axis2": 2})],
    "transpose": [(X,), (X, {"axes": (1, 0, 2)})],
    "trapezoid": [(X,), (X, {"dx": 0.5, "axis": 1}), (X, {"x": SORTED})],
    "tri": [(3,), (3, {"M": 4, "k": 1})],
    "tril": [(X,), (X, {"k": 1})],
    "triu": [(X,), (X, {"k": -1})],
    "unique": [(INTS,)],
    "unravel_index": [(np.array([3, 7]), (2, 3, 4))],
    "unstack": [(X, {"axis": 1})],
    "vdot": [(ROW, ROW2)],
    "ldexp": [(X, INTS)],
    "vander": [(ROW,), (ROW, {"N": 3, "increasing": True})],
    "view": [(INTS, {"dtype": "float32"}), (X,)],
    "view_as_complex": [(X[..., :2],)],
    "view_as_real": [(X[..., 0] + 1j * X[..., 1],)],
    "vsplit": [(X, 2)],
    "where": [(BOOLS, X, Y), (BOOLS, X, 0.0), (BOOLS[0, 0], X, ROW)],
    "stop_gradient": [(X,)],
    **{name: [] for name in OTHERS},
}


def calls_of(name: str, function: object) -> list[tuple[tuple, dict]]:
    """[(args, kwargs)] of a function."""
    if name in CALLS:
        split = [(row[:-1], row[-1]) if row and isinstance(row[-1], dict) else (row, {}) for row in CALLS[name]]
        return [(tuple(args), kwargs) for args, kwargs in split]
    parameters = inspect.signature(function).parameters.values()
    needed = [p.name for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
    return [(tuple(BY_NAME[each] for each in needed), {})]
