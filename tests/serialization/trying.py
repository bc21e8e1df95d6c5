"""Tries configs as files of models.  `python -m tests.serialization.trying` does so in a process with a limit.

A trial ends well where the file is refused by an error that names it and the value, or gives a model that works.
"""

from __future__ import annotations

import copy
import json
import math
import os
import queue
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import pydtconv
from pydtconv import saving
from pydtconv.files.reading import BadFileError
from pydtconv.models import model_files
from pydtconv.naming import to_snake_case
from tests.serialization.members import Member, has_example, members

#: bytes on top of what a process has; seconds of a trial, and of one that says how often something is computed; seconds
#: after which a process is ended
MEMORY, SECONDS, ROUNDS_SECONDS, HANGS = 1 << 30, 20, 2, 60
#: elements of a model's inputs and outputs up to which it is run
RUN = 1 << 20
#: outcomes that are as they should be
GOOD = ("refused", "works", "is large", "is not built")
#: arguments that all members of a kind have from one base class: one in so many members tries them
_INHERITED, _ONE_IN = ("activity_regularizer", "autocast", "dtype", "name", "trainable"), 6
#: arguments that say how often something is computed, which a file may choose
_ROUNDS = ("ns_steps",)
#: errors of operators that what they are given does not fit: NumPy's, when the model is run
_OF_OPERATORS = ("ValueError", "AxisError", "LinAlgError", "IndexError")


def without_weights() -> None:
    """Weights of files are not read from here on: other trials read those."""
    model_files.read_weights = lambda *arguments: None
    model_files.is_without_weights = lambda *arguments: True
    pydtconv.config.set_num_threads(1)
    signal.signal(signal.SIGALRM, _late)


def limit() -> None:
    """Limits the memory of this process."""
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, size + MEMORY))


def _late(*arguments: Any) -> None:
    raise TimeoutError("a trial takes long")


def write(path: Path, text: str) -> None:
    """A `.keras` file without weights."""
    path.unlink(missing_ok=True)  # writing over a file waits for the disk
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("metadata.json", "{}")
        archive.writestr("config.json", text)
        archive.writestr("model.weights.h5", b"")


def outcome(path: Path, named: tuple[str, ...] = ("",), seconds: float = SECONDS) -> str:
    """How a trial ends, in words.  named: texts of which the error of a file that is refused must hold one."""
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                model = saving.load_model(path)
            except BadFileError as error:
                told = str(error)
                if str(path) in told and any(name in told for name in named):
                    return "refused"
                return f"the error names neither {named} nor the file: {told[:400]}"
            return _run(model)
    except BaseException as error:
        return f"{type(error).__name__}: {str(error)[:400]}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _run(model: Any) -> str:
    """Predicts, and trains where the model is compiled."""
    if not isinstance(model, pydtconv.Model) or not model.built:  # files may hold a layer
        return "is not built"
    tensors = pydtconv.tree.flatten([model.inputs, model.outputs])
    if sum(math.prod(2 if n is None else n for n in each.shape) for each in tensors) > RUN:
        return "is large"
    x = [_ones([2 if n is None else n for n in each.shape], each.dtype) for each in model.inputs]
    try:
        model.predict(x, verbose=0)
        if getattr(model, "optimizer", None) is None:
            return "works"
        try:
            model.train_on_batch(x, np.eye(3, dtype="float32")[[0, 1]])
        except ValueError:
            model.train_on_batch(x, np.array([[0], [1]]))  # of classes by number
    except MemoryError:
        return "takes all memory when it is run"
    except TimeoutError:
        return "takes long when it is run"
    except Exception as error:
        return f"{type(error).__name__} when it is run"
    return "works"


def _ones(shape: list[int], dtype: str) -> np.ndarray:
    """Ones; of square matrices such that can be inverted, and are positive definite."""
    x = np.ones(shape, dtype)
    return x + np.eye(shape[-1], dtype=dtype) if len(shape) > 2 and shape[-1] == shape[-2] else x


def values(pipe: str) -> dict[str, Any]:
    """What each argument is set to, by name."""
    lookup = {"module": "keras.layers", "class_name": "StringLookup", "config": {"vocabulary": "/etc/passwd"}}
    long = {"class_name": "__numpy__", "config": {"value": [1, 2], "dtype": "S1000000000"}}
    return {
        "object": "object", "text": "abc", "path": "/etc/passwd", "pipe": pipe, "zeros": "/dev/zero",
        "nan": math.nan, "inf": math.inf, "-1": -1, "0": 0, "half": 0.5, "many": 5 * 10**8, "2**31": 2**31,
        "2**62": 2**62, "10**30": 10**30, "list": [3, 2**62], "null": None, "layer": lookup, "long": long,
    }  # fmt: skip


