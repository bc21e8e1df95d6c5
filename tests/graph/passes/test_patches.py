"""Split networks: schemes within their bounds, gradients of networks written by hand, exact patches, memory."""

from __future__ import annotations

import random

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import Split, applications, layers, ops
from pydtconv.engine import Workspace
from pydtconv.graph import Disk, Executor, Graph, Memory, MemoryLimitError, Offload, build_plan
from pydtconv.graph.passes.patch_borders import bounds, drawn, even, needed
from pydtconv.ops.base import Spec, Window
from tests.graph.networks import NETWORKS, trace
from tests.marks import slow

SIZE, BATCH = 20, 2


@pytest.fixture
def float64():
    before = keras.config.floatx()
    keras.config.set_floatx("float64")
    yield
    keras.config.set_floatx(before)


def gradients(build, split: Split | None = None, draw: int | None = None) -> tuple[float, np.ndarray, list[str]]:
    """Loss and the gradients of all parameters of `build(x)`'s sum of squares, by the names of parameters."""
    keras.utils.set_random_seed(7)
    rng = np.random.default_rng(1)
    graph = Graph(training=True)
    with graph:
        x = graph.input("x", Spec((BATCH, SIZE, SIZE, 3), "float64"))
        y = build(x)
        graph.loss = graph.outputs["loss"] = ops.mean(y * y)
    graph.split, graph.split_draw = split, draw
    memory = Memory()
    executor = Executor(build_plan(graph), memory)
    loss = float(executor.run({"x": rng.standard_normal((BATCH, SIZE, SIZE, 3))})["loss"])
    assert memory.store is not None
    named = {v.path: memory.store.gradient_of(v).ravel().copy() for v in memory.store.variables}
    return loss, np.concatenate([named[name] for name in sorted(named)]), sorted(named)


def variables() -> dict[str, keras.Variable]:
    rng = np.random.default_rng(2)
    shapes = {"w0": (5, 3, 3, 4), "b0": (4,), "w1": (3, 3, 4, 4), "w2": (3, 3, 4, 4), "w3": (1, 1, 4, 4)}
    return {
        name: keras.Variable(rng.standard_normal(shape), dtype="float64", name=name) for name, shape in shapes.items()
    }


def whole(v):
    """A convolution with bias and ReLU, pooling, a strided residual block with two branches, a convolution behind."""

    def build(x):
        x = ops.Activation("relu")(ops.Bias()(ops.Conv(padding="same")(x, v["w0"]), v["b0"]))
        x = ops.MaxPool((3, 3), (2, 2), "same")(x)
        main = ops.Activation("relu")(ops.Conv(strides=2, padding="same")(x, v["w1"]))
        main = ops.Conv(padding="same")(main, v["w2"])
        x = ops.Activation("relu")(main + ops.Conv(strides=2)(x, v["w3"]))
        return ops.Conv()(x, v["w3"])

    return build


def by_hand(v):
    """The same in 2 x 1 patches, from crops, paddings and concatenations: 20 -> 20 -> 10 -> 5 rows.

    Borders of rows: 2 of 5 for the block's result; 4 of 10 before it (the shortcut leaves no choice); before the
    pooling, whose windows have one row in common, 8; before the first convolution, of 5 rows, 8 as the middle of 6..10.
    """

    def build(x):
        parts = []
        for number in (0, 1):
            top, bottom = number == 0, number == 1
            part = ops.Slice((0, 0, 0, 0), (None, 8, None, None))(x) if top else x[:, 8:]
            y = ops.Conv(padding=((2, 2), (1, 1)))(part, v["w0"])
            y = ops.Activation("relu")(ops.Bias()(y, v["b0"]))
            y = ops.MaxPool((3, 3), (2, 2), ((0, 1), (0, 1)))(y)
            assert y.shape[1] == (4 if top else 6)
            rows = (0, 1)
            main = ops.Activation("relu")(ops.Conv(strides=2, padding=(rows, (0, 1)))(y, v["w1"]))
            assert main.shape[1] == (2 if top else 3)
            main = ops.Conv(padding=((1, 1), (1, 1)))(main, v["w2"])
            parts.append(ops.Activation("relu")(main + ops.Conv(strides=2)(y, v["w3"])))
            assert bottom or top
        return ops.Conv()(ops.Concatenate(1)(*parts), v["w3"])

    return build


def test_gradients_are_those_of_a_network_written_by_hand(float64) -> None:
    v = variables()
    found = gradients(whole(v), Split(0.8, (2, 1)))
    want = gradients(by_hand(v))
    assert found[2] == want[2]
    assert found[0] == pytest.approx(want[0], rel=1e-12)
    np.testing.assert_allclose(found[1], want[1], rtol=1e-10, atol=1e-10)
    assert abs(found[0] / gradients(whole(v))[0] - 1) > 1e-6  # another network than the whole one


