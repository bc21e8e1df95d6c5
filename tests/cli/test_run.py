"""`pydtconv run`: scripts run as with python, and keras and tensorflow are pydtconv in them."""

import json
import re
import shutil
import subprocess
import sys
import textwrap

import pytest

from pydtconv.cli import main
from pydtconv.cli import run as run_module


@pytest.fixture
def run(tmp_path):
    """Writes a script, runs it by the command in a process of its own, and returns the finished process."""

    def run_script(source, *arguments, name="script.py", check=True):
        path = tmp_path / name
        path.write_text(textwrap.dedent(source))
        command = [sys.executable, "-W", "error", "-m", "pydtconv", "run", name, *arguments]
        result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
        assert not check or result.returncode == 0, result.stderr
        return result

    return run_script


@pytest.mark.slow
def test_a_script_sees_what_python_gives_it(run, tmp_path):
    (tmp_path / "neighbour.py").write_text("VALUE = 7\n")
    result = run(
        """
        import sys
        import __main__
        from neighbour import VALUE
        print(__name__, sys.argv, VALUE, __main__.__file__ == __file__, __main__.VALUE)
        """,
        "--epochs",
        "3",
    )
    assert result.stdout == "__main__ ['script.py', '--epochs', '3'] 7 True 7\n"


@pytest.mark.slow
def test_a_script_comes_by_standard_input(tmp_path):
    (tmp_path / "neighbour.py").write_text("VALUE = 7\n")
    source = "import sys, keras\nfrom neighbour import VALUE\nprint(keras.__name__, sys.argv, __name__, VALUE)\n1 / 0\n"
    command = [sys.executable, "-m", "pydtconv", "run", "-", "--epochs", "3"]
    result = subprocess.run(command, input=source, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert result.stdout == "keras ['-', '--epochs', '3'] __main__ 7\n"
    assert result.stderr.startswith('Traceback (most recent call last):\n  File "<stdin>", line 4, in <module>')
    assert result.returncode == 1


@pytest.mark.slow
def test_classes_of_a_script_can_be_pickled(run):
    result = run(
        """
        import pickle
        class Thing:
            pass
        print(type(pickle.loads(pickle.dumps(Thing()))) is Thing)
        """
    )
    assert result.stdout == "True\n"


@pytest.mark.slow
def test_a_traceback_begins_in_the_script(run):
    result = run("def f():\n    return 1 / 0\n\nf()\n", check=False)
    assert result.returncode == 1
    lines = result.stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1] == '  File "script.py", line 4, in <module>'
    assert lines[-1] == "ZeroDivisionError: division by zero"
    assert "pydtconv" not in result.stderr


@pytest.mark.slow
def test_a_syntax_error_is_shown_as_python_does(run):
    result = run("x = = 1\n", check=False)
    assert result.returncode == 1
    assert 'File "script.py", line 1' in result.stderr
    assert "pydtconv" not in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statement", "status"),
    [
        ("sys.exit(5)", 5),
        ("sys.exit()", 0),
        ("sys.exit('no')", 1),
    ],
)
def test_the_exit_status_is_the_scripts(run, statement, status):
    assert run(f"import sys\n{statement}\n", check=False).returncode == status


def test_keras_and_tensorflow_are_pydtconv(run):
    run(
        """
        import keras
        import keras.layers as first
        import tensorflow as tf
        import tensorflow.keras.layers as second
        from keras import backend as K
        from keras.datasets import digits
        from keras.layers import Dense
        from tensorflow import keras as tf_keras
        from tensorflow.keras.layers import Dense as SameDense
        import pydtconv

        assert Dense is SameDense is first.Dense is second.Dense is tf.keras.layers.Dense is pydtconv.layers.Dense
        assert keras.Model is tf_keras.Model is pydtconv.Model
        assert K.image_data_format() == "channels_last" and K.backend() == keras.config.backend() == "tensorflow"
        assert digits.load_data()[0][0].shape == (1438, 8, 8)
        assert int(keras.__version__.split(".")[0]) == 3
        assert "layers" in dir(keras) and "Dense" in dir(first) and "np" not in dir(first)
        """
    )


@pytest.mark.slow
def test_names_of_tensorflow_that_scripts_use(run):
    run(
        """
        import numpy as np
        import tensorflow as tf

        tf.random.set_seed(3)
        first = tf.random.normal((2, 3))
        tf.random.set_seed(3)
        assert (tf.random.normal((2, 3)) == first).all() and first.dtype == np.float32
        assert tf.config.list_physical_devices("GPU") == []
        assert tf.cast([1.5], tf.int32).dtype == np.int32
        assert tf.one_hot([1], 3).tolist() == [[0, 1, 0]]
        assert tf.constant([1, 2], dtype=tf.float32).dtype == np.float32
        assert int(tf.__version__.split(".")[0]) == 2
        """
    )


