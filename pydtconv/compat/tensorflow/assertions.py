"""`tf.debugging` and `tf.errors`: what is asserted of values that are there; nothing where code is traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pydtconv.compat.tensorflow.arrays import array
from pydtconv.graph.ir.deferred import ValueNeededError


def _refuse(kind: str, message: Any, *got: Any) -> None:
    values = " and ".join(repr(each) for each in got)
    raise ValueError(f"{kind}: {message + ': ' if message else ''}got {values}")


def _asserting(kind: str, holds: Callable[..., Any], count: int = 2) -> Callable[..., None]:
    """A function that raises ValueError where `holds` of its first arguments is not true of all elements."""
    names = ("x", "y")[:count]

    def check(*args: Any, message: str | None = None, summarize: Any = None, name: Any = None, **kwargs: Any) -> None:
        operands = [*args[:count], *(kwargs[each] for each in names[len(args) :])]
        message = args[count] if len(args) > count else message
        try:
            if not np.all(holds(*map(np.asarray, operands))):
                _refuse(kind, message, *operands)
        except ValueNeededError:
            return

    check.__name__ = kind
    return check


def assert_near(
    x: Any, y: Any, rtol: Any = None, atol: Any = None, message: Any = None, summarize: Any = None, name: Any = None
) -> None:
    precision = 10 * float(np.finfo("float32").eps)
    rtol, atol = (precision if each is None else each for each in (rtol, atol))
    _asserting("assert_near", lambda a, b: np.abs(a - b) <= atol + rtol * np.abs(b))(x, y, message=message)


def assert_all_finite(x: Any, message: str = "", name: str | None = None) -> Any:
    _asserting("assert_all_finite", np.isfinite, 1)(x, message=message)
    return x


def _shape(x: Any) -> tuple[Any, ...]:
    return tuple(x.shape) if hasattr(x, "shape") else np.shape(x)


def assert_rank(x: Any, rank: int, message: Any = None, name: Any = None) -> None:
    if len(_shape(x)) != rank:
        _refuse(f"assert_rank: expected {rank} axes", message, _shape(x))


def assert_rank_at_least(x: Any, rank: int, message: Any = None, name: Any = None) -> None:
    if len(_shape(x)) < rank:
        _refuse(f"assert_rank_at_least: expected {rank} axes or more", message, _shape(x))


def assert_rank_in(x: Any, ranks: Any, message: Any = None, name: Any = None) -> None:
    if len(_shape(x)) not in tuple(ranks):
        _refuse(f"assert_rank_in: expected one of {tuple(ranks)} axes", message, _shape(x))


def assert_scalar(tensor: Any, name: Any = None, message: Any = None) -> Any:
    assert_rank(tensor, 0, message)
    return tensor


def assert_shapes(shapes: Any, data: Any = None, summarize: Any = None, message: Any = None, name: Any = None) -> None:
    """Each tensor with its shape: numbers, names that stand for one number, None for any."""
    known: dict[Any, Any] = {}
    for x, wanted in shapes.items() if isinstance(shapes, dict) else shapes:
        given, wanted = _shape(x), tuple(wanted)
        if len(given) != len(wanted):
            _refuse(f"assert_shapes: expected {wanted}", message, given)
        for extent, each in zip(given, wanted, strict=True):
            if each is not None and extent != (each if isinstance(each, int) else known.setdefault(each, extent)):
                _refuse(f"assert_shapes: expected {wanted} with {known}", message, given)


def assert_type(tensor: Any, tf_type: Any, message: Any = None, name: Any = None) -> None:
    from pydtconv.compat.tensorflow.arrays import name_of

    if str(tensor.dtype) != name_of(tf_type):
        _refuse(f"assert_type: expected {name_of(tf_type)}", message, str(tensor.dtype))


def _kind(x: Any) -> str:
    return np.dtype(str(x.dtype) if hasattr(x, "dtype") else np.asarray(x).dtype).kind


def assert_integer(x: Any, message: Any = None, name: Any = None) -> None:
    if _kind(x) not in "iu":
        _refuse("assert_integer: expected integers", message, x)


def is_numeric_tensor(tensor: Any) -> bool:
    """Whether it is a tensor of numbers."""
    return hasattr(tensor, "dtype") and _kind(tensor) in "iufc"


def check_numerics(tensor: Any, message: str, name: str | None = None) -> Any:
    return assert_all_finite(array(tensor), message)


def Assert(condition: Any, data: Any, summarize: Any = None, name: str | None = None) -> None:
    _asserting("Assert", lambda x: x, 1)(condition, message=", ".join(map(str, data)))


def _nothing(*args: Any, **kwargs: Any) -> None:
    """What means nothing here."""


def table() -> dict[str, Any]:
    """The names of `tf.debugging`."""
    relations = {
        "equal": np.equal, "greater": np.greater, "greater_equal": np.greater_equal, "less": np.less,
        "less_equal": np.less_equal, "none_equal": np.not_equal,
    }  # fmt: skip
    signs = {
        "positive": lambda x: x > 0, "negative": lambda x: x < 0, "non_negative": lambda x: x >= 0,
        "non_positive": lambda x: x <= 0,
    }  # fmt: skip
    own = (
        Assert, assert_near, assert_all_finite, assert_rank, assert_rank_at_least, assert_rank_in, assert_scalar,
        assert_shapes, assert_type, assert_integer, is_numeric_tensor, check_numerics,
    )  # fmt: skip
    nothing = (
        "enable_check_numerics", "disable_check_numerics", "set_log_device_placement", "disable_traceback_filtering",
        "enable_traceback_filtering", "assert_same_float_dtype", "assert_proper_iterable",
    )  # fmt: skip
    return {
        **{f"assert_{name}": _asserting(f"assert_{name}", relation) for name, relation in relations.items()},
        **{f"assert_{name}": _asserting(f"assert_{name}", sign, 1) for name, sign in signs.items()},
        **{each.__name__: each for each in own},
        **dict.fromkeys(nothing, _nothing),
        **dict.fromkeys(("is_traceback_filtering_enabled", "get_log_device_placement"), lambda: False),
    }


def of_tf() -> dict[str, Any]:
    """What tensorflow itself has of it."""
    whole = table()
    return {name: whole[name] for name in ("Assert", "assert_equal", "assert_greater", "assert_less", "assert_rank")}


def errors() -> dict[str, Any]:
    """The names of `tf.errors`, by what Python code here raises in their place."""
    kinds: dict[type[Exception], tuple[str, ...]] = {
        ValueError: ("InvalidArgumentError", "DataLossError", "OutOfRangeError"),
        FileNotFoundError: ("NotFoundError",),
        FileExistsError: ("AlreadyExistsError",),
        PermissionError: ("PermissionDeniedError", "UnauthenticatedError"),
        MemoryError: ("ResourceExhaustedError",),
        NotImplementedError: ("UnimplementedError",),
        TimeoutError: ("DeadlineExceededError",),
        RuntimeError: ("FailedPreconditionError", "InternalError", "AbortedError", "CancelledError", "UnknownError"),
        ConnectionError: ("UnavailableError",),
        Exception: ("OpError", "OperatorNotAllowedInGraphError"),
    }
    codes = (
        "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
        "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED",
        "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
    )  # fmt: skip
    found: dict[str, Any] = {name: i for i, name in enumerate(codes)}
    return found | {name: kind for kind, names in kinds.items() for name in names}
