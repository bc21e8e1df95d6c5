"""Small names of tensorflow around the functions of tensors: files, versions, structures, devices."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from typing import Any

from pydtconv import initializers, tree
from pydtconv.compat.tensorflow.arrays import Array, array, bytes_of, text_of
from pydtconv.compat.tensorflow.dtypes import DType, as_dtype
from pydtconv.compat.tensorflow.specs import Shape, TensorSpec
from pydtconv.graph.ir.graph import Tensor, current_graph
from pydtconv.graph.ir.variable import Variable


def is_tensor(x: Any) -> bool:
    """Whether x is a tensor or a variable."""
    return isinstance(x, (Array, Tensor, Variable))


def as_bytes(text: Any, encoding: str = "utf-8") -> bytes:
    return bytes_of(text) if isinstance(text, (bytes, Array)) else str(text).encode(encoding)


def as_text(text: Any, encoding: str = "utf-8") -> str:
    return text_of(text) if encoding == "utf-8" else bytes_of(text).decode(encoding)


def nest() -> dict[str, Any]:
    """The names of `tf.nest`."""
    return {name: getattr(tree, name) for name in ("flatten", "map_structure", "pack_sequence_as", "is_nested")} | {
        "assert_same_structure": _same_structure
    }


def _same_structure(nest1: Any, nest2: Any, check_types: bool = True, expand_composites: bool = False) -> None:
    tree.map_structure(lambda a, b: None, nest1, nest2)


def compat() -> dict[str, Any]:
    """The names of `tf.compat`."""
    return {"as_bytes": as_bytes, "as_str": as_text, "as_text": as_text}


def test() -> dict[str, Any]:
    """The names of `tf.test`: there is no GPU."""
    kinds = ("cuda", "gpu_support", "rocm", "xla")
    found = dict.fromkeys(("is_gpu_available", *(f"is_built_with_{kind}" for kind in kinds)), _no)
    return {"gpu_device_name": lambda: "", "is_cpu_target_available": lambda target: True, **found}


def autograph() -> dict[str, Any]:
    """The names of `tf.autograph` and of its `experimental`: Python's code is traced as it is."""
    unchanged = dict.fromkeys(("do_not_convert", "to_graph", "to_code"), _decorated)
    nothing = dict.fromkeys(("set_loop_options", "set_verbosity", "trace"), lambda *args, **kwargs: None)
    return unchanged | nothing


def _decorated(func: Any = None, *args: Any, **kwargs: Any) -> Any:
    """The function, also where a decorator has arguments."""
    return func if func is not None else lambda function: function


class UnconnectedGradients:
    """Names of what a tape gives where nothing connects."""

    NONE = "none"
    ZERO = "zero"


class VariableAggregation:
    """Names of what replicas make of a variable."""

    NONE = "none"
    SUM = "sum"
    MEAN = "mean"
    ONLY_FIRST_REPLICA = "only_first_replica"


class VariableSynchronization:
    """Names of when they do it."""

    AUTO = ON_READ = ON_WRITE = NONE = "auto"


def _no(*args: Any, **kwargs: Any) -> bool:
    return False


def executing_eagerly() -> bool:
    """Whether code runs now, and is not traced."""
    graph: Any = current_graph()
    return graph is None or (graph.records and not graph.traced)


def top() -> dict[str, Any]:
    """Names of tensorflow itself."""
    return {
        "TensorShape": Shape,
        "TensorSpec": TensorSpec,
        "DType": DType,
        "as_dtype": as_dtype,
        "constant_initializer": initializers.Constant,
        "device": lambda device_name: contextlib.nullcontext(),
        "get_logger": lambda: logging.getLogger("tensorflow"),
        "is_tensor": is_tensor,
        "UnconnectedGradients": UnconnectedGradients,
        "VariableAggregation": VariableAggregation,
        "VariableSynchronization": VariableSynchronization,
        "get_current_name_scope": lambda: "",
        "inside_function": lambda: not executing_eagerly(),
        "executing_eagerly": executing_eagerly,
        "is_symbolic_tensor": lambda tensor: isinstance(tensor, Tensor),
        "name_scope": lambda name: contextlib.nullcontext(),
        "no_gradient": lambda op_type: None,
        "numpy_function": numpy_function,
        "ones_initializer": initializers.Ones,
        "py_function": py_function,
        "random_normal_initializer": initializers.RandomNormal,
        "random_uniform_initializer": initializers.RandomUniform,
        "zeros_initializer": initializers.Zeros,
    }


def _kind_of(result: Any) -> Any:
    """The dtype of a result, which a spec of a tensor may give."""
    return result.dtype if isinstance(result, TensorSpec) else result


def _of_function(values: Callable[[Any], Any]) -> Callable[..., Any]:
    """A function that calls Python code with what `values` makes of each tensor; a pipeline runs Python code anyway."""

    def call(func: Any, inp: Any, Tout: Any, stateful: bool = True, name: str | None = None) -> Any:
        found = func(*(values(array(each)) for each in inp))
        several = isinstance(Tout, (list, tuple))
        if several and isinstance(found, (list, tuple)) and len(found) != len(Tout):
            raise ValueError(f"expected {len(Tout)} results, as Tout says, got {len(found)}")
        if not several:
            return array(found, _kind_of(Tout))
        results = found if isinstance(found, (list, tuple)) and len(found) == len(Tout) else [found] * len(Tout)
        return [array(each, _kind_of(kind)) for each, kind in zip(results, Tout, strict=True)]

    return call


numpy_function = _of_function(lambda tensor: tensor.numpy())
py_function = _of_function(lambda tensor: tensor)
