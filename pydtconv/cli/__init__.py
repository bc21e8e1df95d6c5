"""The `pydtconv` command.

Each subcommand is a module of this package, named in COMMANDS, with
  SUMMARY                 one line for the list of commands; the module's docstring is the long help;
  add_arguments(parser)   what it takes;
  run(args) -> int        what it does; returns the exit status.
"""

from __future__ import annotations

import importlib
import io
import os
import select
import signal
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pydtconv._version import __version__
from pydtconv.cli.errors import CommandError, UsageError

if TYPE_CHECKING:
    from pydtconv.cli.parser import Parser

COMMANDS = (
    *("demo", "run", "train", "launch", "evaluate", "predict"),
    *("models", "summary", "plan", "tune", "simulate", "doctor"),
)

_DESCRIPTION = "Trains convolutional networks on CPUs, from Keras-style scripts."
_ENVIRONMENT = """\
environment:
  PYDTCONV_NUM_THREADS   threads of every kernel (default: OMP_NUM_THREADS, else the cores of this process)
  PYDTCONV_UKR           micro-kernel to use instead of the fastest one (`pydtconv doctor` lists them)
  PYDTCONV_CACHES        sizes of L1 and L2 that blocks are cut for, such as 48K,2M (`pydtconv doctor` shows them)
  PYDTCONV_LEVEL         build of the C library: generic, x86-64-v3, x86-64-v4 or x86-64-v4-bf16
  PYDTCONV_DATA          folder with data sets (mnist/, cifar-10-batches-bin/, ...)
  PYDTCONV_CACHE         folder for what tuning finds (default: ~/.cache/pydtconv)
  PYDTCONV_TUNE          seconds that tuning at first use may take, as `pydtconv train --tune` (default: 0, off)
  PYDTCONV_DUMP          folder into which every plan is written: its graph after each pass, schedule and memory
  PYDTCONV_DEVICE        where models run: cpu (default), gpu, gpu:1 or host
  PYDTCONV_DTYPE         policy of all layers: float32 (default), float64 or mixed_bfloat16
  PYDTCONV_MATMUL_PRECISION  how float32 is multiplied: highest (default), high or medium
  PYDTCONV_STALL_TIMEOUT seconds for which ranks wait for another before they end (default: 300; 0: for ever)
  KERAS_HOME             cache folder for downloaded data sets (default: ~/.keras)

`pydtconv COMMAND --help` tells more of a command.
"""
#: what errors begin with that are about a variable of the environment
_VARIABLES = "PYDTCONV_"


def build_parser() -> Parser:
    """The parser of the command and all its subcommands."""
    from pydtconv.cli.parser import Parser

    parser = Parser(prog="pydtconv", description=_DESCRIPTION, epilog=_ENVIRONMENT)
    parser.add_argument("--version", action="store_true", help="show the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands", parser_class=Parser)
    for name in COMMANDS:
        module = _module(name)
        subparser = commands.add_parser(name, help=module.SUMMARY, description=module.__doc__)
        module.add_arguments(subparser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command with these arguments (those of the process by default); returns its exit status."""
    try:
        try:
            return _main(argv)
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:
        from pydtconv.cli import processes

        print("pydtconv: interrupted", file=sys.stderr, flush=True)
        return processes.finish(130)
    except BrokenPipeError:
        if not _nobody_reads():
            raise
        return _end_output(128 + signal.SIGPIPE)
    except OSError as error:
        from pydtconv.support.disk_errors import DISK_ERRORS

        if error.errno not in DISK_ERRORS or error.filename is not None:  # of a file
            raise
        print(f"pydtconv: standard output: {error.strerror}", file=sys.stderr, flush=True)
        return _end_output(1)


def _end_output(status: int) -> int:
    """The exit status of a command that could not write all its output."""
    from pydtconv.cli import processes

    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the interpreter writes what is left at its end
    return processes.finish(status)


def _nobody_reads() -> bool:
    """Whether who read the output has had enough, such as `head`; another pipe may have broken."""
    output = select.poll()
    output.register(1, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in output.poll(0))


def _main(argv: Sequence[str] | None) -> int:
    try:
        from pydtconv import config  # noqa: F401  (reads the environment)

        return _parsed(argv)
    except (ImportError, OSError, ValueError) as error:
        if not str(error).startswith(_VARIABLES):
            raise
        print(f"pydtconv: {error}", file=sys.stderr, flush=True)
        return 2


def _parsed(argv: Sequence[str] | None) -> int:
    parser = build_parser()
    try:
        args = parser.parse_args(argv)
    except UsageError as error:
        from pydtconv.cli import processes

        processes.say_once(error.text)
        raise
    if args.version:
        print(f"pydtconv {__version__}")
        return 0
    if args.command is None:
        parser.print_help()
        return 0
    from pydtconv.cli import processes

    return processes.finish(_run(args))


def _run(args: Any) -> int:
    if isinstance(sys.stdout, io.TextIOWrapper) and args.command != "run":  # a script has what Python gives it
        sys.stdout.reconfigure(errors="surrogateescape")  # names of files are printed, whatever bytes they are
    try:
        return int(_module(args.command).run(args))
    except CommandError as error:
        if isinstance(error.__context__, BrokenPipeError):
            raise error.__context__ from None
        from pydtconv.cli import processes

        processes.say_in_turn(f"pydtconv {args.command}: {error}")
        return error.status


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"pydtconv.cli.{name}")
