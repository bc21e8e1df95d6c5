"""An argument parser whose errors list the names that the user may have meant."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn

from pydtconv.utils.suggest import did_you_mean


class Parser(argparse.ArgumentParser):
    """Plain-text help, no abbreviations, and near names in errors."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        kwargs.setdefault("allow_abbrev", False)
        super().__init__(*args, **kwargs)

    def parse_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]
        known, unknown = self.parse_known_args(args, namespace)
        if unknown:
            parser = self._subparser(getattr(known, "command", None)) or self
            parser.error(_unknown(unknown[0], parser))
        return known

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            choices = [str(choice) for choice in action.choices]
            is_command = isinstance(action, argparse._SubParsersAction)
            what = "command" if is_command else f"value of {'/'.join(action.option_strings)}"
            hint = did_you_mean(str(value), choices) or f"; expected one of {', '.join(choices)}"
            self.error(f"unknown {what} {str(value)!r}{hint}")

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\nTry '{self.prog} --help'.\n")

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
