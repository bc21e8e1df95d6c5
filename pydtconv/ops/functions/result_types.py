"""Functions of `ops` on arrays of bfloat16 and of complex numbers, for which operators have no kernel on arrays.

bfloat16: the function computes in float32, and its floats are rounded once, at the end.  Complex numbers: functions
that move elements take them as they are, those that NumPy has for complex numbers are NumPy's, and all others refuse
them by name.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from pydtconv import config, tree
from pydtconv.dtypes import BFLOAT16, FLOATING, as_bfloat16, from_bits, name_of, real, to_bits
from pydtconv.hooks import as_result
from pydtconv.ops.functions.operands import is_symbolic

#: arguments that name axes
_AXES = frozenset(["axes", "axis", "axis1", "axis2", "destination", "source"])
#: functions that hand their arguments on to other functions, or read and make arrays of any dtype
_ANY = frozenset(
    """
    array associative_scan cond convert_to_numpy convert_to_tensor copy custom_gradient dtype fori_loop is_tensor jvp
    map meshgrid ndim scan shape size stop_gradient switch vectorize vectorized_map view while_loop
    """.split()  # noqa: SIM905
)
#: functions whose floats are float32 for operands of bfloat16
_WIDE = frozenset(["ctc_decode", "ctc_loss", "multi_hot", "one_hot"])
#: functions whose floats are of the first operand's dtype
_OF_FIRST = frozenset(
    """
    batch_normalization layer_normalization map_coordinates rms_normalization scatter_update slice_update
    """.split()  # noqa: SIM905
)
#: functions for which Python's floats are of floatx, whatever they stand beside
_OF_FLOATX = frozenset(["arctan2", "logaddexp", "logaddexp2"])
#: functions that take complex numbers as they take others
_COMPLEX = frozenset(
    """
    angle append array_split broadcast_to concatenate conj conjugate count_nonzero cumprod cumsum depth_to_space diag
    diagflat diagonal dsplit dstack empty_like equal expand_dims extract_sequences flip fliplr flipud full full_like
    geomspace get_item hsplit hstack imag isclose isfinite isinf isnan isreal logical_and logical_not logical_or
    logical_xor moveaxis nan_to_num nonzero not_equal ones_like pad prod ravel real rearrange repeat reshape roll rot90
    scatter scatter_update select segment_prod segment_sum slice slice_update space_to_depth split squeeze stack
    swapaxes take take_along_axis tile transpose tril triu unfold unique unstack view_as_real vsplit vstack where
    zeros_like
    """.split()  # noqa: SIM905
)
#: functions of complex numbers that are NumPy's, under their names and with their arguments
_OF_NUMPY = """
    abs absolute add all allclose amax amin any arccos arccosh arcsin arcsinh arctan arctanh argmax argmin argsort
    average clip corrcoef correlate cos cosh cross diff divide dot einsum exp exp2 expm1 greater greater_equal inner
    isin kron less less_equal log log10 log1p log2 matmul max maximum mean median min minimum multiply negative outer
    power ptp reciprocal round sign sin sinc sinh sort sqrt square std subtract sum tan tanh tensordot trace trapezoid
    true_divide vander var vdot
