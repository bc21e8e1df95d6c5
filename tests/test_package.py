"""What is shipped: every package and its data, a version that agrees, typed functions, one style of C."""

import ast
import importlib
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import numpy as np
import pytest

import pydtconv
from pydtconv import callbacks, layers, utils
from pydtconv.models.onnx_files import load_onnx
from pydtconv.preprocessing import image

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_one_version():
    assert "version" not in PROJECT
    assert "version" in PROJECT["dynamic"]
    heading = next(line for line in (ROOT / "CHANGELOG.md").read_text().splitlines() if line.startswith("## ["))
    assert heading.split("]")[0] in (f"## [{pydtconv.__version__}", "## [Unreleased")


def texts_of(path):
    """All texts of a module, those in parts as they stand."""
    return [node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)]


def test_what_is_to_be_installed_is_an_extra_or_a_requirement():
    """Wherever a message says `pip install`."""
    found = {
        (path, text)
        for path in [*ROOT.glob("pydtconv/**/*.py"), *ROOT.glob("models/*.py")]
        for whole in (texts_of(path) if "pip install" in path.read_text() else ())
        if isinstance(whole, str)
        for text in re.findall(r"pip install ('[^']*'|\S+)", whole)
    }
    assert len(found) >= 8
    needed = [re.match(r"[\w-]+", requirement)[0] for requirement in PROJECT["dependencies"]]
    known = [*(f"'pydtconv[{extra}]'" for extra in PROJECT["optional-dependencies"]), ".'", *needed]
    assert [(str(path), text) for path, text in found if text not in known] == []


IMAGE = np.zeros((4, 4, 3))
#: what needs packages of an extra
NEEDING = {
    "images": [
        lambda folder: utils.load_img(folder / "a.png"),
        lambda folder: utils.save_img(folder / "a.png", IMAGE),
        lambda folder: utils.array_to_img(IMAGE),
        lambda folder: utils.image_dataset_from_directory(folder),
        lambda folder: image.ImageDataGenerator().apply_transform(IMAGE, {"brightness": 0.5}),
    ],
    "plot": [
        lambda folder: utils.plot_learning_curve({"loss": [1.0]}, folder / "a.png"),
        lambda folder: small_model().plan(batch_size=1).plot(folder / "a.png"),
    ],
    "tensorboard": [lambda folder: callbacks.TensorBoard(folder)],
    "onnx": [
        lambda folder: small_model().export(folder / "a.onnx", format="onnx"),
        lambda folder: load_onnx(folder / "a.onnx"),
    ],
}


def small_model():
    return pydtconv.Sequential([layers.Input((4, 4, 1)), layers.Conv2D(2, 3)])


@pytest.mark.parametrize("extra", NEEDING)
def test_a_package_that_is_missing_is_named_with_its_extra(extra, tmp_path, monkeypatch):
    (tmp_path / "a.onnx").touch()
    for name in [name for name in sys.modules if name.split(".")[0] in ("PIL", "matplotlib", "tensorboard", "onnx")]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("PIL", "matplotlib", "tensorboard", "onnx"):
        monkeypatch.setitem(sys.modules, name, None)
    for needs in NEEDING[extra]:
        with pytest.raises(ImportError, match=rf"pip install 'pydtconv\[{extra}\]'"):
            needs(tmp_path)


@pytest.mark.parametrize("name", pydtconv._MODULES)
def test_checkers_of_types_see_what_is_exported(name):
    """A name that a package has from its modules stands in `__all__` as a text, or is imported by that name again."""
    path = Path(importlib.import_module(f"pydtconv.{name}").__file__)
    tree = ast.parse(path.read_text())
    told = [
        node.value for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    if not told:
        return
    texts = {each.value for each in told[0].elts if isinstance(each, ast.Constant)}
    imported = {
        alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname is None
    }
    assert imported & set(importlib.import_module(f"pydtconv.{name}").__all__) <= texts


def test_a_model_may_take_what_it_needs():
    """For checkers of types, `call` of a class of models may have other parameters than Model's."""
    path = Path(importlib.import_module("pydtconv.models.model").__file__)
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if getattr(node, "name", "") == "call"]
    assert ast.unparse(calls[0].args) == "self, *args: Any, **kwargs: Any"


def module_names():
    return sorted(module.name for module in pkgutil.walk_packages(pydtconv.__path__, "pydtconv."))


def test_every_module_can_be_imported():
    for name in module_names():
        if "__main__" not in name:
            importlib.import_module(name)


#: modules whose tests have another name
TESTED_IN = {
    "engine/bound": "trainers/test_step_functions",
    "engine/planning": "loops/test_program",
    "engine/room": "engine/test_largest_batch",
    "engine/sharing": "distribution/test_own_steps",
    "interchange/onnx_call": "interchange/test_onnx_import",
    "interchange/onnx_operators": "interchange/test_onnx_export",
    "interchange/onnx_package": "interchange/test_onnx_export",
    "interchange/onnx_places": "interchange/test_onnx_export",
    "interchange/onnx_table": "interchange/test_onnx_export",
    "loops/explicit": "loops/test_second_derivatives",
    "trainers/targets": "trainers/test_compilation",
    "trainers/training": "trainers/test_strategy",
}


