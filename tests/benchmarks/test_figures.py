"""Figures of the page "Measured" are those of its files: each row's numbers stand in the rows that it is about."""

import functools
import itertools
import math
import re
from pathlib import Path

import pytest

from benchmarks import report

FEW = 12  # rows
PAGE = Path(__file__).parent.parent.parent / "docs" / "measured.md"
#: not those of a size as in 32x32, and not those with a dagger, which the page alone has
NUMBER = re.compile(r"(?<![\w.,>])-?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?(?![\w.]*[\w†])")


def tables(text):
    """Tables of a section: lists of rows, each a list of cells, the header first."""
    found, before = [], ""
    for line in text.splitlines():
        if line.startswith("|"):
            if not before.startswith("|"):
                found.append([])
            if set(line) - set("|-: "):
                found[-1].append([cell.strip() for cell in line.strip().strip("|").split("|")])
        before = line
    return found


def sections():
    """For each heading with files: its tables without those of origins, and the rows of each of its files."""
    parts = re.split(r"^### (.*)$", PAGE.read_text(), flags=re.M)[1:]
    for title, text in zip(parts[::2], parts[1::2], strict=True):
        every = tables(text)
        origins = [table for table in every if table[0][-1] == "file"]
        names = {name for table in origins for row in table[1:] for name in re.findall(r"`(\w+)\.csv`", row[-1])}
        if names:
            files = [report.read_csv(name) for name in sorted(names)]
            yield pytest.param([table for table in every if table not in origins], files, id=title)


@functools.cache
def plain(text):
    return re.sub(r"[^a-z0-9]", "", str(text).lower())


@functools.cache
def same(cell, value):
    """Whether a cell names what a file names: `32x32` is 32, and `3x3, 64->64, 8x8, n 64` is 3x3_64-64_8x8."""
    theirs = plain(value)
    ours = {plain(re.sub(pattern, "", cell)) for pattern in ("$", r"x\d+$", r"(, n \d+)$", ",.*", " .*")}
    return theirs in ours or any(len(name) > 4 < len(theirs) and (name in theirs or theirs in name) for name in ours)


def within(cell, value):
    """Whether a cell such as `4096 to 16384 samples`, or `65536 and more`, means a number."""
    bounds = re.search(r"(\d+) (?:to (\d+)|and more)", cell)
    return bool(bounds and isinstance(value, (int, float)) and int(bounds[1]) <= value <= float(bounds[2] or "inf"))


def about(cells, header, rows):
    """Rows of a file that a row of the page is about: those of its name, and of its sizes where columns have them."""
    for name, cell in zip(header, cells, strict=False):
        if name == header[0] or name in rows[0]:
            columns = [name] if name in rows[0] else list(rows[0])
            chosen = [row for row in rows if within(cell, row[columns[0]])]
            rows = chosen or [row for row in rows if any(same(cell, row[column]) for column in columns)] or rows
    return rows


def numbers(values):
    """Numbers in texts of a file."""
    texts = (text.replace(",", "") for value in values if isinstance(value, str) for text in NUMBER.findall(value))
    return [*map(float, texts), *(float(value) for value in values if isinstance(value, (int, float)))]


def figures(rows):
    """Numbers of a few rows of a file, and one of a column by another one; least, largest and means of columns."""
    values = {value for row in rows for value in numbers([*row.values()])} if len(rows) <= FEW else set()
    for column in rows[0]:
        these = numbers([row[column] for row in rows])
        if len(these) > 1:
            values |= {min(these), max(these), sum(these) / len(these), float(len(these))}
        if len(these) > 1 and min(these) > 0:
            values.add(math.exp(sum(map(math.log, these)) / len(these)))
            if len(these) <= FEW:
                values |= {a / b for a in these for b in these}
    return values


def groups(rows):
    """All rows, and those of each precision, pass and the like."""
    yield rows
    for column in rows[0]:
        names = {row[column] for row in rows}
        if 1 < len(names) < 6:
            yield from ([row for row in rows if row[column] == name] for name in names)


def half_of_the_last_place(text):
    """Of a number that is written with at most four significant digits."""
    mantissa, _, exponent = text.replace(",", "").partition("e")
    digits = mantissa.lstrip("-")
    place = -len(digits.partition(".")[2]) if "." in digits else max(0, len(digits) - 4)
    return 0.51 * 10.0 ** (place + int(exponent or 0))


