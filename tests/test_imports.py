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


#: what imports a module that a string names, or gives one that was imported
BY_STRING = ("import_module", "__import__", "sys.modules")
#: packages whose names are imported when they are first used, the scripts' other name for the package, libraries that
#: need not be installed, and what looks at a module without importing it
ALLOWED = (
    "__init__.py",
    "cli/__init__.py",
    "cli/run.py",
    "compat/keras_names.py",
    "compat/tensorflow_names.py",
    "devices/gpu/availability.py",
    "files/hdf5.py",
    "files/hdf5_trial.py",
    "interchange/onnx/package.py",
    "ops/parts.py",
    "serialization/lambdas.py",
    "suggest.py",
)


def test_no_room_imports_by_strings():
    """A lower room that needs something of an upper one declares a hook (pydtconv/hooks.py), which that one fills."""
    package = ROOT / "pydtconv"
    found = [path for path in package.rglob("*.py") if any(word in path.read_text() for word in BY_STRING)]
    assert sorted(str(path.relative_to(package)) for path in found) == sorted(ALLOWED)


def test_each_hook_is_filled_by_the_room_that_the_root_names():
    """In a process of its own, which has imported nothing else."""
    code = (
        "import importlib, pydtconv; from pydtconv import hooks\n"
        "for hook, room in pydtconv._FILLED_BY.items():\n"
        "    assert getattr(hooks, hook)._function is None or importlib.import_module(f'pydtconv.{room}'), hook\n"
        "    hooks._import_room(hook)\n"
        "    assert getattr(hooks, hook)._function is not None, hook\n"
        "every = {name: hook for name, hook in vars(hooks).items() if isinstance(hook, hooks.Hook)}\n"
        "needed = {name for name, hook in every.items() if hook._usual is None}\n"
        "assert needed - {'public_room'} == set(pydtconv._FILLED_BY), needed\n"
        "assert all(hook.name == name for name, hook in every.items())\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
