"""What Keras has and pydtconv does not, as a table: compares the public names of an installed Keras with ours.

KERAS_BACKEND=torch python tools/keras_coverage.py            prints docs/keras.md
KERAS_BACKEND=torch python tools/keras_coverage.py --write    writes it
"""

from __future__ import annotations

import argparse
import importlib
import inspect
from pathlib import Path
from types import ModuleType

PAGE = Path(__file__).parent.parent / "docs" / "keras.md"
#: public modules of Keras, and what each one is about
MODULES = {
    "keras": "top level",
    "keras.activations": "activations",
    "keras.applications": "networks",
    "keras.callbacks": "callbacks",
    "keras.constraints": "constraints",
    "keras.datasets": "data sets",
    "keras.distribution": "distribution",
    "keras.initializers": "initializers",
    "keras.layers": "layers",
    "keras.losses": "losses",
    "keras.metrics": "metrics",
    "keras.ops": "functions",
    "keras.optimizers": "optimizers",
    "keras.optimizers.schedules": "learning rate schedules",
    "keras.preprocessing": "preprocessing",
    "keras.random": "random numbers",
    "keras.regularizers": "regularizers",
    "keras.saving": "saving",
    "keras.utils": "utilities",
}
HEAD = """# What Keras has and pydtconv does not

This page compares the public names of Keras {version} with those of pydtconv. The command
`python tools/keras_coverage.py --write` makes it, with Keras installed. A name that is missing raises an error that
names it and the nearest thing that exists.

Recurrent, text and quantized layers are not planned: pydtconv is for convolutional networks.

| module | Keras has | pydtconv has of these |
| --- | --- | --- |
"""


def public(module: ModuleType) -> list[str]:
    names = [name for name in dir(module) if not name.startswith("_")]
    return [name for name in names if name != "src" and not inspect.ismodule(getattr(module, name))]


def has(name: str, attribute: str) -> bool:
    try:
        return hasattr(importlib.import_module(name.replace("keras", "pydtconv", 1)), attribute)
    except ImportError:
        return False


def page() -> str:
    import keras

    text = HEAD.format(version=keras.__version__)
    missing: dict[str, list[str]] = {}
    for name in MODULES:
        names = public(importlib.import_module(name))
        missing[name] = [each for each in names if not has(name, each)]
        text += f"| `{name}` | {len(names)} | {len(names) - len(missing[name])} |\n"
    for name, what in MODULES.items():
        if missing[name]:
            listed = ", ".join(f"`{each}`" for each in missing[name])
            text += f"\n## Missing {what} (`{name}`)\n\n{listed}\n"
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name} instead of printing it")
    if parser.parse_args().write:
        PAGE.write_text(page())
    else:
        print(page(), end="")


if __name__ == "__main__":
    main()