def known(cells, header, files):
    """Numbers that a row of the page may have, those of its first cell and of columns with a dagger apart."""
    values = set()
    for rows in files:
        chosen = about(cells, header, rows)
        values.update(*map(figures, groups(chosen) if len(chosen) > FEW else [chosen]))
    return values | {factor * value for value in values for factor in (100, 0.001)}


def stands_in(text, values):
    value, most = float(text.replace(",", "")), half_of_the_last_place(text)
    return any(abs(value - each) <= most for each in values)


def rows_of_the_page(tables, files):
    for table in tables:
        for cells in table[1:]:
            texts = [
                zip(itertools.repeat(name), NUMBER.findall(cell)) for name, cell in zip(table[0], cells, strict=False)
            ]
            found = [text for name, text in itertools.chain(*texts[1:]) if "†" not in name]
            yield " | ".join(cells), found, known(cells, table[0], files)


@pytest.mark.parametrize(("tables", "files"), list(sections()))
def test_each_figure_is_that_of_a_file(tables, files):
    lacking = {}
    for row, texts, values in rows_of_the_page(tables, files):
        lacking[row] = [text for text in texts if not stands_in(text, values)]
    assert not {row: found for row, found in lacking.items() if found}


def test_most_other_figures_are_found_out():
    """Those that are larger by five of the last place."""
    outcomes = []
    for tables, files in (section.values for section in sections()):
        for _, texts, values in rows_of_the_page(tables, files):
            for text in (text for text in texts if len(text) > 2 and "e" not in text):
                other = float(text.replace(",", "")) + 10 * half_of_the_last_place(text)
                outcomes.append(not stands_in(f"{other:.{len(text.partition('.')[2])}f}", values))
    assert sum(outcomes) > 0.7 * len(outcomes) > 500


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def column(name, title, **wanted):
    return [row[title] for row in report.read_csv(name) if all(row[key] == value for key, value in wanted.items())]


def with_tf32():
    """Ratios to PyTorch with TF32 or without, whichever is faster."""
    slow, fast = (column(name, "PyTorch images/s") for name in ("gpu_train", "gpu_train_tf32"))
    return [ours / max(pair) for ours, *pair in zip(column("gpu_train_tf32", "images/s"), slow, fast, strict=True)]


@pytest.mark.parametrize(
    ("page", "words", "values"),
    [
        ("README.md", r"at N to N times the speed of PyTorch", column("train", "speed ratio")),
        ("README.md", r"speed of PyTorch in N to N of its memory", column("train", "memory ratio")),
        (
            "README.md",
            r"train at N to N times the speed of Keras 3 on TensorFlow",
            column("train_keras_peers_tensorflow", "speed ratio"),
        ),
        (
            "README.md",
            r"contrasts of uint8 pixels at N times",
            column("augment", "Keras on TensorFlow ratio", layer="MobileNetV2"),
        ),
        ("README.md", r"N times as fast as PyTorch in float32", column("gpu_train", "to PyTorch")),
        ("README.md", r"and N times with TF32", with_tf32()),
        ("docs/guides/gpu.md", r"ran N to N times as fast as PyTorch", column("gpu_train", "to PyTorch")),
        ("docs/guides/gpu.md", r"as fast as PyTorch, N times on average", column("gpu_train", "to PyTorch")),
        ("docs/guides/gpu.md", r"and N times with TF32", with_tf32()),
        ("docs/guides/gpu.md", r"N times PyTorch's speed in geometric mean", column("gpu_train_tf32", "to PyTorch")),
    ],
)
def test_sentences(page, words, values):
    """One number is the geometric mean, two are the least and the largest."""
    text = " ".join((PAGE.parent.parent / page).read_text().split())
    found = re.search(words.replace("N", r"(\d+(?:\.\d+)?)"), text)
    assert found, words
    expected = [geometric_mean(values)] if len(found.groups()) == 1 else [min(values), max(values)]
    for text, value in zip(found.groups(), expected, strict=True):
        assert abs(float(text) - value) <= half_of_the_last_place(text), (found[0], expected)