MISSING = [
    (
        "from keras.layers import Conv2d",
        "ImportError",
        r"pydtconv has no keras.layers.Conv2d; the nearest it has: .*Conv2D",
    ),
    (
        "keras.layers.Desne",
        "AttributeError",
        r"pydtconv has no keras.layers.Desne; the nearest it has: keras.layers.Dense",
    ),
    ("from keras.layers import TFSMLayer", "ImportError", r"no keras.layers.TFSMLayer: a graph of TensorFlow"),
    ("import keras.src.layers", "ImportError", r"keras.src; instead use the public names of keras"),
    ("import keras.layers.nothing", "ImportError", r"pydtconv has no keras.layers.nothing"),
    ("import keras.graph", "ImportError", r"pydtconv has no keras.graph"),
    (
        "from keras.preprocessing.image import nothing_like",
        "ImportError",
        r"has no keras.preprocessing.image.nothing_like",
    ),
    ("import tensorflow.lite as lite", "ImportError", r"pydtconv has no tensorflow.lite: .*ONNX"),
    ("tf.raw_ops(f, x)", "AttributeError", r"pydtconv has no tensorflow.raw_ops"),
    ("tf.data.TFRecords('x')", "AttributeError", r"no tensorflow.data.TFRecords; .*TFRecordDataset"),
    ("keras.datasets.mnst", "AttributeError", r"no keras.datasets.mnst; the nearest it has: keras.datasets.mnist"),
    ("keras.layers.np", "AttributeError", r"pydtconv has no keras.layers.np"),
]


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What each statement of MISSING raises, as one script finds it: [name of the error, its text]."""
    folder = tmp_path_factory.mktemp("missing")
    source = """
import json, sys
import keras
import tensorflow as tf
told = {}
for statement in json.loads(sys.argv[1]):
    try:
        exec(statement)
    except Exception as error:
        told[statement] = [type(error).__name__, str(error)]
assert not hasattr(keras, "nothing_like_it")
print(json.dumps(told))
"""
    (folder / "script.py").write_text(source)
    statements = json.dumps([statement for statement, _, _ in MISSING])
    command = [sys.executable, "-W", "error", "-m", "pydtconv", "run", "script.py", statements]
    result = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.slow
@pytest.mark.parametrize(("statement", "error", "message"), MISSING)
def test_a_missing_name_is_named_with_the_nearest(told, statement, error, message):
    assert statement in told, "no error"
    assert told[statement][0] == error
    assert re.search(message, told[statement][1])


@pytest.mark.slow
def test_outside_of_a_script_keras_is_what_it_was():
    code = "import sys, pydtconv.compat.keras_names as names;"
    code += "ours = lambda: sum(isinstance(finder, names.Finder) for finder in sys.meta_path);"
    code += "names.install(); names.install(); assert ours() == 1; import keras; names.uninstall();"
    code += "assert ours() == 0 and 'keras' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_keras_that_is_loaded_already_is_refused():
    code = "import sys, types, pydtconv.compat.keras_names as names; sys.modules['keras'] = types.ModuleType('keras');"
    code += "names.install()"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "RuntimeError: keras was imported before pydtconv" in result.stderr


MAIN = """
import sys, os, neighbour
print(__name__, __spec__.name, repr(__package__), os.path.basename(sys.argv[0]), sys.argv[1:], neighbour.VALUE)
print(os.path.basename(__file__), sys.modules["__main__"].neighbour is neighbour)
1 / 0
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Runs the command in a folder, in this process, which is as it was afterwards."""

    def run_here(words):
        with monkeypatch.context() as patch:
            patch.chdir(tmp_path)
            patch.setattr(run_module.keras_names, "install", lambda: None)
            patch.setattr(sys, "argv", sys.argv)
            patch.setattr(sys, "path", [*sys.path])
            patch.setitem(sys.modules, "__main__", sys.modules["__main__"])
            status = main(["run", *words])
        for name in ("neighbour", "package", "package.__main__", "package.train"):
            sys.modules.pop(name, None)
        return status

    return run_here


@pytest.mark.parametrize("words", [["app"], ["app.zip"], ["-m", "package"], ["-m", "package.train"]], ids=" ".join)
def test_folders_zip_files_and_modules_run_as_with_python(words, here, tmp_path, capsys):
    for folder in ("app", "package"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__main__.py").write_text(MAIN)
        (tmp_path / folder / "neighbour.py").write_text("VALUE = 7\n")
    (tmp_path / "package/__init__.py").touch()
    (tmp_path / "package/train.py").write_text(MAIN)
    (tmp_path / "neighbour.py").write_text("VALUE = 8\n")
    shutil.make_archive(tmp_path / "app", "zip", tmp_path / "app")
    words = [*words, "--epochs", "3"]
    python = subprocess.run([sys.executable, *words], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert here(words) == python.returncode == 1
    printed = capsys.readouterr()
    assert printed.out == python.stdout
    shown = printed.err.splitlines()
    assert shown[0] == "Traceback (most recent call last):"
    assert [line.split("/")[-1] for line in shown[1:]] == [
        line.split("/")[-1] for line in python.stderr.splitlines() if "<frozen runpy>" not in line
    ][1:]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["empty"], "expected a file __main__.py in 'empty', which is what runs; found none"),
        (["-m", "nowhere"], "-m: expected a module as in `import nowhere`, found no nowhere"),
        (["-m", "nowhere.at.all"], "-m: cannot find nowhere.at.all: No module named 'nowhere'"),
        (["-m", "empty"], "-m: expected a module as in `import empty.__main__`, found no empty.__main__, as empty is"),
    ],
)
def test_what_cannot_be_run_is_said_in_a_line(words, said, here, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    assert here(words) == 2
    assert capsys.readouterr().err.startswith(f"pydtconv run: {said}")
