"""Imports run downwards only, as `[tool.importlinter]` in pyproject.toml says; `make lint` checks it."""

import graphlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

grimp = pytest.importorskip("grimp", reason="needs import-linter (the `dev` extra)")
LINTER = Path(sys.executable).with_name("lint-imports")
ROOT = Path(__file__).parent.parent
#: one import of each kind that runs upwards or in a circle: (file, lines to add, what the linter is to name)
PLANTED = [
    ("ops/base.py", "def plain():\n    from pydtconv.layers import Dense", "pydtconv.ops.base -> pydtconv.layers"),
    ("conv/cost.py", "if TYPE_CHECKING:\n    from pydtconv.ops import Add", "pydtconv.conv.cost -> pydtconv.ops"),
    ("losses/loss.py", "from pydtconv.metrics import Mean", "pydtconv.losses.loss -> pydtconv.metrics"),
    ("callbacks/callback.py", "from pydtconv.callbacks import progbar", ".progbar -> .callback"),
]


def test_imports_upwards_and_in_circles_are_found_wherever_they_stand(tmp_path):
    sources = shutil.ignore_patterns("__pycache__", "*.so", "*.c", "*.pyx", "lib", "*.npz")
    for name in "pydtconv", "models":
        shutil.copytree(ROOT / name, tmp_path / name, ignore=sources)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for name, lines, _ in PLANTED:
        with (tmp_path / "pydtconv" / name).open("a") as file:
            file.write(f"\n\n{lines}\n")
    command = [LINTER, "--no-cache", "--no-logo"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 1, result.stdout + result.stderr
    for _, _, named in PLANTED:
        assert named in result.stdout


def test_no_file_imports_itself_by_way_of_others():
    """Packages' own `__init__` files count, which the linter does not look for among their rooms."""
    graph = grimp.build_graph("pydtconv", cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) - {module} for module in graph.modules}
    for module in imports:
        if module.startswith("pydtconv.graph."):  # its rooms are looked at by the linter
            imports[module] = {other for other in imports[module] if not other.startswith("pydtconv.graph.")}
    graphlib.TopologicalSorter(imports).prepare()