@pytest.mark.parametrize("room", ["engine", "interchange", "loops", "metrics", "trainers"])
def test_each_module_has_a_test_of_its_name(room):
    modules = [path.stem for path in sorted((ROOT / "pydtconv" / room).glob("*.py")) if path.stem != "__init__"]
    files = {name: TESTED_IN.get(f"{room}/{name}", f"{room}/test_{name}") for name in modules}
    assert not {name for name, file in files.items() if not (ROOT / "tests" / f"{file}.py").exists()}


def test_every_name_of_the_package_is_there():
    assert [name for name in pydtconv._NAMES if not hasattr(pydtconv, name)] == []


def test_importing_the_package_is_light():
    """Its rooms load neither another framework, nor what only files, servers and progress bars need."""
    heavy = ("matplotlib", "tensorboard", "torch", "tensorflow", "keras", "sklearn", "scipy", "pytest")
    heavy += ("h5py", "tqdm", "urllib.request")
    code = "import sys, pydtconv.layers, pydtconv.models, pydtconv.datasets, pydtconv.utils, pydtconv.cli,"
    code += "pydtconv.callbacks, pydtconv.saving, pydtconv.optimizers;"
    code += f"print([name for name in {heavy} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


@pytest.mark.parametrize(("given", "expected"), [(None, "8"), ("20", "20")])
def test_threads_of_openblas_are_told_to_sleep_before_numpy_is_loaded(given, expected):
    environment = {key: value for key, value in os.environ.items() if key != "OPENBLAS_THREAD_TIMEOUT"}
    if given is not None:
        environment["OPENBLAS_THREAD_TIMEOUT"] = given
    code = "import pydtconv, os, sys; print(os.environ['OPENBLAS_THREAD_TIMEOUT'], 'numpy' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert result.stdout.split() == [expected, "False"]


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of the tracked files, so that building leaves nothing in the checkout."""
    if subprocess.run(["git", "rev-parse"], cwd=ROOT, capture_output=True, check=False).returncode:
        pytest.skip("needs a git checkout to know which files are tracked")
    folder = tmp_path_factory.mktemp("tree")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    names = [name for name in listed.split("\0") if name and (ROOT / name).exists()]
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    return folder


def setup_py(folder, *arguments, **environment):
    command = [sys.executable, "setup.py", "-q", *arguments]
    result = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )
    assert result.returncode == 0, result.stderr[-3000:]
    return result


@pytest.fixture(scope="module")
def sdist(tree, tmp_path_factory):
    pytest.importorskip("Cython", reason="needs Cython to build the package")
    folder = tmp_path_factory.mktemp("sdist")
    setup_py(tree, "sdist", "--dist-dir", str(folder))
    return next(folder.glob("*.tar.gz"))


def tracked(tree, *patterns):
    """Files of git's list; building puts others, such as bytecode, into the tree."""
    globs = [f":(glob){pattern}" for pattern in patterns]
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *globs], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    return {name for name in listed.split("\0") if name and (tree / name).is_file()}


@pytest.mark.slow
def test_the_sdist_has_all_that_is_needed_to_build_and_test(tree, sdist):
    with tarfile.open(sdist) as tar:
        names = {name.split("/", 1)[1] for name in tar.getnames() if "/" in name}
    wanted = tracked(
        tree, "cext/**/*.[ch]", "pydtconv/**/*.py", "pydtconv/**/*.pyx", "pydtconv/**/*.pxd", "models/*.py"
    )
    wanted |= tracked(
        tree, "tests/**/*.py", "benchmarks/**/*.py", "pydtconv/datasets/*.npz", "tools/**/*", "docs/**/*.md"
    )
    wanted |= {"Makefile", "LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml", "setup.py", "pydtconv/py.typed"}
    assert sorted(wanted - names) == []
    assert not [name for name in names if name.endswith((".so", ".dylib", ".pyc", ".o"))]


def test_a_wheel_has_all_that_is_needed_to_run():
    """CI builds a wheel from the sdist and names it in PYDTCONV_WHEEL."""
    path = os.environ.get("PYDTCONV_WHEEL")
    if not path:
        pytest.skip("needs a wheel: PYDTCONV_WHEEL=path/to.whl")
    with zipfile.ZipFile(path) as wheel:
        names = set(wheel.namelist())
    wanted = {str(path.relative_to(ROOT)) for path in ROOT.glob("pydtconv/**/*.py")}
    wanted |= {f"pydtconv/applications/{path.name}" for path in ROOT.glob("models/*.py")}
    wanted |= {"pydtconv/py.typed", "pydtconv/datasets/digits.npz"}
    assert sorted(wanted - names) == []
    assert [name for name in names if name.startswith("pydtconv/_ext/lib/generic/libdtconv.")]
    extensions = {
        Path(name).name.split(".")[0] for name in names if name.startswith("pydtconv/_ext/") and name.endswith(".so")
    }
    assert {path.stem for path in (ROOT / "pydtconv" / "_ext").glob("*.pyx")} <= extensions
    at_run_time = "pydtconv/devices/cuda/"  # kernels for GPUs are compiled where one is
    assert not [name for name in names if name.endswith((".c", ".h", ".pyx")) and not name.startswith(at_run_time)]
    assert {f"{at_run_time}{path.name}" for path in (ROOT / "cext" / "cuda").glob("*.cu")} <= names


def test_the_error_of_a_memory_limit_is_a_name_of_the_package():
    assert pydtconv.MemoryLimitError is pydtconv.graph.MemoryLimitError