""".split()  # noqa: SIM905
_OF_LINALG = "cholesky det eig eigh inv matrix_rank norm pinv slogdet solve svd".split()  # noqa: SIM905
_NUMPY: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in _OF_NUMPY},
    **{name: getattr(np.linalg, name) for name in _OF_LINALG},
    "rsqrt": lambda x: 1 / np.sqrt(x),
}


def of_all_dtypes(functions: Mapping[str, Any], module: str = "ops") -> dict[str, Callable[..., Any]]:
    """Those of these objects that are functions, by name, for arrays of all dtypes."""
    return {
        name: _function(name, function, module)
        for name, function in functions.items()
        if inspect.isfunction(function) and not name.startswith("_") and name not in _ANY
    }


def _function(name: str, function: Callable[..., Any], module: str) -> Callable[..., Any]:
    axes = [(i, key) for i, key in enumerate(inspect.signature(function).parameters) if key in _AXES]

    @functools.wraps(function)
    def of_any(*args: Any, **kwargs: Any) -> Any:
        for i, key in axes:  # NumPy's integers as Python's
            if isinstance(kwargs.get(key), np.integer):
                kwargs[key] = int(kwargs[key])
            elif i < len(args) and isinstance(args[i], np.integer):
                args = (*args[:i], int(args[i]), *args[i + 1 :])
        found = _dtypes(args, kwargs)
        if not found:
            return function(*args, **kwargs)
        return _special(f"{module}.{name}", name, function, found, args, kwargs)

    of_any.__module__, of_any.__name__, of_any.__qualname__ = f"pydtconv.{module}", name, name
    return of_any


def _dtypes(args: Iterable[Any], kwargs: Mapping[str, Any]) -> set[str]:
    """The dtypes of complex numbers and of bfloat16 among arguments and what lists of them hold."""
    found: set[str] = set()
    for values in (args, kwargs.values()) if kwargs else (args,):
        for value in values:
            if isinstance(value, (np.ndarray, np.generic)):
                if value.dtype.kind in "cV":
                    found.add(value.dtype.name)
            elif isinstance(value, complex):
                found.add("complex")
            elif isinstance(value, (list, tuple)):
                found |= _dtypes(value, {})
    return found


def _special(
    told: str, name: str, function: Callable[..., Any], found: set[str], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    symbolic = any(map(is_symbolic, tree.flatten((args, kwargs))))
    complexes = sorted(dtype for dtype in found if dtype.startswith("complex"))
    if complexes:
        if symbolic or not (name in _COMPLEX or name in _NUMPY or _is_cast(name, function, args, kwargs)):
            raise TypeError(f"{told}: expected real numbers, got {complexes[0]}")
        args, kwargs = tree.map_structure(_widened, (args, kwargs))
        if name in _NUMPY:
            return _of_numpy(told, _NUMPY[name], function, complexes, args, kwargs)
        return function(*args, **kwargs)
    if BFLOAT16 not in found or symbolic:
        return function(*args, **kwargs)
    leaves = tree.flatten((args, kwargs))
    floats = [name_of(x.dtype) for x in leaves if isinstance(x, (np.ndarray, np.generic)) and x.dtype.name in FLOATING]
    narrow = set(floats[:1] if name in _OF_FIRST else floats) == {BFLOAT16}
    if name in _OF_FLOATX:
        narrow = narrow and not any(isinstance(x, float) for x in args)
    elif narrow and list(inspect.signature(function).parameters)[:2] == ["x1", "x2"]:  # what becomes of 0.1 beside x
        args = tuple(from_bits(to_bits(x)).item() if type(x) is float else x for x in args)
    wide, named = tree.map_structure(_widened, (args, kwargs))
    result = function(*wide, **named)
    chosen = (
        "dtype" in inspect.signature(function).parameters and _argument("dtype", function, args, kwargs) is not None
    )
    return result if chosen or not narrow or name in _WIDE else tree.map_structure(_rounded, result)


def _argument(name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return inspect.signature(function).bind(*args, **kwargs).arguments.get(name)


def _is_cast(name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether it is a cast to complex numbers, which loses nothing."""
    return name == "cast" and name_of(_argument("dtype", function, args, kwargs)).startswith("complex")


def _widened(value: Any) -> Any:
    """An array of bfloat16 as float32; anything else as it is."""
    narrow = isinstance(value, (np.ndarray, np.generic)) and value.dtype.name == BFLOAT16
    return from_bits(np.asarray(value).view(np.uint16)) if narrow else value


def _rounded(value: Any) -> Any:
    narrow = isinstance(value, (np.ndarray, np.generic)) and value.dtype.name == real(BFLOAT16)
    return as_result(as_bfloat16(value)) if narrow else value


def _of_numpy(
    told: str,
    compute: Callable[..., Any],
    function: Callable[..., Any],
    complexes: list[str],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """NumPy's function of the arguments; those without a default go by their places, the others by name."""
    signature = inspect.signature(function)
    bound = signature.bind(*args, **kwargs)
    placed: list[Any] = []
    named: dict[str, Any] = {}
    for key, value in bound.arguments.items():
        parameter = signature.parameters[key]
        if parameter.kind is parameter.VAR_POSITIONAL:
            placed += value
        elif parameter.default is parameter.empty:
            placed.append(value)
        else:
            named[key] = value
    try:
        with np.errstate(all="ignore"):
            result = compute(*placed, **named)
    except TypeError as error:
        raise TypeError(f"{told}: expected real numbers, got {complexes[0]}: {error}") from None
    leaves = tree.flatten((args, kwargs))
    wide = config.floatx() == "float64" and complexes == ["complex"]
    wide = wide or any(str(getattr(x, "dtype", "")) in ("complex128", "float64") for x in leaves)
    result = tuple(result) if isinstance(result, tuple) else result  # NumPy has tuples with names
    return tree.map_structure(lambda value: _result(value, wide), result)


def _result(value: Any, wide: bool) -> Any:
    """wide: whether operands have 64 bits for each real number; Python's numbers are of floatx."""
    array = np.asarray(value)
    if not wide and array.dtype.name in ("complex128", "float64"):
        array = array.astype("complex64" if array.dtype.kind == "c" else "float32")
    return as_result(array.astype("int32") if array.dtype == np.int64 else array)  # NumPy's indices
