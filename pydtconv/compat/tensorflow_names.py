"""The names of tensorflow, apart from `tensorflow.keras`, that Keras scripts use; what is not here says so by name."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from pydtconv._version import __version__
from pydtconv.support.random import set_random_seed

_DTYPES = (
    "bool", "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "bfloat16", "complex64", "complex128", "string",
)  # fmt: skip
_MODULES: dict[str, tuple[str, ...]] = {
    "tensorflow": (
        "keras",
        "random",
        "nn",
        "math",
        "config",
        "linalg",
        "data",
        "distribute",
        "image",
        "io",
        "compat",
        "dtypes",
        "experimental",
        "nest",
        "test",
        "version",
        "audio",
        "signal",
        "strings",
        "train",
        "debugging",
    ),
    "tensorflow.data": ("experimental",),
    "tensorflow.config": ("experimental",),
    "tensorflow.distribute": ("cluster_resolver",),
    "tensorflow.experimental": ("numpy",),
    "tensorflow.io": ("gfile",),
}
#: modules of tensorflow that are also Keras's
_OF_KERAS = ("initializers", "losses", "metrics", "optimizers")


def submodules(fullname: str) -> tuple[str, ...]:
    """The modules in one of tensorflow's."""
    return _MODULES.get(fullname, ())


def table(fullname: str) -> dict[str, Any]:
    """The names in one of tensorflow's modules, apart from its submodules."""
    from pydtconv.compat.tensorflow import (
        data,
        functions,
        image,
        image_parts,
        linalg,
        miscellany,
        modules,
        random,
        signals,
        strategy,
        strings,
    )

    tables: dict[str, Callable[[], dict[str, Any]]] = {
        "tensorflow": _top,
        "tensorflow.random": lambda: random.table() | {"set_seed": set_random_seed},
        "tensorflow.nn": functions.nn_table,
        "tensorflow.math": functions.math_table,
        "tensorflow.linalg": linalg.table,
        "tensorflow.config": _config,
        "tensorflow.config.experimental": lambda: {"set_memory_growth": lambda device, enable: None},
        "tensorflow.data": lambda: {
            "Dataset": data.Dataset,
            "AUTOTUNE": data.AUTOTUNE,
            "Options": data.Options,
            "INFINITE_CARDINALITY": data.INFINITE_CARDINALITY,
            "UNKNOWN_CARDINALITY": data.UNKNOWN_CARDINALITY,
        },
        "tensorflow.data.experimental": lambda: {
            "AUTOTUNE": data.AUTOTUNE,
            "cardinality": lambda dataset: dataset.cardinality(),
        },
        "tensorflow.image": lambda: image.image_table() | image_parts.table() | miscellany.encoders(),
        "tensorflow.io": lambda: image.io_table() | miscellany.encoders(),
        "tensorflow.io.gfile": miscellany.gfile,
        "tensorflow.distribute": strategy.table,
        "tensorflow.distribute.cluster_resolver": strategy.resolvers,
        "tensorflow.compat": miscellany.compat,
        "tensorflow.dtypes": lambda: {"cast": functions.cast, "as_dtype": miscellany.top()["as_dtype"], **_dtypes()},
        "tensorflow.experimental": dict,
        "tensorflow.experimental.numpy": lambda: {"experimental_enable_numpy_behavior": _nothing},
        "tensorflow.nest": miscellany.nest,
        "tensorflow.audio": signals.audio_table,
        "tensorflow.debugging": miscellany.debugging,
        "tensorflow.signal": signals.signal_table,
        "tensorflow.strings": strings.table,
        "tensorflow.test": miscellany.test,
        "tensorflow.train": modules.train_table,
        "tensorflow.version": lambda: {"VERSION": _version()},
    }
    return tables[fullname]()


def _top() -> dict[str, Any]:
    from pydtconv.compat.tensorflow import functions, miscellany, modules
    from pydtconv.graph.ir.graph import Tensor
    from pydtconv.loops import GradientTape, function

    return {
        "__version__": _version(),
        "GradientTape": GradientTape,
        "Module": modules.Module,
        "Tensor": Tensor,
        "executing_eagerly": _executing_eagerly,
        "function": function,
        "newaxis": None,
        **{name: importlib.import_module(f"keras.{name}") for name in _OF_KERAS},
        **_dtypes(),
        **functions.function_table(),
        **miscellany.top(),
    }


def _version() -> str:
    return f"2.16.0+pydtconv.{__version__}"


def _dtypes() -> dict[str, str]:
    return {name: name for name in _DTYPES}


def _nothing(*args: Any, **kwargs: Any) -> None:
    """What means nothing here."""


def _executing_eagerly() -> bool:
    from pydtconv.graph.ir.graph import current_graph

    graph: Any = current_graph()
    return graph is None or (graph.records and not graph.traced)


def _config() -> dict[str, Any]:
    from pydtconv.loops.function import run_functions_eagerly

    def list_physical_devices(device_type: str | None = None) -> list[str]:
        """The CPU is the only device."""
        return ["/physical_device:CPU:0"] if device_type in (None, "CPU") else []

    return {
        "list_physical_devices": list_physical_devices,
        "list_logical_devices": list_physical_devices,
        "run_functions_eagerly": run_functions_eagerly,
        **dict.fromkeys(("set_visible_devices", "experimental_connect_to_cluster"), _nothing),
    }