def test_exact_patches_of_padding_alone_are_refused(float64) -> None:
    """Their convolutions would have an empty result."""
    v = variables()

    def build(x):
        return ops.Pad(((0, 0), (0, 0), (9, 9), (0, 0)))(ops.Conv(padding="same")(x, v["w0"]))

    with pytest.raises(ValueError, match="split: expected patches that the windows of pad#1 meet"):
        gradients(build, Split(1.0, (1, 5), exact=True))


@pytest.mark.parametrize("splits", [(2, 2), pytest.param((3, 2), marks=pytest.mark.slow)])
def test_exact_patches_give_what_the_whole_network_gives(float64, splits) -> None:
    v = variables()
    found, want = gradients(whole(v), Split(0.8, splits, exact=True)), gradients(whole(v))
    assert found[0] == pytest.approx(want[0], rel=1e-12)
    np.testing.assert_allclose(found[1], want[1], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("exact", [True, False])
def test_channels_of_zeros_pass_through(float64, exact) -> None:
    """A shortcut without parameters: zeros in the place of channels (He et al., 2016, option A)."""
    v = variables()
    few = keras.Variable(np.random.default_rng(0).normal(size=(1, 1, 4, 2)), dtype="float64", name="few")

    def build(x):
        x = ops.Conv(padding="same")(x, v["w0"])
        wide = ops.Pad(((0, 0), (0, 0), (0, 0), (1, 1)))(ops.Conv(padding="same")(x, few))
        return ops.Conv(padding="same")(ops.Add()(x, wide), v["w1"])

    found, want = gradients(build, Split(1.0, (2, 2), exact=exact)), gradients(build)
    if exact:
        assert found[0] == pytest.approx(want[0], rel=1e-12)
        np.testing.assert_allclose(found[1], want[1], rtol=1e-10, atol=1e-10)
    else:
        assert abs(found[0] / want[0] - 1) > 1e-6


def test_the_depth_that_is_asked_for_is_reached() -> None:
    """Of 21 convolutions of ResNet20, whose shortcuts pad channels."""
    model = applications.build("resnet20", input_shape=(32, 32, 3), classes=10)
    for depth, count in ((0.25, 5), (0.5, 11), (0.75, 15), (1.0, 19)):
        split = Split(depth, (2, 2))
        assert sum(row["op"] == "conv" for row in split.schemes(model)) == count


def normalized(v):
    """As `whole`, with batch normalization behind each convolution, before and behind the addition."""
    w = {name: keras.Variable(np.linspace(0.5, 1.5, 4), dtype="float64", name=name) for name in ("g0", "g1", "g2")}
    zeros = {name: keras.Variable(np.zeros(4), dtype="float64", name=name) for name in ("b1", "b2", "b3")}
    moving = {
        f"{kind}{i}": keras.Variable(np.full(4, kind == "v"), dtype="float64", name=f"{kind}{i}", trainable=False)
        for kind in "mv"
        for i in range(3)
    }

    def normalize(x, i):
        return ops.BatchNorm()(x, w[f"g{i}"], zeros[f"b{i + 1}"], moving[f"m{i}"], moving[f"v{i}"])

    def build(x):
        x = ops.Activation("relu")(normalize(ops.Conv(padding="same")(x, v["w0"]), 0))
        x = ops.MaxPool((3, 3), (2, 2), "same")(x)
        main = ops.Activation("relu")(normalize(ops.Conv(strides=2, padding="same")(x, v["w1"]), 1))
        main = ops.Conv(padding="same")(main, v["w2"])
        x = ops.Activation("relu")(normalize(main + ops.Conv(strides=2)(x, v["w3"]), 2))
        return ops.Conv()(x, v["w3"])

    return build, moving


@pytest.mark.parametrize("splits", [(2, 2), slow((3, 2))])
def test_exact_patches_with_statistics_of_the_image_are_the_whole_network(float64, splits) -> None:
    v = variables()
    (build, moving), (other, wanted) = normalized(v), normalized(v)
    found = gradients(build, Split(0.8, splits, exact=True, statistics="image"))
    want = gradients(other)
    assert found[0] == pytest.approx(want[0], rel=1e-12)
    np.testing.assert_allclose(found[1], want[1], rtol=1e-10, atol=1e-10)
    for name, value in moving.items():
        np.testing.assert_allclose(value.value, wanted[name].value, rtol=1e-12)
        assert name.startswith("v") or abs(value.value).min() > 1e-4  # it has moved


def test_statistics_are_of_each_patch_or_of_all() -> None:
    """A layer that normalizes alone: the statistics of an image whose halves differ tell them apart."""

    def moments(split: Split | None) -> tuple[np.ndarray, np.ndarray]:
        moving = [keras.Variable(np.zeros(1), name=f"m{i}", trainable=False) for i in range(2)]
        ones, zeros = keras.Variable(np.ones(1), name="g"), keras.Variable(np.zeros(1), name="b")
        w = keras.Variable(np.ones((1, 1, 1, 1)), name="w")
        graph = Graph(training=True)
        with graph:
            x = graph.input("x", Spec((1, 4, 4, 1), "float32"))
            y = graph.outputs["y"] = ops.BatchNorm(momentum=0.81)(ops.Conv()(x, w), ones, zeros, *moving)
            graph.loss = ops.mean(y * y)
        graph.split = split
        image = np.zeros((1, 4, 4, 1), np.float32)
        image[:, 2:] = 1
        y = Executor(build_plan(graph), Memory()).run({"x": image})["y"].copy()
        return y.ravel(), np.array([each.value[0] for each in moving])

    whole, alone = moments(None), moments(Split(1.0, (2, 1)))
    joined = moments(Split(1.0, (2, 1), statistics="image"))
    np.testing.assert_allclose(joined[0], whole[0], rtol=1e-6)
    np.testing.assert_allclose(joined[1], whole[1], rtol=1e-6)
    np.testing.assert_allclose(alone[0], 0, atol=1e-6)  # each half is its own mean
    # two moves by the root of the momentum: 0, then 1; a variance between the halves is not seen
    np.testing.assert_allclose(alone[1], [0.1, 0.0], atol=1e-6)


def test_drawn_schemes_are_within_the_bounds(float64) -> None:
    v = variables()
    results = {round(gradients(whole(v), Split(0.8, (2, 2), 0.3), draw)[0], 12) for draw in range(4)}
    assert len(results) > 1
    rng = random.Random(1)
    for _ in range(200):
        starts = drawn(40, 4, 0.2, rng)
        assert len(set(starts)) == 4
        assert all(abs(a - b) <= 2 for a, b in zip(starts, even(40, 4), strict=True))
    assert drawn(3, 3, 0.4, rng) == (0, 1, 2)
    with pytest.raises(ValueError, match="expected at most 3 patches along an axis of 3 elements, got 4"):
        even(3, 4)


@pytest.mark.parametrize("window", [Window(3, 1, 1, 1, 1), Window(3, 2, 1, 0, 1), Window(7, 2, 1, 3, 3), Window(1, 2)])
def test_bounds_are_the_first_element_of_a_patch_and_the_one_behind_the_last_window_before_it(window) -> None:
    for start in range(1, 6):
        low, high = bounds(window, start)
        assert low == needed(window, (start, start + 1))[0]
        assert high == max(needed(window, (start - 1, start))[1], low)


@pytest.mark.parametrize("name", [name if name == "residual" else slow(name) for name in NETWORKS])
def test_networks_of_all_shapes_run_in_patches(name) -> None:
    size, batch = 32, 2
    graph = trace(NETWORKS[name](size, 16), name, size, batch)
    graph.split = Split(0.5, (2, 2))
    plan = build_plan(graph)
    assert any(report.name == "patches" and report.after > report.before for report in plan.passes)
    rng = np.random.default_rng(0)
    inputs = {"x": rng.random((batch, size, size, 3), np.float32), "y_true": rng.integers(0, 10, batch)}
    assert np.isfinite(Executor(plan, Memory()).run(inputs)["loss"])


@pytest.mark.slow
def test_less_memory_than_whole_with_recomputation_and_offload() -> None:
    def least(split: Split | None) -> int:
        graph = trace(NETWORKS["dense"](64, 8), "dense", 64, 4)
        graph.split = split
        with pytest.raises(MemoryLimitError) as error:
            build_plan(graph, memory_limit=1, offload=Offload(Disk()))
        return error.value.smallest_bytes

    assert least(Split(0.5, (2, 2))) < 0.9 * least(None)


def test_schemes_name_the_operators_of_the_step(float64) -> None:
    """Their inputs have the dtype of the model's: no cast comes before them."""
    model = NETWORKS["residual"](16, 4)
    graph = Graph(training=True)
    with graph:
        model(graph.input("x", Spec((BATCH, 16, 16, 3), "float64")), training=True)
    assert {row["node"] for row in Split(0.5, (2, 2)).schemes(model)} <= {node.name for node in graph.nodes}


def test_schemes_of_several_outputs() -> None:
    inputs = keras.Input((8, 8, 3))
    x = layers.Conv2D(4, 3, padding="same")(layers.Conv2D(4, 3, padding="same")(inputs))
    ends = [layers.Dense(3)(layers.GlobalAveragePooling2D()(x)), layers.Dense(3)(layers.Flatten()(x))]
    assert len(Split(0.5, (2, 2)).schemes(keras.Model(inputs, ends))) == 2


def test_schemes_are_shown() -> None:
    model = NETWORKS["residual"](16, 4)
    rows = Split(0.5, (2, 2)).schemes(model)
    convolutions = [row for row in rows if row["op"] == "conv"]
    assert 3 <= len(convolutions) <= 7
    assert convolutions[0]["input rows"] == [0, 8]
    assert convolutions[0]["padding rows"] == [(1, 1), (1, 1)]
    exact = Split(0.5, (2, 2), exact=True).schemes(model)
    assert len(exact) == 1  # batch normalization takes the statistics of all
    assert exact[0]["input rows"] == [(0, 9), (7, 16)]
    assert all(row["more"] == 0 for row in rows)
    halos = Split(0.8, (2, 2), exact=True, statistics="image").schemes(model)
    assert [row["more"] for row in halos if row["op"] == "batchnorm"][:1] == [pytest.approx((18 / 16) ** 2 - 1)]
    text = Split(0.8, (2, 2), exact=True, statistics="image").describe(model)
    assert text.startswith("patches: 2x2 of")
    assert "% of their multiplications are done again" in text
    assert Split(0.0).describe(model) == "patches: none"
    assert Split(0.0).schemes(model) == []


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("0.5:2x2:0.2", Split(0.5, (2, 2), 0.2)),
        ("0.25:3x1", Split(0.25, (3, 1))),
        ("1:2x2:exact", Split(1.0, (2, 2), exact=True)),
        ("1:2x2:image", Split(1.0, (2, 2), statistics="image")),
        ("1:2x2:0.1:image", Split(1.0, (2, 2), 0.1, statistics="image")),
    ],
)
def test_texts(text, want) -> None:
    assert Split.of(text) == want
    assert Split.of(want.get_config()) == want


