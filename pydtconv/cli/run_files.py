"""Files of options: `--config run.toml`, and the file beside the weights that repeats a run.

A file has an option in each line, `learning-rate = 0.1`, and true or false for switches.  The words of the command line
come behind those of the file, and so replace them.  A table [result], which `train` writes, tells other commands what
came of it.
"""

from __future__ import annotations

import argparse
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

#: what the first line of a file that a run has written begins with
_FIRST = "# repeated by: pydtconv"
#: what other commands read of a file: its type, in a list where the word is a plural
_READ: dict[str, tuple[type, str]] = {
    **dict.fromkeys(("model", "dtype", "weights"), (str, "a text")),
    **{"names": (str, "texts"), "classes": (int, "an integer"), "shape": (int, "integers")},
}
#: what a file of a run does not repeat
_NOT = ("help", "config", "resume", "find_learning_rate", "find_batch")


def read(path: str) -> dict[str, Any]:
    """What a file has.  Raises ValueError that names it for what is no TOML, OSError where it cannot be read."""
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: expected a file of TOML: {error}") from None


def read_result(path: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options and the [result] of a file that `train` has written.

    Raises OSError and ValueError as `read`, and ValueError that names the file where they are not as `train` has them.
    """
    options = read(path)
    result = options.get("result")
    if not isinstance(result, dict) or not {"weights", "classes"} <= result.keys():
        raise ValueError(f"{path}: expected a table [result], as `pydtconv train` writes it")
    for key, value in ({key: options[key] for key in ("model", "dtype") if key in options} | result).items():
        kind, told = _READ.get(key, (None, ""))
        many = isinstance(value, list)
        if kind and (many != told.endswith("s") or {*map(type, value if many else [value])} - {kind}):
            raise ValueError(f"{path}: {key}: expected {told}, got {value!r}")
    return options, result


def words(options: Mapping[str, Any]) -> list[str]:
    """The options of a file as words of a command line."""
    found: list[str] = []
    for key, value in options.items():
        if isinstance(value, dict):
            continue
        name = f"--{key.replace('_', '-')}"
        if value is False:
            found += [f"--no-{name[2:]}"] if name == "--sync-batchnorm" else []
        elif value is True or isinstance(value, list):
            found += [name, *([] if value is True else map(str, value))]
        else:
            found.append(f"{name}={value}")  # a value may begin with a dash
    return found


def expanded(arguments: list[str], actions: list[argparse.Action]) -> list[str]:
    """The words of a command with those of the file that --config names before them.

    Raises ValueError and OSError as `read`.
    """
    if not any("--config" in action.option_strings for action in actions):
        return arguments
    path = None
    for i, word in enumerate(arguments):
        if word == "--config" and i + 1 < len(arguments):
            path = arguments[i + 1]
        elif word.startswith("--config="):
            path = word.partition("=")[2]
    return arguments if path is None else [*words(read(path)), *arguments]


def given(args: argparse.Namespace, actions: list[argparse.Action]) -> dict[str, Any]:
    """The options that are not as they are without any, as a file has them."""
    found: dict[str, Any] = {}
    for action in actions:
        value = getattr(args, action.dest, None)
        if action.dest in _NOT or not action.option_strings or value == action.default:
            continue
        if isinstance(value, dict):
            value = ",".join(f"{key}={part}" for key, part in value.items())
        found[action.dest.replace("_", "-")] = value
    return found


def _text(value: Any) -> str:
    """A value as TOML has it: as JSON, but with no pairs of surrogates, and with DEL escaped."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def may_replace(path: str) -> bool:
    """Whether `write` may write there: nothing is there, or what a run has written, and no file of the user's."""
    file = Path(path)
    if not file.is_file():
        return not file.exists()
    try:
        with file.open("rb") as opened:
            return opened.read(len(_FIRST)) == _FIRST.encode()
    except OSError:
        return False


def write(path: str, command: str, options: Mapping[str, Any], result: Mapping[str, Any]) -> None:
    """Writes a file that repeats a run, with its result.  Raises OSError."""
    from pydtconv.files.whole_file import write_whole

    name = Path(path).name
    lines = [f"{_FIRST} {command} --config {name if name.isprintable() else _text(name)}"]
    lines += [f"{key} = {_text(value)}" for key, value in options.items()]
    lines += ["", "[result]", *(f"{key} = {_text(value)}" for key, value in result.items() if value is not None)]
    data = ("\n".join(lines) + "\n").encode()
    write_whole(Path(path), lambda file: file.write(data), len(data))
