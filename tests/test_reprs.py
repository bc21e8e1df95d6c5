"""What objects say of themselves: in one short line, and in a notebook as a table and a picture."""

import inspect
import xml.etree.ElementTree

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import conv, graph, layers, profiling
from pydtconv.files.windowed_arrays import WindowedArrays


@pytest.fixture(scope="module")
def things():
    """Objects of a small training, by what they are."""
    model = keras.Sequential(
        [keras.Input((8, 8, 3)), layers.Conv2D(4, 3), layers.Flatten(), layers.Dense(2)], name="net"
    )
    model.compile("sgd", "mse", metrics=["mae"])
    data = np.zeros((8, 8, 8, 3), "float32"), np.zeros((8, 2), "float32")
    with profiling.Profiler(model, skip=0) as profiler:
        history = model.fit(*data, epochs=2, batch_size=4, verbose=0, validation_data=data)
    plan = model.plan(4)
    return {
        "Plan": plan,
        "Storage": plan.storages[0],
        "Graph": plan.graph,
        "Node": plan.graph.nodes[0],
        "ConvProblem": conv.ConvProblem.of((4, 8, 8, 3), (3, 3, 3, 4), padding="same", strides=2),
        "History": history,
        "Model": model,
        "Layer": model.layers[0],
        "Variable": model.weights[0],
        "Optimizer": model.optimizer,
        "Loss": keras.losses.MeanSquaredError(),
        "Metric": keras.metrics.MeanSquaredError(),
        "Callback": keras.callbacks.EarlyStopping(),
        "PyDataset": WindowedArrays(np.zeros((9, 2)), np.zeros(9), 4),
        "Profile": profiler.profile,
        "Profiler": profiler,
        "Trace": profiler.trace,
        "Split": graph.Split(),
        "Initializer": keras.initializers.HeNormal(),
        "Regularizer": keras.regularizers.L2(),
    }


def test_each_is_one_short_line(things):
    for name, thing in things.items():
        assert len(repr(thing)) < 300, name
        assert "\n" not in repr(thing), name


def test_what_they_say(things):
    texts = {name: repr(thing) for name, thing in things.items()}
    assert texts["Plan"].startswith("<Plan AUTO: ")
    assert " steps, peak 0.0 MiB" in texts["Plan"]
    assert texts["ConvProblem"] == (
        "<ConvProblem 4x8x8x3 * 3x3x3x4 -> 4x4x4x4, strides (2, 2), padding ((0, 1), (0, 1)), float32>"
    )
    assert texts["History"].startswith("<History: 2 epochs; loss 0, ")
    assert repr(keras.callbacks.History()) == "<History: 0 epochs>"
    assert texts["Model"] == "<Sequential name=net, built=True>"  # as Keras
    assert texts["PyDataset"] == f"<WindowedArrays: {len(things['PyDataset'])} batches>"
    assert texts["Profile"].startswith("<Profile net, 4 images: ")


class Incomplete(keras.utils.PyDataset):
    """Without a length."""


def test_a_data_set_that_is_not_complete_has_a_text_too():
    assert repr(Incomplete()) == "<Incomplete: no length>"


def test_problems_that_differ_differ_in_their_texts():
    shapes = (4, 8, 8, 4), (3, 3, 4, 4)
    others = [{}, {"strides": 2}, {"padding": "same"}, {"dilation": 2}, {"dtype": "float64"}]
    texts = [repr(conv.ConvProblem.of(*shapes, **other)) for other in others]
    texts.append(repr(conv.ConvProblem.of(shapes[0], (3, 3, 2, 4), groups=2)))
    assert len({*texts}) == 6


def shown(thing):
    """The picture and the table of what a notebook shows, parsed: it is well-formed."""
    text = thing._repr_html_().replace("&nbsp;", " ").replace("&#9632;", "")
    return xml.etree.ElementTree.fromstring(f"<div>{text}</div>")


def test_a_plan_in_a_notebook_shows_memory_over_time_and_what_is_kept(things):
    found = shown(things["Plan"])
    svg = found.find("{http://www.w3.org/2000/svg}svg")
    assert {each[0].text for each in svg if len(each)} >= {"input", "gradient", "peak"}
    rows = {row[0].text: row[1].text for row in found.find("table")}
    assert {"predicted peak", "kept for backward", "recomputed", "peak at"} <= rows.keys()
    assert "predicted peak" in found.find("details/pre").text
    assert len(things["Plan"]._repr_html_()) < 20000


@pytest.mark.slow
def test_an_offloading_plan_in_a_notebook_says_so():
    model = keras.applications.ResNet20(input_shape=(16, 16, 3), classes=10)
    model.compile("sgd", "sparse_categorical_crossentropy")
    plan = model.plan(16)
    less = model.plan(16, memory_limit=plan.peak_bytes * 8 // 10, offload=True)
    rows = {row[0].text: row[1].text for row in shown(less).find("table")}
    assert rows["offloaded"] == f"{less.offloaded.scratch_bytes / (1 << 20):.1f} MiB"
    assert rows["kept for backward"] != shown(plan).find("table")[3][1].text
    assert " MiB offloaded>" in repr(less)


def test_a_history_in_a_notebook_shows_its_curves(things):
    found = shown(things["History"])
    lines = [line[0].text for line in found.iter("{http://www.w3.org/2000/svg}polyline")]
    assert lines == ["loss", "val_loss", "mae", "val_mae"]
    assert len(found.find("table")) == 4
    assert shown(keras.callbacks.History()) is not None
    history = keras.callbacks.History()
    history.epoch, history.history = [0, 1], {"loss": [float("nan"), 1.0], "each": [np.ones(2)] * 2, "best": ["a", "b"]}
    assert [line[0].text for line in shown(history).iter("{http://www.w3.org/2000/svg}polyline")] == ["loss"]


def test_public_classes_that_hold_much_have_a_text_of_their_own():
    """Dataclasses print all that they hold: those with lists of others are to say less."""
    for room in (graph, conv, profiling, keras.simulation):
        for name in dir(room):
            cls = getattr(room, name)
            if inspect.isclass(cls) and hasattr(cls, "__dataclass_fields__"):
                large = any("list[" in str(field.type) and field.repr for field in cls.__dataclass_fields__.values())
                assert not large or cls.__repr__.__qualname__ == f"{name}.__repr__", name
                assert not large or "__create_fn__" not in cls.__repr__.__qualname__, name
