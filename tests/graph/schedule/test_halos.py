"""Exchanges go on while convolutions run: which steps a plan has then, and that they compute what whole passes do."""

import dataclasses

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import config, layers
from pydtconv.graph.schedule import halos
from pydtconv.graph.schedule.asynchronous import check_asynchronous
from pydtconv.graph.spatial.partition import Partition
from pydtconv.profiling.work import bytes_of, cost_of
from tests.graph.spatial import networks
from tests.graph.spatial.threads import plan_of, run, run_mesh, whole


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Rows of the smallest images are computed by themselves, in float64."""
    monkeypatch.setattr(halos, "LEAST_PIXELS", 1)
    before = config.floatx(), config.num_threads()
    config.set_floatx("float64")
    config.set_num_threads(1)
    yield
    config.set_floatx(before[0])
    config.set_num_threads(before[1])


def network(normalizes=True):
    """Strides, dilation, an epilogue, moments that convolutions gather, and a residual."""
    inputs = keras.Input((24, 7, 3))
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


def plan(mesh=("height",), shape=(2,), rank=0, samples=2, **options):
    model = network()
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
    assert [(block.image, block.out, block.read) for block in inner] == [(i, (0, 5), (0, 12)) for i in range(2)]
    assert [(block.image, block.out, block.read) for block in outer] == [(i, (5, 6), (9, 14)) for i in range(2)]


def test_nothing_goes_on_where_it_cannot_or_may_not(monkeypatch):
    assert not around(plan(overlaps=False))
    assert around(plan(("width",))) == [BACKWARD] * 2  # all rows read halos
    monkeypatch.setattr(halos, "LEAST_PIXELS", 4096)
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


@pytest.mark.parametrize(
    ("samples", "mesh", "build"),
    [
        (1, ("height", 3), network),
        (2, ("height", 2), network),
        (2, ("width", 2), network),
        (1, ("height", 2), residual_of_padding),
    ],
)
def test_results_are_those_of_whole_passes(samples, mesh, build):
    def make():
        keras.utils.set_random_seed(3)
        return build()

    arrays = networks.data(make(), samples)
    one, several = run(make(), arrays), run_mesh(make, arrays, mesh[:1], mesh[1:])
    assert abs(sum(rank.loss for rank in several) - one.loss) < 1e-12
    scale = max(abs(gradient).max() for gradient in one.gradients)
    for i, gradient in enumerate(one.gradients):
        total = sum(rank.gradients[i] for rank in several)
        np.testing.assert_allclose(total / scale, gradient / scale, rtol=0, atol=1e-12, err_msg=f"gradient {i}")
    for i, state in enumerate(one.state):  # moving statistics, of moments of blocks
        np.testing.assert_allclose(several[0].state[i], state, rtol=0, atol=1e-12, err_msg=f"state {i}")
    np.testing.assert_allclose(whole(several, "prediction0"), one.outputs["prediction0"], rtol=0, atol=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(networks.NETWORKS))
def test_all_networks_in_blocks(name):
    from tests.graph.spatial.test_cutting import check

    for mesh in ("height=2", "height=3", "batch=2,height=2"):
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
