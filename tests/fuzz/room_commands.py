"""The command line and the environment with random values: an exit status and a short message, never a traceback."""

from __future__ import annotations

import atexit
import contextlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from pydtconv import config
from pydtconv.cli import main
from tests.fuzz import trials

COMMANDS, CHILDREN = 8, 1
SECONDS, MESSAGE = 30, 1500
_folder: Path

NUMBERS = (
    "0",
    "-1",
    "1",
    "2",
    "7",
    "1.5",
    "1e3",
    "nan",
    "inf",
    "-inf",
    "1e400",
    "0x10",
    "1_000",
    " 3 ",
    "+2",
    "²",
    "٣",
)
LARGE = ("2147483647", "2147483648", "4294967296", "9223372036854775808", "9" * 30, "9" * 5000)
TEXTS = ("", " ", "x", "-", "--", "-x", "--model", "é", "\udcff", "%s", "{}", "a" * 3000, "\n", "None", "True")
SIZES = ("1GB", "10MiB", "800MB", "1 GB", "GB", "-1GB", "nanGB", "1e9GB", "0KiB")
MODELS = ("mlp", "mlp", "mlp", "lenet", "resnet20", "MLP", "resnet34x")
#: in the folder that the room makes; none can be made a file or a folder by mistake
PATHS = ("new", "new/deep/er", "file", "file/below", "folder", "folder/", "damaged.weights.h5", "/proc/none", "a" * 300)

#: by option, what its value is drawn from besides TEXTS; None: it takes none
MODEL = {"--model": MODELS}
VARIANT = {"--variant": ("BASE", "cgt+pm", "AUTO", "CGT+")}
SHAPE = dict.fromkeys(("--image-size", "--channels", "--classes"), NUMBERS + LARGE)
OPTIONS: dict[str, dict[str, Any]] = {
    "summary": MODEL | SHAPE,
    "plan": MODEL
    | SHAPE
    | VARIANT
    | {"--batch-size": NUMBERS + LARGE, "--memory-limit": NUMBERS + LARGE + SIZES, "--picture": PATHS, "--dump": PATHS},
    "doctor": {"--quick": None},
    "train": MODEL
    | VARIANT
    | {
        "--weights": PATHS,
        "--dataset": ("digits", "digit", "mnist"),
        "--data": PATHS,
        "--image-size": NUMBERS,
        "--classes": NUMBERS + LARGE,
        "--batch-size": NUMBERS + LARGE,
        "--samples": NUMBERS,
        "--epochs": NUMBERS,
        "--optimizer": ("sgd", "adam", "momentum"),
        "--learning-rate": NUMBERS + LARGE,
        "--base-batch-size": NUMBERS + LARGE,
        "--warmup-epochs": NUMBERS + LARGE,
        "--weight-decay": NUMBERS + LARGE,
        "--memory-limit": NUMBERS + LARGE + SIZES,
        "--workspace-limit": NUMBERS + LARGE,
        "--checkpoint": PATHS,
        "--save-every": NUMBERS + LARGE,
        "--keep": NUMBERS + LARGE,
        "--profile": PATHS,
        "--output": PATHS,
        "--seed": NUMBERS + LARGE,
        "--bucket-size": (*NUMBERS, *LARGE, "tune"),
        "--wire": ("float32", "bfloat16", "float16"),
        **dict.fromkeys(("--skip-bad-files", "--augment", "--resume", "--blocking", "--check-gradients")),
    },
}
#: what makes a command of that kind quick, where nothing else is drawn
BASE = {
    "summary": ["--model", "mlp"],
    "plan": ["--model", "mlp", "--batch-size", "2"],
    "doctor": ["--quick"],
    "train": ["--model", "mlp", "--dataset", "digits", "--samples", "8", "--epochs", "1", "--output", "new"],
}
ENVIRONMENT: dict[str, tuple[str, ...]] = {
    "PYDTCONV_NUM_THREADS": NUMBERS + LARGE + ("1,2",),
    "OMP_NUM_THREADS": ("0", "-1", "x", "2", "2,1", "²"),
    "PYDTCONV_UKR": ("none", "auto", "avx2", "generic"),
    "PYDTCONV_LEVEL": ("generic", "x86-64-v3", "x86-64-v4", "x86-64-v4-bf16", "x86-64-v9", "../.."),
    "PYDTCONV_CACHE": PATHS,
    "PYDTCONV_DATA": PATHS,
    "KERAS_HOME": PATHS,
    "PYDTCONV_TUNE": NUMBERS[:2] + NUMBERS[7:] + ("0", "x"),
    "PYDTCONV_DUMP": PATHS,
    "PYDTCONV_STALL_TIMEOUT": NUMBERS + LARGE,
}


