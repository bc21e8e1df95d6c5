"""What the README shows is true: its code runs, its files are there."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.S)


@pytest.mark.parametrize("code", BLOCKS, ids=["model", "convolution", "numpy_layer"])
def test_code_runs(code, tmp_path):
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=tmp_path, env=os.environ, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr


def test_files_that_are_named_exist():
    table = README.split("## To change X, open Y")[1].split("## ")[0]
    names = [name for row in table.splitlines()[4:] for name in re.findall(r"`([\w./]+[/y])`", row)]
    assert len(names) > 8
    for name in names:
        found = (ROOT / name).exists() or (ROOT / "pydtconv" / "ops" / name).exists()
        assert found, name


@pytest.mark.parametrize("page", ["README.md", "docs/measured.md"])
def test_links_lead_to_headings_of_files(page):
    for target, anchor in re.findall(r"\]\(([\w./-]*)(?:#([\w-]+))?\)", (ROOT / page).read_text()):
        file = (ROOT / page).parent / target if target else ROOT / page
        headings = re.findall(r"^#+ (.*)$", file.read_text(), re.M)
        assert not anchor or anchor in [re.sub(r"[^\w-]", "", h.lower().replace(" ", "-")) for h in headings], anchor


def test_targets_that_are_named_exist():
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^make (\w+)|`make (\w+)|   make (\w+)", README, re.M))
    for target in {name for match in targets for name in match if name}:
        assert re.search(rf"^{target}:", makefile, re.M), target
