"""The names of tensorflow, apart from `tensorflow.keras`, that Keras scripts use; what is not here says so by name."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from pydtconv._version import __version__

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
        "errors",
        "sparse",
        "summary",
        "bitwise",
        "autograph",
    ),
    "tensorflow.data": ("experimental",),
    "tensorflow.autograph": ("experimental",),
    "tensorflow.config": ("experimental", "optimizer", "threading"),
    "tensorflow.random": ("experimental",),
    "tensorflow.summary": ("experimental",),
    "tensorflow.distribute": ("cluster_resolver",),
    "tensorflow.experimental": ("numpy",),
    "tensorflow.io": ("gfile",),
}
#: modules of tensorflow that are also Keras's
_OF_KERAS = ("initializers", "losses", "metrics", "optimizers")


def submodules(fullname: str) -> tuple[str, ...]:
    """The modules in one of tensorflow's."""
    return _MODULES.get(fullname, ())


def table(fullname: str) -> Mapping[str, Any]:
    """The names in one of tensorflow's modules, apart from its submodules."""
    from pydtconv.compat.tensorflow import (
        assertions,
        data,
        functions,
        image,
        image_boxes,
        image_jpeg,
        image_parts,
        miscellany,
        modules,
        numpy_names,
        random,
        segments,
        settings,
        signals,
        special,
        strategy,
        strings,
        summary,
    )

    tables: dict[str, Callable[[], Mapping[str, Any]]] = {
        "tensorflow": _top,
        "tensorflow.random": random.table,
        "tensorflow.nn": functions.nn_table,
        "tensorflow.math": functions.math_table,
        "tensorflow.linalg": functions.linalg_table,
        "tensorflow.autograph": miscellany.autograph,
        "tensorflow.autograph.experimental": miscellany.autograph,
        "tensorflow.bitwise": special.bitwise,
        "tensorflow.config": settings.table,
        "tensorflow.config.experimental": settings.experimental,
        "tensorflow.config.optimizer": settings.optimizer,
        "tensorflow.config.threading": settings.threading,
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
        "tensorflow.image": lambda: {
            **image.image_table(),
            **image_parts.table(),
            **image_boxes.table(),
            **image_jpeg.table(),
            **miscellany.encoders(),
        },
        "tensorflow.io": lambda: image.io_table() | miscellany.encoders(),
        "tensorflow.io.gfile": miscellany.gfile,
        "tensorflow.distribute": strategy.table,
        "tensorflow.distribute.cluster_resolver": strategy.resolvers,
        "tensorflow.compat": miscellany.compat,
        "tensorflow.dtypes": lambda: {
            **{name: functions.function_table()[name] for name in ("cast", "complex", "saturate_cast")},
            "as_dtype": miscellany.top()["as_dtype"],
            **_dtypes(),
        },
        "tensorflow.experimental": dict,
        "tensorflow.experimental.numpy": numpy_names.Names,
        "tensorflow.nest": miscellany.nest,
        "tensorflow.audio": signals.audio_table,
        "tensorflow.debugging": assertions.table,
        "tensorflow.errors": assertions.errors,
        "tensorflow.random.experimental": random.experimental,
        "tensorflow.sparse": segments.sparse,
        "tensorflow.summary": summary.table,
        "tensorflow.summary.experimental": summary.experimental,
        "tensorflow.signal": signals.signal_table,
        "tensorflow.strings": strings.table,
        "tensorflow.test": miscellany.test,
        "tensorflow.train": modules.train_table,
        "tensorflow.version": lambda: {"VERSION": _version()},
    }
    return tables[fullname]()


def _top() -> dict[str, Any]:
    from pydtconv.compat.tensorflow import assertions, functions, miscellany, modules
    from pydtconv.graph.ir.graph import Tensor
    from pydtconv.loops import GradientTape, function

    return {
        "__version__": _version(),
        "GradientTape": GradientTape,
        "Module": modules.Module,
        "Tensor": Tensor,
        "function": function,
        "newaxis": None,
        **{name: importlib.import_module(f"keras.{name}") for name in _OF_KERAS},
        **_dtypes(),
        **functions.function_table(),
        **assertions.of_tf(),
        **miscellany.top(),
    }


def _version() -> str:
    return f"2.16.0+pydtconv.{__version__}"


def _dtypes() -> dict[str, str]:
    return {name: name for name in _DTYPES} | {"double": "float64", "half": "float16"}
