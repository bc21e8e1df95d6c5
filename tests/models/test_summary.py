"""The table of layers: counts, shapes, connections, widths."""

import pytest

from pydtconv import Input, Model, Sequential, layers


def text_of(model, **kwargs):
    lines = []
    model.summary(print_fn=lines.append, **kwargs)
    return "\n".join(lines)


def chain():
    return Sequential([Input((8, 8, 3)), layers.Conv2D(4, 3, name="c"), layers.BatchNormalization(name="b")], name="m")


def test_counts():
    text = text_of(chain())
    assert 'Model: "m"' in text
    assert "Total params: 128 (512.00 B)" in text
    assert "Trainable params: 120 (480.00 B)" in text
    assert "Non-trainable params: 8 (32.00 B)" in text
    assert "(None, 6, 6, 4)" in text
    assert "c (Conv2D)" in text
    assert "InputLayer" not in text


def test_frozen_layer():
    model = chain()
    model.get_layer("c").trainable = False
    assert "Trainable params: 8 (32.00 B)" in text_of(model)
    rows = [line for line in text_of(model, show_trainable=True).splitlines() if "c (Conv2D)" in line]
    assert rows[0].rstrip(" │").endswith("N")


def test_connections_of_a_branched_model():
    x = Input((8, 8, 3), name="x")
    y = layers.ReLU(name="r")(x)
    text = text_of(Model(x, layers.Add(name="a")([x, y]) * 2.0))
    assert "Connected to" in text
    assert "x[0][0]" in text
    assert "r[0][0]" in text


def test_every_line_has_the_asked_width():
    for length in (60, 100):
        lines = text_of(chain(), line_length=length).splitlines()
        table = [line for line in lines if line[0] in "┏┃┡│├└"]
        assert len({len(line) for line in table}) == 1
        assert abs(len(table[0]) - length) <= 2
    with pytest.raises(ValueError, match="line_length"):
        text_of(chain(), line_length=8)


def test_nested_layers_are_shown_on_request():
    model = Sequential([Input((8, 8, 3)), Sequential([layers.Conv2D(4, 3, name="inside")])])
    assert "inside" not in text_of(model)
    assert "└ inside" in text_of(model, expand_nested=True)


def test_unbuilt_model():
    text = text_of(Sequential([layers.Conv2D(4, 3)]))
    assert "0 (unbuilt)" in text
    assert "Total params: 0" in text


def test_layer_range():
    text = text_of(chain(), layer_range=("b", "b"))
    assert "c (Conv2D)" not in text
    assert "b (BatchNormalization)" in text
    with pytest.raises(ValueError, match="layer_range"):
        text_of(chain(), layer_range=("q", "b"))


def test_large_numbers_have_separators():
    model = Sequential([Input((4, 4, 100)), layers.Conv2D(100, 3)])
    assert "90,100" in text_of(model)
