"""Scripts of Keras for JAX and PyTorch: what they are told at the first name of theirs."""

import os
import subprocess
import sys

import numpy as np
import pytest

from pydtconv.compat import foreign_styles


def test_each_name_says_which_style_runs(tf):
    for backend, classes in foreign_styles._NAMES.items():
        word = {"jax": "JAX", "torch": "PyTorch"}[backend]
        for cls, name in ((cls, name) for cls, names in classes.items() for name in names):
            assert not hasattr(cls, name)
            with pytest.raises(AttributeError, match=rf"{cls.__name__}\.{name} is for Keras on {word}; .*GradientTape"):
                getattr(cls, name)


def test_names_of_a_scripts_own_are_kept(tf):
    class Own(tf.keras.Model):
        def zero_grad(self):
            return 7

    model = Own()
    model.parameters = [1, 2]
    assert (model.zero_grad(), model.parameters) == (7, [1, 2])
    with pytest.raises(AttributeError, match=r"Own\.stateless_call is for Keras on JAX"):
        model.stateless_call([], [], np.zeros((1, 2)))


def test_the_names_are_gone_behind_a_script():
    for classes in foreign_styles._NAMES.values():
        for cls, names in classes.items():
            assert not {name for name in names if isinstance(vars(cls).get(name), foreign_styles._Refused)}


def test_a_package_that_is_not_there_says_so():
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'jax': jax is for Keras on JAX; .*From JAX or"):
        foreign_styles.Packages().find_spec("jax")
    assert foreign_styles.Packages().find_spec("jaxon") is None


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["jax", "tensorflow"])
def test_a_backend_that_a_script_sets_is_warned_of_in_one_line(tmp_path, backend):
    source = f"import os\nos.environ['KERAS_BACKEND'] = '{backend}'\nimport keras\nimport keras.layers\n"
    (tmp_path / "script.py").write_text(source + "print(keras.backend.backend())\n")
    command = [sys.executable, "-m", "pydtconv", "run", "script.py"]
    environment = {key: value for key, value in os.environ.items() if key != "KERAS_BACKEND"}
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment, check=True)
    assert found.stdout == "tensorflow\n"
    assert found.stderr.count(f"KERAS_BACKEND={backend} is for Keras on") == (backend != "tensorflow")
