"""Exchanges go on while convolutions run: which steps a plan has then, and that they compute what whole passes do."""

import dataclasses

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import config, layers
from pydtconv.conv.algorithms import TABLE
from pydtconv.conv.problem import ConvProblem
from pydtconv.graph.ir.graph import Graph, Thresholds
from pydtconv.graph.schedule import halos
from pydtconv.graph.schedule.asynchronous import check_asynchronous
from pydtconv.graph.schedule.step_times import estimate, signature
from pydtconv.graph.spatial.partition import Partition
from pydtconv.profiling.work import bytes_of, cost_of
from tests.graph.spatial import networks
from tests.graph.spatial.threads import plan_of, run, run_mesh, whole
from tests.marks import slow


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Rows of the smallest images are computed by themselves, in float64."""
    monkeypatch.setattr(Graph, "thresholds", Thresholds(halo_pixels=1))
    before = config.floatx(), config.num_threads()
    config.set_floatx("float64")
    config.set_num_threads(1)
    yield
    config.set_floatx(before[0])
    config.set_num_threads(before[1])


def network(normalizes=True, width=7):
    """Strides, dilation, an epilogue, moments that convolutions gather, and a residual."""
    inputs = keras.Input((24, width, 3))
    x = layers.Conv2D(4, 5, strides=2, padding="same", activation="relu")(inputs)
    first = networks.normalized(x) if normalizes else x
    x = layers.Conv2D(4, 3, padding="same", dilation_rate=2, use_bias=False)(first)
    x = layers.ReLU()(layers.Add()([layers.BatchNormalization()(x) if normalizes else x, first]))
    return networks._compiled(inputs, layers.Conv2D(3, 3, padding="same")(x))


def residual_of_padding():
    """dy of the convolution is the gradient of what the padded image is added to, to which the exchange adds."""
    inputs = keras.Input((8, 7, 3))
    x = layers.ZeroPadding2D(1)(layers.Conv2D(4, 3, padding="same")(inputs))
    return networks._compiled(inputs, layers.Add()([x, layers.Conv2D(4, 3, padding="same", use_bias=False)(x)]))


def wide():
    return network(width=26)


def pooled():
    """Windows that overlap, of maxima and of means; halos of one image axis, and of two."""
    inputs = keras.Input((21, 18, 4))
    x = layers.MaxPooling2D(3, strides=2, padding="same")(inputs)
    x = layers.AveragePooling2D(3, strides=1)(layers.Conv2D(4, 3, padding="same")(x))
    x = layers.AveragePooling2D(3, strides=1, padding="same")(x)
    x = layers.DepthwiseConv2D(3, padding="same", depth_multiplier=2)(layers.MaxPooling2D(2, strides=1)(x))
    return networks._compiled(inputs, layers.Conv2D(3, 3, padding="same", groups=1)(x))


def plan(mesh=("height",), shape=(2,), rank=0, samples=1, build=network, **options):
    model = build()
    partition = Partition(mesh, shape, tuple(range(int(np.prod(shape)))), rank, **options)
    return plan_of(model, networks.data(model, samples), partition=partition)[0]


FORWARD = [("start", "halo"), ("forward", "conv"), ("wait", "halo"), ("forward", "conv")]
BACKWARD = [("backward", "conv"), ("start", "halo"), ("backward", "conv"), ("wait", "halo")]


def around(found):
    """The kinds of the four steps that each exchange is a part of."""
    starts = [i for i, step in enumerate(found.steps) if isinstance(step, halos.ExchangeStart)]
    firsts = [i if i < found.backward_start else i - 1 for i in starts]
    return [[(step.kind, step.node.op.name.partition("+")[0]) for step in found.steps[i : i + 4]] for i in firsts]


def test_what_runs_while_an_exchange_goes_on():
    found = plan()
    check_asynchronous(found.steps)
    assert around(found) == [FORWARD] * 3 + [BACKWARD] * 2  # nobody wants the gradient of the input
    inner, outer = (step.blocks for step in found.steps[:4] if isinstance(step, halos.BlocksStep))
    assert [(block.image, block.out, block.read) for block in inner] == [(0, (0, 5), (0, 12))]
    assert [(block.image, block.out, block.read) for block in outer] == [(0, (5, 6), (9, 14))]


def part_names(found):
    """The parts of the steps of windows, of forward and of backward."""
    parts = [(step.part, step.kind, step.node.op.name) for step in found.steps if getattr(step, "part", "")]
    return [part[::2] for part in parts if part[1] == "forward"], [part[::2] for part in parts if part[1] != "forward"]


@pytest.mark.parametrize(
    ("mesh", "shape", "samples", "packed"),
    [
        (("width",), (3,), 1, [True] * 3),
        (("height",), (2,), 2, [True] * 3),
        (("height", "width"), (2, 2), 1, [True, False, True]),  # of the second one, most outputs read halos
    ],
)
def test_images_that_would_be_copied_are_read_where_they_lie(mesh, shape, samples, packed):
    """Of several images, or where columns are cut, halos are vectors, and no tensor is an image with its halo."""
    found = plan(mesh, shape, samples=samples, build=wide)
    check_asynchronous(found.steps)
    exchanges = [node for node in found.graph.nodes if node.op.name == "halo"]
    assert [node.op.packed for node in exchanges] == packed
    assert [len(node.outputs[0].shape) == 1 for node in exchanges] == packed
    forward, backward = part_names(found)
    assert [part for part, _ in forward] == ["inner", "rims"] * sum(packed)
    assert [part for part, _ in backward] == ["rims", "inner"] * sum(packed[1:])
    assert around(found) == [FORWARD] * sum(packed) + [BACKWARD] * 2
    copied = plan(mesh, shape, samples=samples, build=wide, overlaps=False)
    assert not around(copied)
    assert any(node.op.name == "halo" and node.op.packed for node in copied.graph.nodes)


def test_pooling_goes_on_too():
    rows = plan(build=pooled)
    names = [step.node.op.name for step in rows.steps if isinstance(step, halos.BlocksStep)]
    assert names == [name for name in ("conv", "averagepool", "depthwiseconv", "conv") for _ in range(2)]
    forward, backward = part_names(rows)
    assert [name for part, name in forward if part == "rims"] == ["maxpool", "averagepool", "maxpool"]
    assert [name for part, name in backward if part == "rims"] == ["maxpool", "averagepool"]
    forward, backward = part_names(plan(("width",), (2,), 1, build=pooled, samples=2))
    kinds = ["maxpool", "conv", "averagepool", "depthwiseconv", "conv"]  # the last rank reads no halo of maxpool_1
    assert [name for part, name in forward if part == "rims"] == kinds
    assert [name for part, name in backward if part == "rims"] == kinds[:1:-1]


def test_a_rank_that_reads_no_halo_copies_nothing_and_sends_meanwhile():
    """The first of two, of windows that begin at its part's end: only the other one reads beyond its part."""
    found = plan(("width",), (2,), build=pooled, samples=2)
    first = next(node for node in found.graph.nodes if node.op.name == "halo")
    assert first.op.need[0] == first.op.held[0]
    (x,), (y,) = found.steps[0].whole.x, found.steps[0].whole.y
    assert (x.buffer, x.offset) == (y.buffer, y.offset)
    assert [(step.kind, step.node.op.name) for step in found.steps[:3]] == [
        ("start", "halo"),
        ("forward", "maxpool"),
        ("wait", "halo"),
    ]


