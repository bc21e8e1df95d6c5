"""Results of a benchmark: a table on the terminal, a CSV file and a picture in benchmarks/results/.

Every file carries the machine, the date, the commit and the command that made it.  Where rows are of several runs, each
row has columns of these names, and the head of the file says only what is true of all.
"""

from __future__ import annotations

import csv
import datetime
import io
import os
import platform
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydtconv.files.whole_file import write_alone
from pydtconv.support.machine import cpu_kind

RESULTS = Path(__file__).parent / "results"
Row = Mapping[str, object]
ORIGIN = ("machine", "date", "commit", "command")
ORIGIN_SIZE = 7  # of its letters below a picture, in points


#: the device that a run measures, where it is not the CPU
accelerator = ""


def machine() -> str:
    """The accelerator that is measured, if any; kind of CPU, cores this process may use, and system."""
    model = cpu_kind()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    model = f"{accelerator}; {model}" if accelerator else model
    return f"{model}, {cores} cores, {platform.system()} {platform.release()}, Python {platform.python_version()}"


def commit() -> str:
    """Short hash of the commit, with a + where files have been changed since."""

    def git(*words: str) -> str:
        command = ["git", "-C", str(Path(__file__).parent), *words]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!results", "../cext", "../pydtconv")
    return (git("rev-parse", "--short", "HEAD") or "unknown") + ("+" if changed else "")


def origin() -> dict[str, str]:
    """Where results of this run come from: machine, date, commit, command."""
    module = getattr(sys.modules["__main__"].__spec__, "name", None)
    words = ["python", "-m", module, *sys.argv[1:]] if module else ["python", *sys.argv]
    return {
        "machine": machine(),
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": commit(),
        "command": shlex.join(words),
    }


def shared_origin(rows: Sequence[Row], otherwise: str) -> dict[str, str]:
    """Where all these rows come from; `otherwise` for what they say differently of themselves."""
    shared = origin()
    for key in shared:
        values = {str(row[key]) for row in rows if key in row}
        if values:
            shared[key] = values.pop() if len(values) == 1 else otherwise
    return shared


def cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
    return "" if value is None else str(value)


def print_table(title: str, rows: Sequence[Row]) -> None:
    """Prints rows with aligned columns, without their origin; numbers to the right."""
    if not rows:
        return
    columns = [name for name in rows[0] if name not in ORIGIN]
    texts = [[cell(row.get(name)) for name in columns] for row in rows]
    widths = [max(len(name), *(len(text[i]) for text in texts)) for i, name in enumerate(columns)]
    right = [all(isinstance(row.get(name), (int, float)) or row.get(name) is None for row in rows) for name in columns]

    def line(values: Sequence[str]) -> str:
        cells = (v.rjust(w) if r else v.ljust(w) for v, w, r in zip(values, widths, right, strict=True))
        return "  ".join(cells).rstrip()

    print(f"\n{title}")
    print(line(columns))
    print("  ".join("-" * width for width in widths))
    for text in texts:
        print(line(text))


def write_csv(name: str, rows: Sequence[Row]) -> Path:
    """Writes benchmarks/results/<name>.csv: lines of origin that begin with '#', then the rows.

    Raises ValueError, and leaves the file as it is, where there are none.
    """
    if not rows:
        raise ValueError(f"{name}.csv: expected results, got none: nothing was measured")
    path = RESULTS / f"{name}.csv"
    text = io.StringIO(newline="")
    text.writelines(f"# {key}: {value}\n" for key, value in shared_origin(rows, "see the rows").items())
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows({key: f"{v:.4g}" if isinstance(v, float) else v for key, v in row.items()} for row in rows)
    write_alone(path, lambda file: file.write(text.getvalue().encode()))
    return path


def read_csv(name: str) -> list[dict[str, object]]:
    """The rows of benchmarks/results/<name>.csv, numbers as numbers; none where there is no such file."""
    path = RESULTS / f"{name}.csv"
    if not path.exists():
        return []
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    return [
        {key: text if key in ORIGIN else _number(text) for key, text in row.items()} for row in csv.DictReader(lines)
    ]