def _tried_arguments(member: Member) -> Iterator[str]:
    """All, or those that are not inherited."""
    tries_all = member.kind in ("function", "operator") or sum(member.id.encode()) % _ONE_IN == 0
    return (name for name in member.arguments() if tries_all or name not in _INHERITED)


def trials(member: Member, pipe: str) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """(what is changed, the text of config.json, what an error may name); the first one is the member as it is."""
    own = (member.name, "'it'", to_snake_case(member.name), getattr(member.target, "__name__", member.name))
    yield "", json.dumps(member.model()), ("",)
    for extent in (10**6, 2**31 - 1):
        for axis in range(1, 1 + max(map(len, member.shapes), default=0)):
            yield f"axis {axis} of {extent}", json.dumps(_widened(member.model(), axis, extent)), ("",)
    for place, argument in enumerate(_tried_arguments(member)):
        # the neighbours of an argument are set to the other half of the values, and members begin with either half
        for name, value in list(values(pipe).items())[(place + len(member.name)) % 2 :: 2]:
            named = ("StringLookup", "dtype", "data type") if name in ("layer", "long") else (repr(value)[:20],)
            yield f"{argument}={name}", json.dumps(member.model(**{argument: value})), (argument, *own, *named)
        text = json.dumps(member.model(**{argument: "DEEP"}))
        yield f"{argument}=deep", text.replace('"DEEP"', "[" * 10_000 + "]" * 10_000), ("nested",)


def _widened(model: dict[str, Any], axis: int, extent: int) -> dict[str, Any]:
    """The same with this extent of the inputs."""
    model = copy.deepcopy(model)
    for layer in model["config"]["layers"]:
        shape = layer["config"].get("batch_shape", ())
        if axis < len(shape):
            shape[axis] = extent
    return model


# --- in processes -----------------------------------------------------------------------------------------------------


class _Worker:
    """Another process that tries members, and says what it does."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.serialization.trying"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self.process.stdout or ():
            self.lines.put(line)
        self.lines.put("")

    def ask(self, number: int, skipped: int) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{number} {skipped}\n")
        self.process.stdin.flush()

    def answer(self) -> Any:
        """What it says next; a text says how it ended."""
        try:
            line = self.lines.get(timeout=HANGS)
        except queue.Empty:
            self.end()
            return "does not end"
        return json.loads(line) if line else f"ends the process: {self.process.wait()}"

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


def walk(numbers: Iterable[int]) -> tuple[int, list[str]]:
    """Tries all values of the members of these numbers: how many trials there were, and those that ended badly."""
    all_members, worker, count, bad = members(), _Worker(), 0, []
    try:
        for number in numbers:
            member, tried, about, as_it_is = all_members[number], 0, "", ""
            worker.ask(number, 0)
            while (said := worker.answer()) != []:
                if isinstance(said, str):  # it has ended, in the trial that it has begun
                    bad.append(f"{member.id} {about}: {said}")
                    worker = _Worker()
                    worker.ask(number, tried)
                elif len(said) == 1:
                    tried, about, count = tried + 1, said[0], count + 1
                else:
                    as_it_is = as_it_is if about else said[1]
                    if not about and has_example(member) and said[1] not in ("works", "is not built"):
                        bad.append(f"{member.id} as it is: {said[1]}")
                    if not _is_good(member, about, said[1], as_it_is):
                        bad.append(f"{member.id} {about}: {said[1]}")
    finally:
        worker.end()
    return count, bad


def _is_good(member: Member, about: str, found: str, as_it_is: str) -> bool:
    if found == "takes long when it is run":
        return about.partition("=")[0] in _ROUNDS
    refused_by_operator = found in [f"{error} when it is run" for error in _OF_OPERATORS]
    list_of_another_length = refused_by_operator and member.kind in ("loss", "metric")
    return (
        found in (*GOOD, as_it_is)
        or list_of_another_length
        or (refused_by_operator and member.kind in ("function", "operator"))
    )


def main() -> None:
    """Reads numbers of members and of trials to skip; writes [what] before a trial, [what, outcome] after it, []."""
    all_members = members()
    with tempfile.TemporaryDirectory() as folder:
        path, pipe = Path(folder) / "a.keras", Path(folder) / "pipe"
        os.mkfifo(pipe)
        without_weights()
        limit()
        for line in sys.stdin:
            number, skipped = map(int, line.split())
            for i, (about, text, named) in enumerate(trials(all_members[number], str(pipe))):
                if i >= skipped:
                    print(json.dumps([about]), flush=True)
                    write(path, text)
                    seconds = ROUNDS_SECONDS if about.partition("=")[0] in _ROUNDS else SECONDS
                    print(json.dumps([about, outcome(path, named, seconds)]), flush=True)
            print("[]", flush=True)


if __name__ == "__main__":
    main()