@pytest.mark.parametrize(
    ("size", "samples", "packed"), [(16, 2, False), (32, 2, False), (32, 32, True), (128, 2, True)]
)
def test_rims_are_computed_where_they_are_few(size, samples, packed, monkeypatch):
    """Beside the rest of an image, or of so many images that a copy of them would be large."""
    monkeypatch.setattr(Graph, "thresholds", Thresholds(halo_pixels=512))

    def build():
        inputs = keras.Input((size, size, 4))
        return networks._compiled(inputs, layers.Conv2D(3, 3, padding="same")(inputs))

    (halo,) = (node for node in plan(build=build, samples=samples).graph.nodes if node.op.name == "halo")
    assert halo.op.packed == packed
    assert (len(halo.outputs[0].shape) == 1) == packed


def test_memory_of_several_images_is_not_that_of_copies(monkeypatch):
    """Two convolutions, as the benchmark has them: images with halos would be copies of all of them."""

    def build():
        inputs = keras.Input((128, 96, 8))  # large beside workspaces, whose size is that of caches
        x = layers.Conv2D(8, 3, padding="same", use_bias=False)(inputs)
        return networks._compiled(inputs, layers.Conv2D(8, 3, padding="same", use_bias=False)(x))

    one = plan_of(build(), networks.data(build(), 8))[0].arena_bytes
    assert plan(build=build, samples=8).arena_bytes < 0.57 * one
    monkeypatch.setattr(Graph, "thresholds", Thresholds(halo_pixels=1 << 40))
    assert plan(build=build, samples=8).arena_bytes > 0.6 * one