def goes_on(name: str) -> bool:
    """Whether benchmarks/results/<name>.csv was made on this machine and commit, so that a run may add rows to it."""
    path = RESULTS / f"{name}.csv"
    head = path.read_text().splitlines()[: len(ORIGIN)] if path.exists() else []
    return {f"# machine: {machine()}", f"# commit: {commit()}"} <= set(head)


def _number(text: str) -> object:
    try:
        return int(text) if text.isdigit() else float(text)
    except ValueError:
        return text


def plot_networks(
    name: str,
    title: str,
    rows: Sequence[Row],
    columns: Mapping[str, str],
    ylabel: str,
    top: float | None = None,
    top_label: str = "",
) -> Path | None:
    """`plot_bars` of rows of networks and image sizes: bars of each label are the numbers of its column."""
    labels = [f"{row['network']} {row['images']}" for row in rows]
    series = {label: [float(str(row[column])) for row in rows] for label, column in columns.items()}
    return plot_bars(name, title, labels, series, ylabel, top, top_label, rows)


def plot_bars(
    name: str,
    title: str,
    labels: Sequence[str],
    series: Mapping[str, Sequence[float]],
    ylabel: str,
    top: float | None = None,
    top_label: str = "",
    rows: Sequence[Row] = (),
) -> Path | None:
    """Grouped bars into benchmarks/results/<name>.png, with a line at `top` (the peak); None without matplotlib.

    rows: those that are shown, where they may say of themselves where they come from.
    """
    pyplot = _pyplot()
    if pyplot is None:
        return None
    figure, axes = pyplot.subplots(figsize=(max(6.0, 0.5 * len(labels) * len(series) + 2), 4.5), layout="constrained")
    width = 0.8 / len(series)
    for i, (label, values) in enumerate(series.items()):
        axes.bar([x + (i - (len(series) - 1) / 2) * width for x in range(len(labels))], values, width, label=label)
    if top is not None:
        axes.axhline(top, color="black", linestyle="--", linewidth=1, label=top_label)
        axes.set_ylim(0, 1.08 * max(top, *(value for values in series.values() for value in values)))
    axes.set_xticks(range(len(labels)), labels, rotation=30, ha="right", fontsize=10)
    axes.set_ylabel(ylabel)
    axes.set_title(title)
    axes.legend(fontsize=10)
    return _saved(pyplot, figure, name, rows)


def plot_curves(
    name: str, title: str, curves: Mapping[str, Sequence[float]], xlabel: str, ylabel: str, rows: Sequence[Row] = ()
) -> Path | None:
    """A line for each label, over 1, 2, ..., into benchmarks/results/<name>.png; None without matplotlib."""
    pyplot = _pyplot()
    if pyplot is None:
        return None
    figure, axes = pyplot.subplots(figsize=(7.5, 4.5), layout="constrained")
    for label, values in curves.items():
        axes.plot(range(1, len(values) + 1), values, marker="o", markersize=3, label=label)
    axes.set(title=title, xlabel=xlabel, ylabel=ylabel)
    axes.legend(fontsize=8)
    return _saved(pyplot, figure, name, rows)


def _pyplot() -> Any:
    """matplotlib's, which draws into files; None, said so, where it is not installed."""
    try:
        import matplotlib
    except ImportError:
        print("no picture: matplotlib is not installed (pip install 'pydtconv[plot]')")
        return None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def _saved(pyplot: Any, figure: Any, name: str, rows: Sequence[Row]) -> Path:
    """The file that a figure went to, with where it comes from below it."""
    said = shared_origin(rows, "more in the CSV file")
    # a letter is about half as wide as it is high
    letters = int(figure.get_figwidth() * 72 / (0.55 * ORIGIN_SIZE))
    figure.supxlabel(textwrap.fill("; ".join(dict.fromkeys(said.values())), letters), fontsize=ORIGIN_SIZE)
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.png"
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
    return path
