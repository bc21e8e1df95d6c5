"""Runs every script of a folder under `pydtconv run` and says how far each one comes, as a table.

python tools/scripts.py FOLDER                            every *.py in it, each in a process of its own
python tools/scripts.py FOLDER --timeout 60 --jobs 2      at most a minute each, two at a time
python tools/scripts.py FOLDER --stand-ins small.py       small.py runs before each script, in its process, with
                                                          its name as argument: it can replace downloads
python tools/scripts.py FOLDER --leave-out reasons.txt    lines "pattern: reason", of scripts that are not started
python tools/scripts.py FOLDER --csv FILE --markdown FILE --logs FOLDER
python tools/scripts.py FOLDER --keras                    under the Keras that this Python has

A script's results are "finished", "stopped in pydtconv", "stopped elsewhere" (a package, data or a download is missing,
or the script itself ended), and "time" (the limit is over).  Scripts run in a temporary folder that has links to all
that is beside the script.  The exit status is 1 where a script stopped in pydtconv or ran out of time.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import faulthandler
import fnmatch
import os
import re
import runpy
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from urllib.error import URLError

FINISHED, OURS, ELSEWHERE, TIME, LEFT_OUT = (
    "finished",
    "stopped in pydtconv",
    "stopped elsewhere",
    "time",
    "left out",
)
HEAD = ("script", "result", "where", "seconds")
#: the table stands behind this line in a file that has it
MARK = "<!-- table of tools/scripts.py -->"
#: what is not there where a script stops with an error of such a class
MISSING = {
    ImportError: "package",
    URLError: "download",
    ConnectionError: "download",
    FileNotFoundError: "data",
    SyntaxError: "Python 3",
}
#: packages that are pydtconv's under `pydtconv run`
ROOTS = ("keras", "tf_keras", "tensorflow", "pydtconv")
LONGEST = 100


@dataclass(frozen=True)
class Row:
    """How far one script came."""

    script: str
    result: str
    where: str
    seconds: float

    def texts(self) -> tuple[str, str, str, str]:
        return self.script, self.result, self.where, f"{self.seconds:.0f}"


def main(arguments: list[str] | None = None) -> int:
    args = _parser().parse_args(arguments)
    reasons = list(_reasons(args.leave_out)) if args.leave_out else []
    scripts = [(name, path) for folder in args.folders for name, path in _scripts(folder, len(args.folders) > 1)]
    if not scripts:
        print(f"expected *.py in {', '.join(map(str, args.folders))}, found none", file=sys.stderr)
        return 2

    def row(item: tuple[str, Path]) -> Row:
        reason = next((why for pattern, why in reasons if fnmatch.fnmatch(item[0], pattern)), None)
        return Row(item[0], LEFT_OUT, reason, 0) if reason else _run(*item, args)

    rows = []
    with ThreadPoolExecutor(args.jobs) as pool:
        for done in pool.map(row, scripts):
            rows.append(done)
            print("  ".join(done.texts()[:3]), f"({done.seconds:.0f} s)", flush=True)
    counts = Counter(row.result for row in rows)
    print(", ".join(f"{counts[result]} {result}" for result in (FINISHED, OURS, ELSEWHERE, TIME, LEFT_OUT)))
    if args.csv:
        with args.csv.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([HEAD, *(row.texts() for row in rows)])
    if args.markdown:
        _write_markdown(args.markdown, rows)
    return int(counts[OURS] + counts[TIME] > 0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="folder of scripts, or one script")
    parser.add_argument("--timeout", type=float, default=120, metavar="SECONDS", help="for each script (default: 120)")
    parser.add_argument(
        "--stand-ins", action="append", type=Path, default=[], metavar="FILE", help="Python file that runs before"
    )
    parser.add_argument("--leave-out", type=Path, metavar="FILE", help='lines "pattern: reason"')
    parser.add_argument("--keras", action="store_true", help="run under the Keras that this Python has")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="scripts at a time (default: 1)")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write the table")
    parser.add_argument(
        "--markdown", type=Path, metavar="FILE", help=f"write the table, behind {MARK} if that is there"
    )
    parser.add_argument("--logs", type=Path, metavar="FOLDER", help="keep what each script printed")
    return parser


def _reasons(path: Path) -> Iterator[tuple[str, str]]:
    """Patterns of names, and why these scripts are not started."""
    for line in path.read_text().splitlines():
        pattern, _, why = line.partition(":")
        if why.strip() and not line.startswith("#"):
            yield pattern.strip(), why.strip()


def _scripts(folder: Path, several: bool) -> list[tuple[str, Path]]:
    """Names as in the table, and files."""
    if folder.is_file():
        return [(folder.name, folder)]
    root = folder.resolve().parent if several else folder.resolve()
    files = sorted(path for path in folder.resolve().rglob("*.py") if path.name != "__init__.py")
    return [(path.relative_to(root).as_posix(), path) for path in files]


def _run(name: str, script: Path, args: argparse.Namespace) -> Row:
    """Runs a script in a process of its own."""
    script = script.resolve()
    with tempfile.TemporaryDirectory() as folder:
        work, report = Path(folder, "work"), Path(folder, "report")
        work.mkdir()
        for path in script.parent.iterdir():
            (work / path.name).symlink_to(path)
        stand_ins = [path.resolve() for path in args.stand_ins]
        command = [
            sys.executable,
            __file__,
            "--child",
            report,
            str(args.timeout),
            "keras" * args.keras,
            script,
            *stand_ins,
        ]
        log = Path(folder, "log")
        if args.logs:
            log = args.logs.resolve() / f"{name.replace('/', '.')}.txt"
            log.parent.mkdir(parents=True, exist_ok=True)
        begin = time.monotonic()
        with log.open("wb") as output:
            status = _wait(command, work, output, 2 * args.timeout + 60)  # the process ends itself
        seconds = time.monotonic() - begin
        text = report.read_text() if report.exists() else ""
    result, _, where = text.rpartition("\n")[-1].partition(": ")
    if result not in (FINISHED, OURS, ELSEWHERE):  # the process ended before it could say how
        line = re.search(rf'"{re.escape(str(script))}", line (\d+)', text)
        result, what = (TIME, "") if status is None or "Timeout" in text else (OURS, f"the process ended with {status}")
        where = ": ".join(filter(None, (f"line {line[1]}" if line else "", what)))
    return Row(name, result, where, seconds)


def _wait(command: list[str | Path], folder: Path, output: object, seconds: float) -> int | None:
    """The exit status of a process; None where it was killed after these seconds."""
    environment = {"MPLBACKEND": "Agg", "PYTHONUNBUFFERED": "1", **os.environ}
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, process_group=0
    )  # type: ignore[call-overload]
    try:
        return int(process.wait(seconds))
    except subprocess.TimeoutExpired:
        return None
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, 9)  # what it started ends with it
        process.wait()


def _write_markdown(path: Path, rows: list[Row]) -> None:
    above = path.read_text().partition(MARK) if path.exists() else ("", "", "")
    cells = [HEAD, ("---",) * len(HEAD), *(row.texts() for row in rows)]
    lines = ["| " + " | ".join(text.replace("|", "\\|") for text in row) + " |" for row in cells]
    path.write_text((f"{above[0]}{MARK}\n\n" if above[1] else "") + "\n".join(lines) + "\n")


def _under_keras(script: str, arguments: list[str]) -> int:
    """What `run_script` does, with the Keras that is installed."""
    sys.argv = [script, *arguments]
    sys.path.insert(0, str(Path(script).parent))
    try:
        runpy.run_path(script, run_name="__main__")
    except Exception as error:
        sys.excepthook(type(error), error, error.__traceback__)
        return 1
    return 0


def _child(report: str, seconds: str, keras: str, script: str, *stand_ins: str) -> int:
    """One script in this process.  The last line of the report says how it ended."""
    sys.path.pop(0)  # this folder
    if keras:
        run = _under_keras
    else:
        from pydtconv.cli.run import run_script as run

    ends: list[str] = []

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        traceback.print_exception(kind, error, trace)
        ends.append(ending(error, trace, script))

    sys.excepthook = hook
    status = next(filter(None, (run(path, [script]) for path in stand_ins)), 0)
    with open(report, "w") as file:
        faulthandler.enable(file)
        faulthandler.dump_traceback_later(float(seconds), exit=True, file=file)
        try:
            status = status or run(script, [])
        except SystemExit as error:
            status = error.code if isinstance(error.code, int) else int(error.code is not None)
            ends.append(f"{ELSEWHERE}: exit({error.code!r})" if status else FINISHED)
        faulthandler.disable()
        faulthandler.cancel_dump_traceback_later()
        file.write(f"\n{(ends or [FINISHED])[0]}")
    return status


def ending(error: BaseException, trace: TracebackType | None, script: str) -> str:
    """Result and place of an error in a script."""
    frames = traceback.extract_tb(trace)
    lines = [frame.lineno for frame in frames if frame.filename == script]
    if isinstance(error, SyntaxError) and error.filename == script:
        lines = [error.lineno]
    missing = next((what for kind, what in MISSING.items() if isinstance(error, kind)), None)
    if isinstance(error, ImportError) and str(error.name).split(".")[0] in ROOTS:
        missing = None
    text = " ".join(f"{type(error).__name__}: {error}".split()).partition("; ")[0]
    text = text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
    place = f"line {lines[-1]}: " if lines else "before it began: "
    return f"{ELSEWHERE if missing or not lines else OURS}: {place}{f'no {missing}: ' if missing else ''}{text}"


if __name__ == "__main__":
    sys.exit(_child(*sys.argv[2:]) if sys.argv[1:2] == ["--child"] else main())
