"""Stand-ins for tools/scripts.py: no downloads, small random data, short fits.

python tools/scripts.py FOLDER --stand-ins tools/stand_ins.py

`keras.datasets` gives a few random images, `get_file` random pictures, folders of images that are missing are made,
networks of `keras.applications` have random weights, `fit` ends after two steps of at most eight samples, and so does
`evaluate`.  Nothing here is pydtconv's: under Keras itself a script has the same stand-ins.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from PIL import Image

STEPS = int(os.environ.get("STAND_IN_STEPS", "2"))
BATCH = int(os.environ.get("STAND_IN_BATCH", "8"))
#: shape of images, number of classes
IMAGES = {
    "mnist": ((28, 28), 10),
    "fashion_mnist": ((28, 28), 10),
    "cifar10": ((32, 32, 3), 10),
    "cifar100": ((32, 32, 3), 100),
}
TRAIN, TEST = map(int, os.environ.get("STAND_IN_IMAGES", "64,32").split(","))


def modules(name: str) -> Iterator[ModuleType]:
    """A module of Keras under all its names, and the module that these stand for."""
    for root in ("keras", "tensorflow.keras"):
        try:
            module = importlib.import_module(f"{root}.{name}" if name else root)
        except ImportError:
            continue
        yield module
        if "_target" in vars(module):
            yield vars(module)["_target"]


def replace(name: str, function: str, by: Callable[..., Any]) -> None:
    """Puts `by(old, ...)` in the place of a function of a module of Keras."""
    for module in {id(module): module for module in modules(name)}.values():
        if hasattr(module, function):
            setattr(module, function, wrapped(getattr(module, function), by))


def wrapped(old: Callable[..., Any], by: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(old)
    def function(*args: Any, **kwargs: Any) -> Any:
        return by(old, *args, **kwargs)

    return function


def load_data(name: str) -> Callable[..., Any]:
    shape, classes = IMAGES[name]

    def load(old: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        random = np.random.default_rng(0)
        labels = (-1, 1) if len(shape) == 3 else (-1,)
        return tuple(
            (
                random.integers(0, 256, (n, *shape)).astype("uint8"),
                (np.arange(n) % classes).reshape(labels).astype("uint8"),
            )
            for n in (TRAIN, TEST)
        )

    return load


def picture(path: str | Path, size: tuple[int, int] = (96, 64), channels: int = 3) -> str:
    """A file with a random picture of this width and height."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    shape = (size[1], size[0], channels) if channels > 1 else (size[1], size[0])
    pixels = np.random.default_rng(len(str(path))).integers(0, 256, shape).astype("uint8")
    Image.fromarray(pixels).save(path)
    return str(path)


def get_file(old: Callable[..., Any], fname: Any = None, origin: str = "", *args: Any, **kwargs: Any) -> str:
    name = str(fname or origin).split("/")[-1].split("?")[0]
    if name.lower().endswith((".jpg", ".jpeg", ".png")):
        return picture(Path("stand_ins", name))
    raise FileNotFoundError(f"there is no stand-in for the download {name}")


def image_folder(folder: Any) -> None:
    """Makes a folder of images of two classes, if it is not there."""
    if not os.path.isdir(folder):
        for kind in ("a", "b"):
            for number in range(8):
                picture(Path(folder, kind, f"{number}.jpg"))


def from_directory(old: Callable[..., Any], directory: Any, *args: Any, **kwargs: Any) -> Any:
    image_folder(directory)
    if kwargs.get("batch_size") is not None:
        kwargs["batch_size"] = min(BATCH, kwargs["batch_size"])
    return old(directory, *args, **kwargs)


def flow_from_directory(old: Callable[..., Any], self: Any, directory: Any, *args: Any, **kwargs: Any) -> Any:
    image_folder(directory)
    return old(self, directory, *args, **kwargs)


def random_weights(old: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    given = inspect.signature(old).bind(*args, **kwargs)
    given.apply_defaults()
    given.arguments["weights"] = None
    return old(*given.args, **given.kwargs)


def short(old: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """`fit` or `evaluate` of a few steps."""
    signature = inspect.signature(old)
    given = signature.bind(*args, **kwargs)
    values = given.arguments
    if isinstance(values.get("x"), np.ndarray | list | tuple | dict):
        values["batch_size"] = min(BATCH, values.get("batch_size") or BATCH)
    if "epochs" in values:
        values["epochs"] = min(values["epochs"], values.get("initial_epoch", 0) + 1)
    steps = "steps_per_epoch" if "steps_per_epoch" in signature.parameters else "steps"
    values[steps] = min(STEPS, values.get(steps) or STEPS)
    if values.get("validation_data") is not None or values.get("validation_split"):
        values["validation_steps"] = 1
    return old(*given.args, **given.kwargs)


def small_batches(old: Callable[..., Any], self: Any, batch_size: Any, *args: Any, **kwargs: Any) -> Any:
    return old(self, min(int(batch_size), BATCH), *args, **kwargs)


def main() -> None:
    for name in IMAGES:
        replace(f"datasets.{name}", "load_data", load_data(name))
    replace("utils", "get_file", get_file)
    for name in ("utils", "preprocessing"):
        replace(name, "image_dataset_from_directory", from_directory)
    keras = importlib.import_module("keras")
    for name in ("fit", "evaluate"):
        setattr(keras.Model, name, wrapped(getattr(keras.Model, name), short))
    generator = getattr(importlib.import_module("keras.preprocessing.image"), "ImageDataGenerator", None)
    if generator is not None:  # Keras 3 has none
        generator.flow_from_directory = wrapped(generator.flow_from_directory, flow_from_directory)
    for name in dir(keras.applications):
        member = getattr(keras.applications, name)
        nets = [member] if inspect.isfunction(member) else []
        for net in nets:
            replace("applications", net.__name__, random_weights)
        if isinstance(member, ModuleType):
            for function in [item for item in dir(member) if inspect.isfunction(getattr(member, item))]:
                if "weights" in inspect.signature(getattr(member, function)).parameters:
                    replace(f"applications.{name}", function, random_weights)
    try:
        dataset = importlib.import_module("tensorflow").data.Dataset
    except ImportError:
        return
    dataset.batch = wrapped(dataset.batch, small_batches)


sys.setrecursionlimit(10_000)
main()
