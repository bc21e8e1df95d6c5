"""Runs an unmodified Keras script on pydtconv.

In the script `keras`, `tensorflow.keras` and their submodules are pydtconv's.  A name that pydtconv lacks raises an
error that says so, with the nearest thing there is.  Everything else is as with `python script.py`: the arguments after
the script are its own, its folder comes first on the path, its tracebacks and exit status are its own.

  pydtconv run mnist_convnet.py --epochs 3
"""

from __future__ import annotations

import io
import sys
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
    parser.add_argument("script", help="the Python file to run; - for what comes by standard input")
    parser.add_argument("arguments", nargs="...", metavar="...", help="the script's own arguments")


def run(args: object) -> int:
    processes.start(args)
    return run_script(args.script, args.arguments)  # type: ignore[attr-defined]


def run_script(script: str, arguments: list[str]) -> int:
    """Runs the file as `__main__`; returns the exit status that Python would end with."""
    source, name = _source(script), "<stdin>" if script == "-" else script
    keras_names.install()
    hooks.as_result.fill(as_tensor)
    module = ModuleType("__main__")
    if script != "-":
        module.__file__ = str(Path(script).absolute())
    module.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = module
    sys.argv = [script, *arguments]
    sys.path.insert(0, "" if script == "-" else str(Path(script).resolve().parent))
    try:
        exec(compile(source, name, "exec", dont_inherit=True), module.__dict__)
    except SystemExit:
        raise
    except BaseException as error:
        error = error.with_traceback(_from_script(error.__traceback__, name))
        sys.excepthook(type(error), error, error.__traceback__)
        return 130 if isinstance(error, KeyboardInterrupt) else 1
    return 0


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
