"""Runs an unmodified Keras script on pydtconv.

In the script `keras`, `tensorflow.keras` and their submodules are pydtconv's.  A name that pydtconv lacks raises an
error that says so, with the nearest thing there is.  Everything else is as with `python script.py`: the arguments after
the script are its own, its folder comes first on the path, its tracebacks and exit status are its own.

  pydtconv run mnist_convnet.py --epochs 3
  pydtconv run app.zip                        a zip file or a folder with a __main__.py
  pydtconv run -m package.train --epochs 3    a module, looked for from the current folder on
"""

from __future__ import annotations

import importlib.util
import io
import os
import pkgutil
import sys
from functools import partial
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, TracebackType

from pydtconv import hooks, replica
from pydtconv.cli import processes
from pydtconv.cli.errors import CommandError
from pydtconv.cli.parser import Parser
from pydtconv.compat import keras_names
from pydtconv.compat.tensorflow.arrays import as_tensor
from pydtconv.suggest import did_you_mean

SUMMARY = "run a Keras script with pydtconv in the place of keras and tensorflow.keras"


def add_arguments(parser: Parser) -> None:
    processes.add_arguments(parser)
    parser.add_argument("-m", dest="module", action="store_true", help="the script is a module's name, as python -m")
    parser.add_argument(
        "script", help="the Python file to run, or a folder or zip file; - for what comes by standard input"
    )
    parser.add_argument("arguments", nargs="...", metavar="...", help="the script's own arguments")


def run(args: object) -> int:
    processes.start(args)
    return run_script(args.script, args.arguments, args.module)  # type: ignore[attr-defined]


def run_script(script: str, arguments: list[str], is_module: bool = False) -> int:
    """Runs a file, the `__main__.py` of a folder or zip file, or a module; returns the exit status of Python."""
    keras_names.install()
    hooks.as_result.fill(as_tensor)
    module = ModuleType("__main__")
    module.__dict__["__builtins__"] = __builtins__
    sys.argv = [script, *arguments]
    name = "<stdin>" if script == "-" else script
    if is_module or (script != "-" and pkgutil.get_importer(script)):
        sys.path.insert(0, os.getcwd() if is_module else script)
        spec = _module_spec(script) if is_module else _main_spec(script)
        name = module.__file__ = str(spec.origin)
        module.__spec__, module.__loader__, module.__package__ = spec, spec.loader, spec.parent
        code = partial(spec.loader.get_code, spec.name)  # type: ignore[union-attr]
        sys.argv[0] = name if is_module else script
    else:
        code = partial(compile, _source(script), name, "exec", dont_inherit=True)
        if script != "-":
            module.__file__ = str(Path(script).absolute())
        sys.path.insert(0, "" if script == "-" else str(Path(script).resolve().parent))
    sys.modules["__main__"] = module
    try:
        exec(code(), module.__dict__)
    except SystemExit:
        raise
    except BaseException as error:
        error = error.with_traceback(_from_script(error.__traceback__, name))
        sys.excepthook(type(error), error, error.__traceback__)
        return 130 if isinstance(error, KeyboardInterrupt) else 1
    return 0


def _main_spec(folder: str) -> ModuleSpec:
    """Where the `__main__` of a folder or zip file is.  Raises CommandError where there is none."""
    spec = pkgutil.get_importer(folder).find_spec("__main__")  # type: ignore[union-attr]
    if spec is None:
        raise CommandError(f"expected a file __main__.py in {folder!r}, which is what runs; found none")
    return spec


def _module_spec(name: str) -> ModuleSpec:
    """Where a module is, of a package its `__main__`.  Raises CommandError where there is no such module of Python."""
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
            name = f"{name}.__main__, as {name} is a package"
    except (ImportError, ValueError) as error:
        raise CommandError(f"-m: cannot find {name}: {error}") from None
    if spec is None or not hasattr(spec.loader, "get_code"):
        raise CommandError(f"-m: expected a module as in `import {name.split(',')[0]}`, found no {name}")
    return spec


def _source(script: str) -> bytes:
    """What the file holds.  Raises CommandError where it cannot be opened."""
    if script == "-":
        if replica.current().size > 1:
            raise CommandError("expected a file that all processes read, got '-', the standard input of one of them")
        return sys.stdin.buffer.read()
    path = Path(script)
    try:
        with io.open_code(str(path.absolute())) as file:
            return file.read()
    except OSError as error:
        neighbours = [str(other) for other in path.parent.glob("*.py")] if path.parent.is_dir() else []
        raise CommandError(f"cannot open {script!r} ({error.strerror}){did_you_mean(script, neighbours)}") from None


def _from_script(trace: TracebackType | None, script: str) -> TracebackType | None:
    """The traceback from the script's first frame on; a syntax error has none."""
    while trace is not None and trace.tb_frame.f_code.co_filename != script:
        trace = trace.tb_next
    return trace