@pytest.mark.parametrize(
    "value",
    ["0.5", "0.5:2", "x:2x2", "0.5:2x2:0.2:1", "0.5:0x2", "1.5:2x2", "0.5:2x2:0.5", "0.5:2x2:exact:patches", 3, True],
)
def test_what_is_no_split_is_refused(value) -> None:
    with pytest.raises(ValueError, match=r"[Ss]plit"):
        keras.Sequential([keras.Input((8, 8, 3))]).compile("sgd", "mse", split=value)


def test_schemes_are_renewed_one_by_one() -> None:
    split = Split(0.5, (2, 2), 0.4)
    drawn = [split.draw(3, step) for step in range(2000)]
    assert set(drawn[:32]) == set(range(8))
    assert all(step // 32 <= draw < step // 32 + 8 for step, draw in enumerate(drawn))
    assert len(set(drawn)) > 60
    assert {split.draw(3, step, renewed=False) for step in range(2000)} == set(range(8))
    assert Split(0.5, (2, 2)).draw(3, 7) is None


def test_a_new_scheme_without_a_plan_within_the_limit_leaves_the_old_one(monkeypatch) -> None:
    """Schemes 9, 11, ... have none."""
    monkeypatch.setattr("pydtconv.graph.passes.split.RENEWED", 1)
    bind = Workspace.bind

    def bound(self, graph, *rest):
        if graph.split_draw is not None and graph.split_draw >= 8 and graph.split_draw % 2:
            raise MemoryLimitError(1, 2)
        return bind(self, graph, *rest)

    monkeypatch.setattr(Workspace, "bind", bound)
    model = NETWORKS["residual"](16, 4)
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True), split=Split(0.5, (2, 1), 0.4))
    x, y = np.zeros((8, 16, 16, 3), np.float32), np.zeros(8, int)
    model.fit(x, y, batch_size=1, epochs=2, verbose=0)
    used = {plan.graph.split_draw for plan in model._pydt_steps.plans}
    assert {draw for draw in used if draw >= 8} == {draw for draw in used if draw >= 8 and draw % 2 == 0} != set()


@pytest.mark.slow
def test_training_draws_schemes_and_saves_the_whole_network(tmp_path) -> None:
    keras.utils.set_random_seed(3)
    model = NETWORKS["residual"](16, 4)
    split = Split(0.5, (2, 2), 0.4)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("sgd", loss, split=split)
    rng = np.random.default_rng(0)
    x, y = rng.random((16, 16, 16, 3), np.float32), rng.integers(0, 10, 16)
    model.fit(x, y, batch_size=8, verbose=0)
    want = model.predict(x, verbose=0)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert again.split == split
    np.testing.assert_array_equal(again.predict(x, verbose=0), want)
    plain = NETWORKS["residual"](16, 4)
    plain.set_weights(model.get_weights())
    np.testing.assert_array_equal(plain.predict(x, verbose=0), want)
