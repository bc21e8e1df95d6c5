"""Gradients of random changes of images: of all layers that change images, of all modes, on tapes and in training."""

import numpy as np
import pytest

import pydtconv
from pydtconv import layers, ops
from pydtconv.images.steps import FILL_MODES, ORDERS
from pydtconv.layers.preprocessing.augmentation import Augmentation
from pydtconv.loops import GradientTape
from tests.layers.test_transformations import ARGUMENTS, made
from tests.ops.harness import finite_differences
from tests.ops.runner import Options, RunState, run_op

RNG = np.random.default_rng(2)
IMAGES = RNG.uniform(20, 235, (3, 9, 11, 3))
CHANGES = [name for name in ARGUMENTS if issubclass(getattr(layers, name), Augmentation)]
MOVES = [name for name in CHANGES if getattr(layers, name).moves and name not in ("AugMix", "RandAugment")]


#: after which a value may lie just where it would become another one
ENDS = ("auto_contrast", "equalization", "posterization", "solarization")


def operator(layer, kind=None, **more):
    settings = dict(layer._frozen_settings())
    if "policies" in settings:
        settings["policies"] = tuple(each for each in settings["policies"] if each[0] not in ENDS)
    if kind is not None:
        settings = {"kind": layer.kind, "settings": tuple(settings.items()), **more}
    return ops.Augment(kind or layer.kind, tuple(settings.items()), 5)


def check(op, x):
    """By differences; with the same bits on two threads, in float32, and added to what is there."""
    dy, run = RNG.normal(size=x.shape), RunState(seed=3, step=1)
    options = Options(run=run)
    found = run_op(op, [x], [dy], [True], options)
    finite_differences(op, [x], [dy], found.dx, options, 1e-5, 1e-5)
    two = run_op(op, [x], [dy], [True], Options(run=run, threads=2))
    np.testing.assert_array_equal(two.dx[0], found.dx[0])
    start = RNG.normal(size=x.shape)
    added = run_op(op, [x], [dy], [True], Options(run=run, accumulate=True), [start])
    np.testing.assert_allclose(added.dx[0], found.dx[0] + start, rtol=1e-12, atol=1e-12)
    narrow = run_op(op, [x], [dy], [True], Options(dtype="float32", run=run)).dx[0]
    assert (np.abs(narrow - found.dx[0]) > 1e-3).mean() < 0.01  # values may lie at the other side of a limit


@pytest.mark.parametrize("name", CHANGES)
def test_operator(name):
    check(operator(made(name)), IMAGES)


@pytest.mark.parametrize("name", [name for name in CHANGES if getattr(layers, name).moves])
def test_operator_on_images_with_masks(name):
    op = operator(made(name), "with_masks", channels=3, numbers=0)
    check(op, np.concatenate([IMAGES, IMAGES[..., :1]], -1))


@pytest.mark.parametrize("interpolation", ORDERS)
@pytest.mark.parametrize("fill_mode", FILL_MODES)
@pytest.mark.parametrize("name", [name for name in MOVES if name != "RandomElasticTransform"])
def test_moves_on_a_tape(name, fill_mode, interpolation):
    """What is linear, and 0 outside, has the products of its transpose: sum(dy y) is sum(dx x)."""
    filling = {} if name == "RandomPerspective" else {"fill_mode": fill_mode}
    options = {**ARGUMENTS[name], **filling, "interpolation": interpolation}
    layer = getattr(layers, name)(**options, dtype="float64")
    x, dy = pydtconv.ops.convert_to_tensor(IMAGES, "float64"), RNG.normal(size=IMAGES.shape)
    with GradientTape() as tape:
        tape.watch(x)
        y = layer(x, training=True)
        total = ops.sum(y * dy)
    np.testing.assert_allclose((np.asarray(tape.gradient(total, x)) * IMAGES).sum(), float(total), rtol=1e-10)


@pytest.mark.parametrize("name", [name for name in ARGUMENTS if name != "MaxNumBoundingBoxes"])
def test_transformations_that_are_given(name):
    layer = made(name, dtype="float64")
    how = layer.get_random_transformation(IMAGES, training=True)
    x = ops.convert_to_tensor(IMAGES, "float64")
    with GradientTape() as tape:
        tape.watch(x)
        y = layer.transform_images(ops.convert_to_tensor(x), how, training=True)
        dy = RNG.normal(size=y.shape)
        total = ops.sum(y * dy)
    gradient, way, step = np.asarray(tape.gradient(total, x)), RNG.normal(size=IMAGES.shape), 1e-5
    up, down = (layer.transform_images(IMAGES + sign * step * way, how, training=True) for sign in (1, -1))
    expected = ((np.asarray(up) - np.asarray(down)) * dy).sum() / (2 * step)
    np.testing.assert_allclose((gradient * way).sum(), expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("then", [(), ("RandomZoom", "RandomContrast")])
def test_weights_before_a_change_are_trained(then):
    """Changes of what is differentiated are not joined: each has its own gradient."""
    names = ("RandomTranslation", *then)
    model = pydtconv.Sequential(
        [layers.Input((9, 11, 3)), layers.Rescaling(1.0), layers.Conv2D(3, 1), *(made(each, seed=1) for each in names)]
    )
    model.add(layers.Flatten())
    model.compile(pydtconv.optimizers.SGD(1e-9), lambda y, z: ops.sum(z, axis=-1))
    before = model.get_weights()
    model.train_on_batch(IMAGES, np.zeros((3, 297)))
    assert all((a != b).all() for a, b in zip(before, model.get_weights(), strict=True))
    graph = model.plan(3).graph
    assert sum(isinstance(node.op, ops.Augment) for node in graph.nodes) == len(names)


def test_numbers_that_are_drawn_have_no_gradient():
    x = ops.convert_to_tensor(np.ones((2, 1, 1, 1), "float32"))
    with GradientTape() as tape:
        tape.watch(x)
        y = ops.sum(x * ops.Augment("beta", (("alpha", 1.0), ("beta", 1.0)), 3)(x))
    found = np.asarray(tape.gradient(y, x))
    assert ((found > 0) & (found < 1)).all()
