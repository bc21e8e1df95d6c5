"""What `from pydtconv.x import y` says where there is no y: the text that scripts under `pydtconv run` get."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

import pydtconv


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("from pydtconv.layers import CuDNNGRU", "pydtconv has no layers.CuDNNGRU; instead use LSTM and GRU"),
        ("from pydtconv.layers import TFSMLayer", "no layers.TFSMLayer: a graph of TensorFlow runs"),
        ("from pydtconv.layers import Dens", "pydtconv has no layers.Dens; the nearest it has: layers.Dense"),
        ("from pydtconv.saving import load_modl", "the nearest it has: saving.load_model"),
        ("from pydtconv.ops.nn import relo", "the nearest it has: ops.nn.relu"),
        ("from pydtconv.activations import rilu", "activations.relu"),
        ("from pydtconv.optimizers.schedules import CosineDecy", "optimizers.schedules.CosineDecay"),
        ("from pydtconv.config import flotx", "pydtconv has no config.flotx; the nearest it has: config.floatx"),
        ("from pydtconv.config import nothing", "pydtconv has no config.nothing"),
        ("from pydtconv.tree import flaten", "the nearest it has: tree.flatten"),
        ("from pydtconv.dtype_policies import DTypePolicyMap", "DTypePolicyMap: a layer's dtype is its DTypePolicy"),
        ("from pydtconv import layer", "pydtconv has no pydtconv.layer; the nearest it has"),
        ("import pydtconv.layers.lstm", "pydtconv has no layers.lstm"),
    ],
)
def test_errors_of_imports_say_what_there_is(statement, told):
    with pytest.raises(ImportError) as found:
        exec(statement)
    assert told in str(found.value)


def test_private_names_and_other_packages_are_pythons():
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'pydtconv\._nothing'"):
        importlib.import_module("pydtconv._nothing")
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'numpy\.nothing'"):
        importlib.import_module("numpy.nothing")
    assert importlib.util.find_spec("nothing_of_this_name") is None


@pytest.mark.slow
def test_a_missing_name_is_still_an_attribute_error_and_modules_run():
    layers = importlib.import_module("pydtconv.layers")
    assert not hasattr(layers, "CuDNNGRU")
    command = [
        sys.executable,
        "-c",
        "from pydtconv.ops import linalg, nn, numpy; print(nn.relu(-1.0), numpy.sum([1.0]))",
    ]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "0.0 1.0\n"


def test_parts_of_ops_are_those_of_keras():
    from pydtconv import ops
    from pydtconv.ops import linalg, nn, numpy

    assert (nn.softmax, numpy.mean, linalg.norm) == (ops.softmax, ops.mean, ops.norm)
    assert "relu" in dir(nn)
    assert "relu" not in dir(numpy)
    with pytest.raises(AttributeError, match=r"ops\.nn\.relo; the nearest it has: ops\.nn\.relu"):
        nn.relo  # noqa: B018


def test_a_build_in_place_has_no_zoo_and_says_how_to_get_it():
    """Without site there is no finder of an installed package."""
    folder, site = Path(pydtconv.__file__).parent, Path(numpy.__file__).parent.parent
    if (folder / "applications").exists():
        pytest.skip("needs a package that is not installed")
    code = "import pydtconv.layers\ntry: pydtconv.applications\nexcept ModuleNotFoundError as error: print(error)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (folder.parent, site)))}
    found = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, env=environment)
    assert "expected an installed package, as 'pip install .' makes it" in found.stdout, found
