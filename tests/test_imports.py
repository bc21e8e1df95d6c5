"""Imports run downwards only (models, layers, graph, kernels, ops, conv, _ext), and operators bind nothing."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# what a part may import of the package; parts of one row may import each other
LEVELS = [
    {"_ext"},
    {"config", "naming", "public", "tree", "replica", "version"},
    {"utils"},
    {"microkernels", "gemm"},
    {"conv"},
    {"ops"},
    {"kernels"},
    {"graph"},
    {"serialization"},
    {"initializers", "regularizers", "constraints", "activations"},
    {"layers"},
    {"losses", "metrics", "optimizers", "callbacks", "checkpoints", "trainers", "profiling"},
    {"models", "datasets", "backend", "simulation"},
    {"saving"},
    {"distribution"},
    {"applications"},
    {"cli", "__main__"},
]
RANK = {part: rank for rank, parts in enumerate(LEVELS) for part in parts}
FILES = [path for path in sorted((ROOT / "pydtconv").rglob("*.py")) if path.parent != ROOT / "pydtconv"]
FILES += [path for path in sorted((ROOT / "pydtconv").glob("*.py")) if path.name != "__init__.py"]
FILES += sorted((ROOT / "models").glob("*.py"))


def part_of(path):
    if ROOT / "models" in path.parents:
        return "applications"
    return path.relative_to(ROOT / "pydtconv").parts[0].removesuffix(".py")


def imports_of(tree, package):
    """(line, dotted name) of each import at the level of the module, outside of `if TYPE_CHECKING`."""
    for node in tree.body:
        for name in names_of(node, package):
            yield node.lineno, name


def names_of(node, package):
    """Dotted names that a statement imports."""
    if isinstance(node, ast.Import):
        for name in node.names:
            yield name.name
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            base = ".".join([*package.split(".")[: len(package.split(".")) - node.level + 1], base]).rstrip(".")
        for name in node.names:
            yield f"{base}.{name.name}"


def upward_imports(source, part, package):
    for line, name in imports_of(ast.parse(source), package):
        words = name.split(".")
        if words[0] != "pydtconv" or len(words) < 2:
            continue
        other = words[1]
        if other in RANK and RANK[other] > RANK[part]:
            yield f"line {line}: {name}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_run_downwards(path):
    part = part_of(path)
    assert part in RANK, f"{part!r} has no place yet among the levels of {Path(__file__).name}"
    package = ".".join(path.relative_to(ROOT).parent.parts)
    assert not list(upward_imports(path.read_text(), part, package))


def test_an_upward_import_is_found():
    assert list(upward_imports("from pydtconv.layers import Dense", "ops", "pydtconv.ops"))
    assert list(upward_imports("import pydtconv.graph.plan", "conv", "pydtconv.conv"))
    assert list(upward_imports("from ..layers import Dense", "ops", "pydtconv.ops"))
    assert not list(upward_imports("from pydtconv.ops import Add", "layers", "pydtconv.layers"))


#: what declarations may take of the parts below them: no binding, no code that runs
DECLARATIONS = ("pydtconv.ops", "pydtconv.config", "pydtconv.conv.problem", "pydtconv.conv.cost")


def bindings_of(source, package):
    """Imports of operators, at any level of the module, that reach what computes them."""
    for node in ast.walk(ast.parse(source)):
        for name in names_of(node, package):
            if name.split(".")[0] == "pydtconv" and not f"{name}.".startswith(tuple(f"{d}." for d in DECLARATIONS)):
                yield name


@pytest.mark.parametrize("path", sorted((ROOT / "pydtconv" / "ops").rglob("*.py")), ids=lambda path: path.name)
def test_operators_import_no_binding(path):
    package = ".".join(path.relative_to(ROOT).parent.parts)
    assert not list(bindings_of(path.read_text(), package))


def test_a_binding_is_found():
    for line in (
        "from pydtconv._ext import elem",
        "from pydtconv.conv.functional import bind",
        "import pydtconv.kernels",
    ):
        assert list(bindings_of(f"def f():\n    {line}", "pydtconv.ops"))
    assert not list(bindings_of("from pydtconv.conv.problem import pair\nfrom pydtconv import config", "pydtconv.ops"))
