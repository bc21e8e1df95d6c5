"""An argument parser whose errors list the names that the user may have meant."""

from __future__ import annotations

import argparse
import math
import re
import sys
import textwrap
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from pydtconv.cli import run_files
from pydtconv.cli.errors import UsageError
from pydtconv.suggest import did_you_mean, one_of
from pydtconv.support.sizes import as_bytes


def whole(least: int, most: int | None = None) -> Callable[[str], int]:
    """What reads an option's value: an integer from least to most."""

    def read(text: str) -> int:
        value = int(text) if text.strip().lstrip("+-").isascii() and text.strip().lstrip("+-").isdecimal() else None
        if value is None or value < least or (most is not None and value > most):
            span = f"of {least} or more" if most is None else f"from {least} to {most}"
            raise argparse.ArgumentTypeError(f"expected an integer {span}, got {text!r}")
        return value

    return read


def number(least: float, above: bool = False) -> Callable[[str], float]:
    """What reads an option's value: a finite number of `least` or more, or above it."""

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or value < least or (above and value == least):
            span = f"above {least:g}" if above else f"of {least:g} or more"
            raise argparse.ArgumentTypeError(f"expected a finite number {span}, got {text!r}")
        return value

    return read


def mebibytes(text: str) -> float:
    """What reads an option's value: MiB, or a text with a unit such as 1GB or 800MiB."""
    try:
        try:
            value = number(0)(text)
        except argparse.ArgumentTypeError:
            value = (as_bytes("", text) or 0) / (1 << 20)
        int(value * (1 << 20))
        return value
    except (OverflowError, ValueError):
        told = f"expected MiB, or a size such as 800MiB or 1GB, got {text!r}"
        raise argparse.ArgumentTypeError(told) from None


class _Help(argparse.RawDescriptionHelpFormatter):
    """Paragraphs are wrapped; lines that begin with spaces stay lines, whose second column is wrapped."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        found = []
        for line in re.sub(r"(?<=\S)\n(?=\S)", " ", text.strip()).split("\n"):
            column = re.match(r" +(\S+(?: \S+)* {2,})?", line)
            found.append(textwrap.fill(line, width, subsequent_indent=" " * (column.end() if column else 0)))
        return "\n".join(found) + "\n"


class Parser(argparse.ArgumentParser):
    """Plain-text help, no abbreviations, and near names in errors."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("formatter_class", _Help)
        kwargs.setdefault("allow_abbrev", False)
        super().__init__(*args, **kwargs)

    def parse_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]
        given = list(sys.argv[1:] if args is None else args)
        command = self._subparser(given[0]) if given else None
        if command is not None:
            try:
                given[1:] = run_files.expanded(given[1:], command._actions)
            except (OSError, ValueError) as error:
                command.error(f"--config: {error}")
        known, unknown = self.parse_known_args(given, namespace)
        if unknown:
            parser = command or self
            parser.error(_unknown(unknown[0], parser))
        if command is not None:
            known.options = run_files.given(known, command._actions)
        return known

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        if action.option_strings and arg_strings == ["--"]:  # argparse would make an empty list of it
            self.error(f"{'/'.join(action.option_strings)}: expected a value, got '--'")
        return super()._get_values(action, arg_strings)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            choices = [str(choice) for choice in action.choices]
            is_command = isinstance(action, argparse._SubParsersAction)
            what = "command" if is_command else f"value of {'/'.join(action.option_strings)}"
            hint = one_of(str(value), choices)
            self.error(f"unknown {what} {str(value)!r}{hint}")

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.prog}: {message}\nTry '{self.prog} --help'.")

    def _subparser(self, command: str | None) -> Parser | None:
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction) and command in action.choices:
                return action.choices[command]
        return None


def _unknown(argument: str, parser: Parser) -> str:
    if not argument.startswith("-"):
        return f"unexpected argument {argument!r}"
    options = [option for action in parser._actions for option in action.option_strings if option.startswith("--")]
    return f"unknown option {argument!r}{did_you_mean(argument.split('=')[0], options)}"
