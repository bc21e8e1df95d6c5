"""The command that runs a folder of scripts: how far each one comes."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parent.parent / "tools" / "scripts.py"
pytestmark = pytest.mark.skipif(not TOOL.exists(), reason="needs the tools of a checkout")
COMMAND: list[str | Path] = [sys.executable, TOOL]
SCRIPTS = {
    "finishes.py": "import keras\nopen('made', 'w').close()\nprint(open('data.txt').read())\nkeras.layers.Dense(2)\n",
    "ours.py": "import keras\n\n\ndef f():\n    keras.layers.Densely(2)\n\n\nf()\n",
    "package.py": "import a_package_that_is_not_here\n",
    "module.py": "import keras.no_such_module\n",
    "sub/data.py": "open('no/such/file')\n",
    "sub/ends.py": "import sys\nsys.exit(3)\n",
    "sub/fits.py": "import keras\nkeras.Model.fit()\n",
    "sub/text.py": "def f(:\n",
    "sub/text2.py": "raise SystemExit\n",
}
ENDS = {
    "finishes.py": ("finished", ""),
    "ours.py": ("stopped in pydtconv", "line 5: AttributeError: pydtconv has no keras.layers.Densely"),
    "module.py": ("stopped in pydtconv", "line 1: ImportError: pydtconv has no keras.no_such_module"),
    "package.py": ("stopped elsewhere", "line 1: no package: ModuleNotFoundError"),
    "sub/data.py": ("stopped elsewhere", "line 1: no data: FileNotFoundError"),
    "sub/ends.py": ("stopped elsewhere", "exit(3)"),
    "sub/fits.py": ("finished", ""),
    "sub/text.py": ("stopped elsewhere", "line 1: no Python 3: SyntaxError"),
    "sub/text2.py": ("left out", "its text"),
}


def test_a_folder_of_scripts_becomes_a_table(tmp_path: Path) -> None:
    folder = tmp_path / "scripts"
    for name, text in SCRIPTS.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "data.txt").write_text("what is beside a script")
    stand_ins = tmp_path / "stand_ins.py"
    stand_ins.write_text("import keras\nkeras.Model.fit = lambda *_: print('shortened')\n")
    reasons = tmp_path / "reasons"
    reasons.write_text("*/text2.py: its text\n")
    page = tmp_path / "page.md"
    page.write_text("# Scripts\n\n<!-- table of tools/scripts.py -->\nold\n")
    table, logs = tmp_path / "table.csv", tmp_path / "logs"
    options: list[str | Path] = ["--jobs", "2", "--stand-ins", stand_ins, "--leave-out", reasons, "--logs", logs]
    done = subprocess.run(
        [*COMMAND, folder, *options, "--csv", table, "--markdown", page], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (1, ""), done.stdout
    assert done.stdout.endswith("\n2 finished, 2 stopped in pydtconv, 4 stopped elsewhere, 0 time, 1 left out\n"), (
        done.stdout
    )
    with table.open() as file:
        rows = list(csv.DictReader(file))
    assert [row["script"] for row in rows] == sorted(ENDS)
    for row in rows:
        result, where = ENDS[row["script"]]
        assert row["result"] == result
        assert row["where"].startswith(where), row
    assert not (folder / "made").exists()
    assert (logs / "finishes.py.txt").read_text() == "what is beside a script\n"
    assert (logs / "sub.fits.py.txt").read_text() == "shortened\n"
    text = page.read_text()
    assert text.startswith("# Scripts\n\n<!-- table of tools/scripts.py -->\n\n| script | result | where | seconds |\n")
    assert "old" not in text


def test_a_script_that_does_not_end_says_where_it_was(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import os\nwhile True:\n    pass\n")
    options: list[str | Path] = ["--timeout", "0.5", "--csv", tmp_path / "table.csv"]
    done = subprocess.run([*COMMAND, tmp_path, *options], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert ",time,line " in (tmp_path / "table.csv").read_text()


def test_a_process_that_ends_says_where_it_was(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import ctypes\nctypes.string_at(0)\n")
    done = subprocess.run([*COMMAND, tmp_path / "a.py"], capture_output=True, text=True, check=False)
    assert "a.py  stopped in pydtconv  line 2: the process ended with -11" in done.stdout


def test_scripts_that_all_finish_and_folders_without_one(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("print(1)\n")
    done = subprocess.run([*COMMAND, tmp_path / "a.py"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()[-1].split(",")[0]) == (0, "1 finished")
    (tmp_path / "empty").mkdir()
    done = subprocess.run([*COMMAND, tmp_path / "empty"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("expected *.py in ")