def test_nothing_goes_on_where_it_cannot_or_may_not(monkeypatch):
    assert not around(plan(overlaps=False))
    assert (
        around(plan(("width",), (3,), samples=4)) == [FORWARD] * 2 + [BACKWARD] * 2
    )  # of the last one all columns read halos
    monkeypatch.setattr(Graph, "thresholds", Thresholds(halo_pixels=4096))
    assert around(plan()) == [BACKWARD] * 2


def test_gradients_are_told_when_they_are_complete():
    found = plan()
    told = [tensor for step in found.steps for tensor in step.ready]
    assert told == found.gradient_order
    weights = [step for step in found.steps if isinstance(step, halos.WeightsStep)]
    assert [step.ready[0].shape for step in weights] == [(3, 3, 4, 3), (3, 3, 4, 4)]


def test_parts_have_their_share_of_arithmetic_and_bytes():
    whole_pass = [step for step in plan(overlaps=False).steps if step.node.op.name == "conv" and step.kind == "forward"]
    parts = [step for step in plan().steps if isinstance(step, halos.BlocksStep)][:2]
    costs = [cost_of(step, "forward") for step in parts]
    assert sum(cost.flops for cost in costs) == cost_of(whole_pass[0], "forward").flops
    assert 0 < bytes_of(parts[1], "forward") < bytes_of(parts[0], "forward") < bytes_of(whole_pass[0], "forward")


def test_few_rows_take_as_long_as_the_filters_that_they_pack():
    def many_filters():
        inputs = keras.Input((64, 8, 64))
        return networks._compiled(inputs, layers.Conv2D(64, 3, padding="same")(inputs))

    inner, outer = (step for step in plan(build=many_filters).steps if isinstance(step, halos.BlocksStep))
    assert outer.share == 1 / 32
    assert estimate(outer, 1) > 1.2 * estimate(inner, 1) * outer.share / inner.share


def test_rims_have_their_share_of_arithmetic_and_bytes():
    steps = plan(samples=2, build=lambda: network(False)).steps
    inner, outer = (step for step in steps[:4] if isinstance(step, (halos.InnerStep, halos.RimsStep)))
    assert outer.share == 1 / 6
    assert cost_of(outer, "forward").flops == cost_of(inner, "forward").flops / 6
    assert bytes_of(outer, "forward") < bytes_of(inner, "forward")
    assert 0 < estimate(outer, 1) < 2 * estimate(inner, 1)
    assert signature(outer) != signature(inner)
    rims = next(step for step in steps if isinstance(step, halos.RimsBackwardStep))
    own = next(step for step in steps if isinstance(step, halos.InnerBackwardStep))
    assert 0 < bytes_of(rims, "backward") < bytes_of(own, "backward")
    assert estimate(rims, 1) > 0


