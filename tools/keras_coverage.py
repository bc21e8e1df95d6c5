"""What Keras has and pydtconv does not, as a table: compares the public names of an installed Keras with ours.

python tools/keras_coverage.py            prints docs/keras.md
python tools/keras_coverage.py --write    writes it

Keras runs on PyTorch, unless KERAS_BACKEND names another backend.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import os
import textwrap
from pathlib import Path
from types import ModuleType

from pydtconv.absent import REASONS

PAGE = Path(__file__).parent.parent / "docs" / "keras.md"
#: public modules of Keras, and what each one is about
MODULES = {
    "keras": "top level",
    "keras.activations": "activations",
    "keras.applications": "networks",
    "keras.backend": "backend",
    "keras.callbacks": "callbacks",
    "keras.config": "settings",
    "keras.constraints": "constraints",
    "keras.datasets": "data sets",
    "keras.datasets.boston_housing": "a data set",
    "keras.datasets.california_housing": "a data set",
    "keras.datasets.imdb": "a data set",
    "keras.datasets.reuters": "a data set",
    "keras.distillation": "distillation",
    "keras.distribution": "distribution",
    "keras.dtype_policies": "policies",
    "keras.export": "export",
    "keras.initializers": "initializers",
    "keras.layers": "layers",
    "keras.losses": "losses",
    "keras.metrics": "metrics",
    "keras.models": "models",
    "keras.ops": "functions",
    "keras.ops.image": "functions of images",
    "keras.ops.linalg": "functions of linear algebra",
    "keras.ops.nn": "functions of networks",
    "keras.ops.numpy": "functions of NumPy",
    "keras.optimizers": "optimizers",
    "keras.optimizers.schedules": "learning rate schedules",
    "keras.preprocessing": "preprocessing",
    "keras.preprocessing.image": "preprocessing of images",
    "keras.preprocessing.sequence": "preprocessing of sequences",
    "keras.quantizers": "quantizers",
    "keras.random": "random numbers",
    "keras.regularizers": "regularizers",
    "keras.saving": "saving",
    "keras.tree": "structures",
    "keras.utils": "utilities",
    "keras.utils.bounding_boxes": "boxes in images",
    "keras.visualization": "pictures",
    "keras.wrappers": "wrappers for scikit-learn",
}
#: where the part of the page begins that is written by hand
OF_TESTS = "\n## Keras's own tests\n"
HEAD = """# What Keras has and pydtconv does not

This page compares the public names of Keras {version} with those of pydtconv. The command
`python tools/keras_coverage.py --write` makes it, with Keras installed. A name that is missing raises an error that
names it and the nearest thing that exists.

## Names, and why they are not there
"""
COUNTS = """
## Counts

| module | Keras has | pydtconv has of these |
| --- | --- | --- |
"""


def public(module: ModuleType) -> list[str]:
    names = [name for name in dir(module) if not name.startswith("_")]
    return [name for name in names if name != "src" and not inspect.ismodule(getattr(module, name))]


def ours(name: str) -> ModuleType | None:
    """Our module in the place of one of Keras, or None."""
    name = name.replace("keras", "pydtconv", 1)
    try:
        return importlib.import_module(name)
    except ImportError:
        parent, _, last = name.rpartition(".")
        return getattr(importlib.import_module(parent), last, None) if parent else None


def has(name: str, attribute: str) -> bool:
    found = getattr(ours(name), attribute, None)
    return found is not None and not inspect.ismodule(found)


def missing() -> dict[str, list[str]]:
    """The public names of each module of Keras that ours does not have."""
    return {name: [each for each in public(importlib.import_module(name)) if not has(name, each)] for name in MODULES}


def unexplained(found: dict[str, list[str]]) -> list[str]:
    """Missing names, with their modules, that stand under no reason."""
    explained = {(module, each) for _, names in REASONS for module, listed in names.items() for each in listed.split()}
    return [f"{module}.{each}" for module, names in found.items() for each in names if (module, each) not in explained]


def filled(text: str) -> str:
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def page() -> str:
    """The text of docs/keras.md, of which the part on Keras's tests is kept.

    Raises ValueError where a missing name has no reason.
    """
    os.environ.setdefault("KERAS_BACKEND", "torch")
    import keras

    found = missing()
    if unexplained(found):
        raise ValueError(f"expected a reason in REASONS for each missing name, got none for {unexplained(found)}")
    text = HEAD.format(version=keras.__version__)
    for reason, names in REASONS:
        listed = [
            f"`{module}.{each}`"
            for module, all_names in names.items()
            for each in all_names.split()
            if each in found[module]
        ]
        text += f"\n{filled(reason + ':')}\n{filled(', '.join(listed) + '.')}\n" if listed else ""
    text += COUNTS
    for name in MODULES:
        count = len(public(importlib.import_module(name)))
        text += f"| `{name}` | {count} | {count - len(found[name])} |\n"
    return text + "".join(PAGE.read_text().partition(OF_TESTS)[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name} instead of printing it")
    if parser.parse_args().write:
        PAGE.write_text(page())
    else:
        print(page(), end="")


if __name__ == "__main__":
    main()