def prepare() -> None:
    """Works in a folder of its own from here on, and imports what commands import when they run."""
    global _folder
    for name in ENVIRONMENT:
        os.environ.pop(name, None)
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path.cwd()), *os.environ.get("PYTHONPATH", "").split(os.pathsep)])
    _folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    atexit.register(shutil.rmtree, _folder, ignore_errors=True)
    os.environ["PYDTCONV_CACHE"] = os.environ["KERAS_HOME"] = str(_folder)
    os.environ["PYDTCONV_DATA"] = str(_folder / "work")
    _tidy()
    for kind, base in BASE.items():
        _command([kind, *base])


def run(seed: int) -> None:
    random = np.random.default_rng(seed)
    for _ in range(COMMANDS):
        words = _words(random)
        trials.keep("words.txt", repr(words).encode())
        _tidy()
        trials.count(words[0], _command(words))
    for _ in range(CHILDREN):
        names = random.choice(list(ENVIRONMENT), int(random.integers(1, 3)), replace=False)
        values = {str(name): _value(random, ENVIRONMENT[str(name)]) for name in names}
        trials.keep("environment.txt", repr(values).encode())
        _tidy()
        for name, outcome in _child(values, random).items():
            trials.count(name, outcome)


def _tidy() -> None:
    """A folder to work in with a file, a folder and a file that is damaged."""
    os.chdir(_folder)
    place = _folder / "work"
    shutil.rmtree(place, ignore_errors=True)
    (place / "folder" / "train").mkdir(parents=True)
    (place / "file").write_text("text")
    (place / "damaged.weights.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    os.chdir(place)


def _value(random: np.random.Generator, values: tuple[str, ...]) -> str:
    pool = values if random.random() < 0.8 else TEXTS
    return pool[random.integers(len(pool))]


def _words(random: np.random.Generator) -> list[str]:
    """A command with one to three options drawn; what it takes besides is that of BASE."""
    kind = str(random.choice(("summary", "plan", "plan", "train", "train", "train", "doctor")))
    words = [kind, *BASE[kind]]
    names = list(OPTIONS[kind])
    for _ in range(int(random.integers(1, 4))):
        if random.random() < 0.05:
            words.append(TEXTS[random.integers(len(TEXTS))])
            continue
        name = names[random.integers(len(names))]
        values = OPTIONS[kind][name]
        value = [] if values is None else [_value(random, values)]
        words += [f"{name}={value[0]}"] if value and random.random() < 0.3 else [name, *value]
    return words


def _command(words: list[str]) -> str:
    """Runs a command in this process; raises AssertionError where it does not end as it should."""
    streams = [io.TextIOWrapper(io.BytesIO(), "utf-8", errors=errors) for errors in ("strict", "backslashreplace")]
    begun = time.process_time()
    with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
        try:
            status = main(words)
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        except BaseException as error:
            raise AssertionError(f"pydtconv {_short(words)}: {error!r:.500}") from error
    config.set_conv_variant("AUTO")
    config.set_conv_workspace_limit(None)
    config.set_conv_tuning(0)
    for stream in streams:
        stream.flush()
    told = streams[1].buffer.getvalue().decode()  # type: ignore[attr-defined]
    _check(status, told, words)
    if time.process_time() - begun > SECONDS:
        raise AssertionError(f"pydtconv {_short(words)}: {time.process_time() - begun:.0f} s")
    return "done" if status == 0 else "refused"


def _child(values: dict[str, str], random: np.random.Generator) -> dict[str, str]:
    """A process with these variables; how it ended, by variable."""
    words = (["doctor", "--quick"], ["plan", "--model", "mlp", "--batch-size", "2"], ["summary", "--model", "mlp"])
    chosen = words[random.integers(len(words))]
    command = [sys.executable, "-m", "pydtconv", *chosen]
    ended = subprocess.run(command, env=os.environ | values, capture_output=True, timeout=120)
    _check(ended.returncode, ended.stderr.decode(errors="replace"), [*(f"{n}={v}" for n, v in values.items()), *chosen])
    return dict.fromkeys(values, "refused" if ended.returncode else "done")


def _check(status: int, told: str, words: list[str]) -> None:
    if status not in (0, 1, 2):
        raise AssertionError(f"{_short(words)}: exit status {status}: {told[-2000:]}")
    if "Traceback" in told or len(told) > MESSAGE + 2 * sum(map(len, words)):
        raise AssertionError(f"{_short(words)}: {told[-3000:]}")
    if status and not told.strip():
        raise AssertionError(f"{_short(words)}: exit status {status} without a word")


def _short(words: list[str]) -> str:
    return " ".join(f"{word!r:.60}" for word in words)