@pytest.mark.parametrize(
    ("samples", "mesh", "build"),
    [
        (1, {"height": 3}, network),
        (2, {"height": 2}, network),
        (2, {"width": 2}, network),
        (1, {"height": 2, "width": 2}, network),
        (1, {"height": 2}, pooled),
        (2, {"width": 3}, pooled),
        slow(2, {"height": 2, "width": 2}, pooled),
        (1, {"height": 2}, residual_of_padding),
        (2, {"height": 2}, residual_of_padding),
    ],
)
def test_results_are_those_of_whole_passes(samples, mesh, build):
    def make():
        keras.utils.set_random_seed(3)
        return build()

    arrays = networks.data(make(), samples)
    one, several = run(make(), arrays), run_mesh(make, arrays, tuple(mesh), tuple(mesh.values()))
    assert abs(sum(rank.loss for rank in several) - one.loss) < 1e-12
    scale = max(abs(gradient).max() for gradient in one.gradients)
    for i, gradient in enumerate(one.gradients):
        total = sum(rank.gradients[i] for rank in several)
        np.testing.assert_allclose(total / scale, gradient / scale, rtol=0, atol=1e-12, err_msg=f"gradient {i}")
    for i, state in enumerate(one.state):  # moving statistics, of moments of blocks
        np.testing.assert_allclose(several[0].state[i], state, rtol=0, atol=1e-12, err_msg=f"state {i}")
    np.testing.assert_allclose(whole(several, "prediction0"), one.outputs["prediction0"], rtol=0, atol=1e-11)


@pytest.mark.parametrize("algorithm", [name for name, row in TABLE.items() if row.float32 and name != "depthwise"])
def test_algorithms_that_layers_name_compute_rims_too(algorithm):
    """Those that run a convolution of 3 x 3, without variants of a network between them."""

    def make():
        keras.utils.set_random_seed(3)
        inputs = keras.Input((12, 14, 4))
        chosen = {
            direction: algorithm
            for direction in ("forward", "backward_data", "backward_weights")
            if TABLE[algorithm].reason(problem, direction) is None
        }
        x = networks.Volumes(4, (3, 3), padding="same")(inputs)
        x = networks.Volumes(4, (3, 3), padding="same", algorithm=chosen)(x)
        return networks._compiled(inputs, layers.Conv2D(3, 1)(x))

    problem = ConvProblem.of((2, 12, 7, 4), (3, 3, 4, 4), 1, ((1, 1), (1, 1)), 1, 1, "float64")
    arrays = networks.data(make(), 2)
    one, several = run(make(), arrays), run_mesh(make, arrays, ("width",), (2,))
    assert [node.op.packed for node in several[0].plan.graph.nodes if node.op.name == "halo"] == [True, True]
    for gradient, parts in zip(one.gradients, zip(*(rank.gradients for rank in several), strict=True), strict=True):
        np.testing.assert_allclose(sum(parts), gradient, rtol=0, atol=1e-11 * abs(gradient).max() + 1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(networks.NETWORKS))
def test_all_networks_in_blocks(name):
    from tests.graph.spatial.test_cutting import check

    for mesh in ("height=2", "height=3", "batch=2,height=2", "width=3", "height=2,width=2"):
        check(name, mesh)
    check(name, "height=2", samples=1)


def test_blocks_that_are_no_convolution_of_their_own_are_left_alone():
    """Where rows are read of padding alone, or all of them are this process's own."""
    found = plan(rank=1, samples=1)
    step = next(step for step in found.steps if isinstance(step, halos.BlocksStep))
    assert halos._blocks(step.node, (0, step.node.inputs[0].shape[1])) is None
    far = dataclasses.replace(step.node.op, padding=((40, 0), step.node.op.padding[1]))

    class Node:
        op, inputs, outputs = far, step.node.inputs, step.node.outputs

    assert halos._blocks(Node, (2, 14)) is None
