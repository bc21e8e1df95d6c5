"""The names of tensorflow, apart from `tensorflow.keras`, that Keras scripts use; what is not here says so by name."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from pydtconv import ops
from pydtconv._version import __version__
from pydtconv.compat.keras2 import sessions, tensorflow_1

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
        "contrib",
        "python",
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
        "lookup",
        "ragged",
        "sparse",
        "summary",
        "bitwise",
        "autograph",
        "compiler",
    ),
    "tensorflow.compiler": ("tf2xla",),
    "tensorflow.compiler.tf2xla": ("python",),
    "tensorflow.compiler.tf2xla.python": ("xla",),
    "tensorflow.data": ("experimental",),
    "tensorflow.autograph": ("experimental",),
    "tensorflow.config": ("experimental", "optimizer", "threading"),
    "tensorflow.random": ("experimental",),
    "tensorflow.summary": ("experimental",),
    "tensorflow.distribute": ("cluster_resolver",),
    "tensorflow.experimental": ("numpy",),
    "tensorflow.io": ("gfile",),
    "tensorflow.lookup": ("experimental",),
    "tensorflow.compat": ("v1", "v2"),
    "tensorflow.python": ("client", "framework", "keras"),
    "tensorflow.python.framework": ("ops",),
    "tensorflow.python.client": ("device_lib",),
    "tensorflow.contrib": ("keras",),
}
#: which have tensorflow's modules in them
_OLD = ("tensorflow.compat.v1", "tensorflow.compat.v2")
_MODULES |= dict.fromkeys(_OLD, tuple(name for name in _MODULES["tensorflow"] if name not in ("compat", "contrib")))
#: modules of tensorflow that are also Keras's
_OF_KERAS = ("initializers", "losses", "metrics", "optimizers")


def submodules(fullname: str) -> tuple[str, ...]:
    """The modules in one of tensorflow's."""
    return _MODULES.get(_without_version(fullname), ())


def _without_version(fullname: str) -> str:
    old = next((each for each in _OLD if fullname.startswith(f"{each}.")), None)
    return fullname if old is None else "tensorflow" + fullname[len(old) :]


def table(fullname: str) -> Mapping[str, Any]:
    """The names in one of tensorflow's modules, apart from its submodules."""
    from pydtconv.compat.tensorflow import (
        assertions,
        data_names,
        dtypes,
        examples,
        files,
        functions,
        image,
        image_boxes,
        image_jpeg,
        image_parts,
        lookup,
        miscellany,
        modules,
        nn_losses,
        numpy_names,
        ragged,
        random,
        settings,
        signals,
        sparse,
        special,
        strategy,
        strings,
        summary,
        xla,
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
        "tensorflow.data": data_names.table,
        "tensorflow.data.experimental": data_names.experimental_table,
        "tensorflow.lookup": lookup.table,
        "tensorflow.lookup.experimental": lookup.experimental_table,
        "tensorflow.image": lambda: {
            **image.image_table(),
            **image_parts.table(),
            **image_boxes.table(),
            **image_jpeg.table(),
            **files.images(),
        },
        "tensorflow.io": lambda: files.table() | image_jpeg.of_io(),
        "tensorflow.io.gfile": files.gfile,
        "tensorflow.distribute": strategy.table,
        "tensorflow.distribute.cluster_resolver": strategy.resolvers,
        "tensorflow.compat": miscellany.compat,
        "tensorflow.dtypes": lambda: {
            "cast": functions.cast,
            "complex": functions.complex,
            "saturate_cast": ops.saturate_cast,
            "as_dtype": dtypes.as_dtype,
            "DType": dtypes.DType,
            **dtypes.table(),
        },
        "tensorflow.compat.v1": lambda: _top() | sessions.top(),
        "tensorflow.compat.v2": _top,
        "tensorflow.python.client.device_lib": lambda: {"list_local_devices": lambda: ["/device:CPU:0"]},
        "tensorflow.python.framework.ops": lambda: {**sessions.top(), "RegisterGradient": sessions.RegisterGradient},
        **dict.fromkeys(
            (
                "tensorflow.python",
                "tensorflow.python.client",
                "tensorflow.python.framework",
                "tensorflow.contrib",
                "tensorflow.compiler",
                "tensorflow.compiler.tf2xla",
                "tensorflow.compiler.tf2xla.python",
            ),
            dict,
        ),
        "tensorflow.compiler.tf2xla.python.xla": xla.table,
        "tensorflow.experimental": dict,
        "tensorflow.experimental.numpy": numpy_names.Names,
        "tensorflow.nest": miscellany.nest,
        "tensorflow.audio": signals.audio_table,
        "tensorflow.debugging": assertions.table,
        "tensorflow.errors": assertions.errors,
        "tensorflow.random.experimental": random.experimental,
        "tensorflow.ragged": ragged.table,
        "tensorflow.sparse": sparse.table,
        "tensorflow.summary": summary.table,
        "tensorflow.summary.experimental": summary.experimental,
        "tensorflow.signal": signals.signal_table,
        "tensorflow.strings": strings.table,
        "tensorflow.test": miscellany.test,
        "tensorflow.train": lambda: modules.train_table() | examples.table(),
        "tensorflow.version": lambda: {"VERSION": _version()},
    }
    name = _without_version(fullname)
    found = tables[name]()
    module = "tensorflow" if name in _OLD else name
    if module in tensorflow_1.MODULES:
        found = {**found, **tensorflow_1.table(module, lambda other: tables[other]())}
    return {**found, **nn_losses.of_version_1()} if fullname == "tensorflow.compat.v1.nn" else found


def _top() -> dict[str, Any]:
    from pydtconv.compat.tensorflow import assertions, dtypes, functions, miscellany, modules, ragged, variable
    from pydtconv.loops import GradientTape, function

    return {
        "__version__": _version(),
        "GradientTape": GradientTape,
        "Module": modules.Module,
        "RaggedTensor": ragged.RaggedTensor,
        "Tensor": variable.Tensor,
        "function": function,
        "newaxis": None,
        **{name: importlib.import_module(f"keras.{name}") for name in _OF_KERAS},
        **sessions.top(),
        "RegisterGradient": sessions.RegisterGradient,
        **dtypes.table(),
        **functions.function_table(),
        **assertions.of_tf(),
        **miscellany.top(),
    }


def _version() -> str:
    return f"2.16.0+pydtconv.{__version__}"
