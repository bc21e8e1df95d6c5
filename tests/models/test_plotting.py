"""plot_model: boxes, arrows and frames in Graphviz's language."""

import shutil

import pytest

import pydtconv as keras
from pydtconv import layers


@pytest.fixture
def model():
    inner = keras.Sequential([keras.Input((8,)), layers.Dense(4, activation="tanh", name="d1")], name="inner")
    inputs = keras.Input((8,), name="x")
    x = layers.Dense(8, name="d0", trainable=False)(inputs)
    return keras.Model(inputs, inner(x + inputs))


def test_what_is_drawn(model, tmp_path):
    path = tmp_path / "net.dot"
    keras.utils.plot_model(model, path, show_shapes=True, show_layer_names=True, show_trainable=True)
    text = path.read_text()
    assert '"d0" [label="d0 (Dense)\\ninput: (None, 8)\\noutput: (None, 8)\\nnon-trainable"];' in text
    assert '"x" -> "d0";' in text
    assert text.count("->") == 4
    assert "d1" not in text
    text = keras.utils.model_to_dot(model, expand_nested=True, show_layer_activations=True).to_string()
    assert 'subgraph "cluster_inner"' in text
    assert '-> "inner/input_layer";' in text or '-> "inner/' in text
    assert "activation: tanh" in text


def test_what_cannot_be_drawn(model, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    keras.utils.plot_model(model, tmp_path / "net.png")  # a script that draws goes on
    assert capsys.readouterr().out == (
        "plot_model: a picture of format 'png' needs Graphviz, whose program 'dot' is not installed: "
        "expected to_file to end in '.dot', which needs nothing\n"
    )
    assert not (tmp_path / "net.png").exists()
    with pytest.raises(ImportError, match="format 'png' needs Graphviz"):
        keras.utils.model_to_dot(model).write(tmp_path / "net.png", format="png")
    with pytest.raises(ValueError, match="is not built yet"):
        keras.utils.model_to_dot(keras.Sequential([layers.Dense(2)]))
