"""Models with lambda functions: their code is in the file, and runs only where the user says that it may."""

import base64
import io
import json
import marshal
import zipfile

import numpy as np
import pytest

import pydtconv
from pydtconv import Input, Model, Sequential, config, layers, ops, saving
from pydtconv.files.reading import BadFileError
from pydtconv.serialization import lambdas
from tests.real_keras import import_keras

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:The object being serialized:UserWarning")

X = np.random.default_rng(7).normal(size=(4, 3)).astype("float32")


def scaled(factor, offset):
    return lambda value, more=1.0: value * factor + offset[0] + more


FUNCTIONS = {
    "plain": lambda value: value * 2.0 + 1.0,
    "default": lambda value, more=3.0: value - more,
    "closure": scaled(2.0, np.ones(2, "float32")),
    "nested": lambda value: sum((lambda factor: value * factor)(k) for k in (1.0, 2.0, 3.0)),
}
#: Keras cannot load these itself
NOT_IN_KERAS = ("default", "closure")


def network(keras, function, **kwargs):
    x = keras.Input((3,))
    layer = keras.layers.Lambda(function, **kwargs)
    return keras.Model(x, keras.layers.Dense(2)(layer(keras.layers.Dense(3)(x))))


@pytest.mark.parametrize("case", FUNCTIONS)
def test_from_keras_where_the_user_trusts_the_file(case, tmp_path):
    theirs = network(import_keras(), FUNCTIONS[case])
    theirs.save(tmp_path / "a.keras")
    with pytest.raises(BadFileError, match="safe_mode=False"):
        saving.load_model(tmp_path / "a.keras")
    ours = saving.load_model(tmp_path / "a.keras", safe_mode=False)
    np.testing.assert_allclose(ours.predict(X, verbose=0), theirs.predict(X, verbose=0), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("case", [name for name in FUNCTIONS if name not in NOT_IN_KERAS])
def test_to_keras_which_asks_for_safe_mode_too(case, tmp_path):
    keras = import_keras()
    ours = network(pydtconv, FUNCTIONS[case])
    ours.save(tmp_path / "a.keras")
    with pytest.raises(ValueError, match="safe_mode=False"):
        keras.saving.load_model(tmp_path / "a.keras")
    theirs = keras.saving.load_model(tmp_path / "a.keras", safe_mode=False)
    np.testing.assert_allclose(ours.predict(X, verbose=0), theirs.predict(X, verbose=0), rtol=1e-5, atol=1e-6)


def test_a_function_for_the_shape_goes_both_ways(tmp_path):
    keras = import_keras()
    for one, another, name in ((keras, pydtconv, "a.keras"), (pydtconv, keras, "b.keras")):
        model = network(one, lambda value: value + 1.0, output_shape=lambda shape: shape)
        model.save(tmp_path / name)
        again = another.saving.load_model(tmp_path / name, safe_mode=False)
        np.testing.assert_allclose(again.predict(X, verbose=0), model.predict(X, verbose=0), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("case", FUNCTIONS)
@pytest.mark.parametrize("suffix", ["keras", "h5"])
def test_ours_come_back(case, suffix, tmp_path):
    model, path = network(pydtconv, FUNCTIONS[case]), tmp_path / f"a.{suffix}"
    model.save(path)
    with pytest.raises(ValueError, match="safe_mode=False"):
        saving.load_model(path)
    again = saving.load_model(path, safe_mode=False)
    np.testing.assert_array_equal(again.predict(X, verbose=0), model.predict(X, verbose=0))
    trusted = saving.load_model(path, {"<lambda>": FUNCTIONS[case]})
    np.testing.assert_array_equal(trusted.predict(X, verbose=0), model.predict(X, verbose=0))


def test_a_lambda_as_loss_goes_both_ways(tmp_path):
    keras = import_keras()
    for one, another, name in ((keras, pydtconv, "a.keras"), (pydtconv, keras, "b.keras")):
        model = one.Sequential([one.Input((3,)), one.layers.Dense(2)])
        model.compile("sgd", loss=lambda y_true, y_pred: (y_true - y_pred) ** 2)
        model.save(tmp_path / name)
        with pytest.raises(ValueError, match="safe_mode=False"):
            another.saving.load_model(tmp_path / name)
        again = another.saving.load_model(tmp_path / name, safe_mode=False)
        expected = model.evaluate(X, X[:, :2], verbose=0)
        np.testing.assert_allclose(again.evaluate(X, X[:, :2], verbose=0), expected, rtol=1e-5)


def test_a_lambda_as_activation_comes_back(tmp_path):
    model = Sequential([Input((3,)), layers.Dense(4, activation=lambda value: value * 0.5)])
    model.save(tmp_path / "a.keras")
    again = saving.load_model(tmp_path / "a.keras", safe_mode=False)
    np.testing.assert_array_equal(again.predict(X, verbose=0), model.predict(X, verbose=0))


def test_code_of_a_file_finds_the_library_and_custom_objects(tmp_path):
    model = network(pydtconv, lambda value: ops.relu(value) * np.float32(2))
    model.save(tmp_path / "a.keras")
    again = saving.load_model(tmp_path / "a.keras", safe_mode=False)
    np.testing.assert_array_equal(again.predict(X, verbose=0), model.predict(X, verbose=0))
    data = lambdas.dumped(eval("lambda value: offset + value"))
    config = {"class_name": "__lambda__", "config": data}
    assert saving.deserialize_keras_object(config, {"offset": 3.0}, safe_mode=False)(1.0) == 4.0


def test_nothing_is_unmarshalled_in_safe_mode(monkeypatch, tmp_path):
    network(pydtconv, FUNCTIONS["plain"]).save(tmp_path / "a.keras")
    monkeypatch.setattr(marshal, "loads", lambda data: pytest.fail("code was read"))
    with pytest.raises(BadFileError, match=r"a\.keras.*lambda"):
        saving.load_model(tmp_path / "a.keras")
    with saving.custom_object_scope({"<lambda>": FUNCTIONS["plain"]}):
        saving.load_model(tmp_path / "a.keras")
        saving.load_model(tmp_path / "a.keras", safe_mode=False)


def test_safe_mode_may_be_off_for_the_process(monkeypatch, tmp_path):
    network(pydtconv, FUNCTIONS["plain"]).save(tmp_path / "a.keras")
    monkeypatch.setattr(config, "_unsafe_deserialization", False)
    with pytest.raises(BadFileError, match="enable_unsafe_deserialization"):
        saving.load_model(tmp_path / "a.keras")
    config.enable_unsafe_deserialization()
    saving.load_model(tmp_path / "a.keras")


def test_safe_mode_is_on_again_after_a_load(tmp_path):
    network(pydtconv, FUNCTIONS["plain"]).save(tmp_path / "a.keras")
    saving.load_model(tmp_path / "a.keras", safe_mode=False)
    with pytest.raises(ValueError, match="safe_mode"):
        saving.load_model(tmp_path / "a.keras")
    with pytest.raises(ValueError, match="safe_mode"):
        layers.Lambda.from_config(layers.Lambda(FUNCTIONS["plain"]).get_config())


def with_code(path, change):
    """The file with another config of its lambda."""
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    whole = json.loads(files["config.json"])
    found = next(item for item in whole["config"]["layers"] if item["class_name"] == "Lambda")
    change(found["config"]["function"]["config"])
    files["config.json"] = json.dumps(whole).encode()
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    path.write_bytes(data.getvalue())


def of_python(version):
    return lambda parts: parts.update(python=version)


def of_code(change):
    def function(parts):
        del parts["python"]  # as in Keras's files
        code = marshal.loads(base64.decodebytes(parts["code"].encode()))
        parts["code"] = base64.encodebytes(change(code)).decode()

    return function


@pytest.mark.parametrize(
    "change",
    [
        of_python("3.4"),
        of_code(lambda code: marshal.dumps(code.replace(co_code=code.co_code[2:]))),
        of_code(lambda code: marshal.dumps(code.replace(co_code=code.co_code[:-2] + bytes([255, 0])))),
        of_code(lambda code: marshal.dumps(code.replace(co_code=code.co_code + bytes(2)))),
        of_code(lambda code: marshal.dumps(code.replace(co_consts=()))),
        of_code(lambda code: marshal.dumps(code)[:-9]),
        of_code(lambda code: marshal.dumps("text")),
        of_code(lambda code: b""),
    ],
    ids=["said", "no-resume", "unknown", "cache", "constants", "cut", "text", "empty"],
)
def test_code_of_another_python_is_refused(change, tmp_path):
    network(pydtconv, FUNCTIONS["plain"]).save(tmp_path / "a.keras")
    with_code(tmp_path / "a.keras", change)
    with pytest.raises(BadFileError, match=rf"Python.*, and this is Python {lambdas.PYTHON}"):
        saving.load_model(tmp_path / "a.keras", safe_mode=False)


def test_of_a_closure_that_cannot_be_saved_only_the_name_is(tmp_path):
    thing = object()
    x = Input((3,))
    model = Model(x, layers.Lambda(lambda value: value * (2.0 if thing else 1.0))(x))
    with pytest.warns(UserWarning, match="<lambda>"):
        model.save(tmp_path / "a.keras")
    with pytest.raises(ValueError, match="<lambda>"):
        saving.load_model(tmp_path / "a.keras", safe_mode=False)
