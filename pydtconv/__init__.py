"""Training of convolutional networks on CPUs, from Keras-style scripts.

The names are Keras 3's.  They are imported when they are first used, so that `import pydtconv` is quick.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

from pydtconv import hooks
from pydtconv._version import __version__ as __version__

# the BLAS of NumPy, where that is OpenBLAS and not loaded yet: its threads sleep after a product, where by default they
# go on spinning for some time on the cores that training has
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "8")

if TYPE_CHECKING:
    from pydtconv._version import version as version
    from pydtconv.dtype_policies import DTypePolicy as DTypePolicy
    from pydtconv.dtype_policies import FloatDTypePolicy as FloatDTypePolicy
    from pydtconv.graph.ir.variable import Variable as Variable
    from pydtconv.graph.passes.split import Split as Split
    from pydtconv.graph.plan import MemoryLimitError as MemoryLimitError
    from pydtconv.layers.base.input_spec import InputSpec as InputSpec
    from pydtconv.layers.base.layer import Layer as Layer
    from pydtconv.layers.base.symbolic import KerasTensor as KerasTensor
    from pydtconv.layers.base.symbolic import Operation as Operation
    from pydtconv.layers.input_layer import Input as Input
    from pydtconv.loops.tape import GradientTape as GradientTape
    from pydtconv.models.model import Functional as Functional
    from pydtconv.models.model import Model as Model
    from pydtconv.models.sequential import Sequential as Sequential

_MODULES = (
    "activations",
    "applications",
    "backend",
    "callbacks",
    "checkpoints",
    "config",
    "constraints",
    "conv",
    "datasets",
    "distribution",
    "dtype_policies",
    "fft",
    "gemm",
    "graph",
    "initializers",
    "layers",
    "loops",
    "losses",
    "metrics",
    "microkernels",
    "mixed_precision",
    "models",
    "ops",
    "optimizers",
    "preprocessing",
    "profiling",
    "random",
    "regularizers",
    "saving",
    "simulation",
    "tree",
    "utils",
)
_NAMES = {
    "DTypePolicy": "dtype_policies",
    "FloatDTypePolicy": "dtype_policies",
    "Functional": "models.model",
    "GradientTape": "loops.tape",
    "Initializer": "initializers",
    "Input": "layers.input_layer",
    "InputSpec": "layers.base.input_spec",
    "KerasTensor": "layers.base.symbolic",
    "Layer": "layers.base.layer",
    "Loss": "losses",
    "MemoryLimitError": "graph.plan",
    "Metric": "metrics",
    "Model": "models.model",
    "Operation": "layers.base.symbolic",
    "Optimizer": "optimizers",
    "Regularizer": "regularizers",
    "Sequential": "models.sequential",
    "Split": "graph.passes.split",
    "Variable": "graph.ir.variable",
    "function": "loops.function",
    "memory_limit": "engine.workspace",
    "version": "_version",
}
_OF_CONFIG = {"device": "use_device"}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"pydtconv.{name}")
    if name in _NAMES:
        return getattr(importlib.import_module(f"pydtconv.{_NAMES[name]}"), name)
    if name in _OF_CONFIG:
        return getattr(importlib.import_module("pydtconv.config"), _OF_CONFIG[name])
    from pydtconv.suggest import missing

    raise AttributeError(missing("pydtconv", name, __dir__()))


#: the room that fills a hook when it is imported, where that has not been done before
_FILLED_BY = {
    "compute": "kernels.array_calls",
    "convolve_on_device": "devices.array_functions",
    "device": "devices.names",
    "device_algorithms": "kernels.gpu.convolutions",
    "initializer": "initializers",
    "run_as_written": "loops.function",
    "tape": "loops.tape",
    "tracer": "profiling.recorder",
    "transform_on_device": "devices.array_functions",
    "variable": "graph.ir.variable",
}
hooks.set_importer(lambda hook: importlib.import_module(f"pydtconv.{_FILLED_BY[hook]}"))
hooks.public_room.fill(__getattr__)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *_NAMES, *_OF_CONFIG})
