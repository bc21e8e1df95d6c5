"""Each message of docs/troubleshooting.md is raised by what it is about."""

import re
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import conv, layers, saving
from pydtconv.engine import room
from pydtconv.graph import Memory

ROOT = Path(__file__).parent.parent
#: heading and message
ENTRIES = dict(
    re.findall(r"^### (.*)\n\n```\n(.*)\n```$", (ROOT / "docs" / "troubleshooting.md").read_text(), re.MULTILINE)
)
X, Y = np.ones((8, 4), "float32"), np.arange(8) % 3


def model(units=3, name=None):
    made = keras.Sequential([keras.Input((4,)), layers.Dense(units, activation="softmax")], name=name)
    made.compile("sgd", "sparse_categorical_crossentropy")
    return made


class Branches(layers.Layer):
    def call(self, x):
        return x if keras.ops.sum(x) > 0 else -x


def set_up():
    """The message of tools/venv.sh."""
    raise OSError((ROOT / "tools" / "venv.sh").read_text())


def read_other_weights():
    model(3).save_weights("a.weights.h5")
    model(5).load_weights("a.weights.h5")


def read_damage():
    Path("damaged.keras").write_bytes(b"none")
    saving.load_model("damaged.keras")


def read_code():
    keras.Sequential([keras.Input((4,)), layers.Lambda(lambda x: x * 2)]).save("a.keras")
    saving.load_model("a.keras")


def take_too_much():
    room.check(SimpleNamespace(peak_bytes=1 << 60, parameter_bytes=0), Memory())


RAISE = {
    "No compiler": set_up,
    "No headers of Python": set_up,
    "No GPU": lambda: keras.config.set_device("gpu"),
    "A name that does not exist": lambda: layers.Dens,
    "float16": lambda: keras.config.set_dtype_policy("mixed_float16"),
    "An optimizer or a metric by a wrong name": lambda: model().compile("adm"),
    "Another number of features": lambda: model().predict(np.ones((8, 5)), verbose=0),
    "No axis of the batch": lambda: keras.Sequential([keras.Input((8, 8, 3)), layers.Flatten()]).predict(
        np.ones((8, 8, 3))
    ),
    "Labels outside of the classes": lambda: model().fit(X, Y + 1, verbose=0),
    "Inputs and targets of different lengths": lambda: model().fit(X, Y[:5], verbose=0),
    "A filter larger than the image": lambda: layers.Conv2D(8, 5)(keras.Input((4, 4, 3))),
    "Not compiled": lambda: keras.Sequential([keras.Input((4,)), layers.Dense(3)]).fit(X, Y),
    "Values while code is traced": lambda: keras.Sequential([keras.Input((4,)), Branches()]).predict(X),
    "A plan without input shapes": lambda: keras.Sequential([layers.Dense(3)], name="small").plan(8),
    "An algorithm that cannot do a layer": lambda: conv.choose(
        conv.ConvProblem(1, 8, 8, 3, 4, 5), "forward", "winograd"
    ),
    "A limit that is too small": lambda: model().fit(X, Y, memory_limit=10, verbose=0),
    "A step that takes more than there is": take_too_much,
    "No folder to offload to": lambda: model().fit(X, Y, memory_limit="1GB", offload="none", verbose=0),
    "No such file": lambda: saving.load_model("none.keras"),
    "A damaged file": read_damage,
    "Weights of another model": read_other_weights,
    "Code in a file": read_code,
}


@pytest.mark.parametrize("heading", RAISE)
def test_the_message_is_that_of_the_page(heading, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "cupy", None)  # it is not there
    with pytest.raises(Exception) as found:  # noqa: PT011, the class is not on the page
        RAISE[heading]()
    assert ENTRIES[heading] in str(found.value)


def test_each_message_of_the_page_is_raised():
    assert ENTRIES.keys() == RAISE.keys()
