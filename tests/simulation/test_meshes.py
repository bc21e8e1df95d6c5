"""Predictions for meshes, from plans that are made as in their ranks."""

import pytest

import pydtconv as keras
from pydtconv import layers, replica
from pydtconv.cli import main
from pydtconv.profiling import Profile
from pydtconv.profiling.profile import Timing
from pydtconv.simulation import Network
from pydtconv.simulation.collectives import SUMMING
from pydtconv.simulation.meshes import SHARING, MeshPrediction, OneRank, as_rank, fastest, peak_bytes, predict_mesh


def network(size=256):
    inputs = keras.Input((size, size, 8))
    x = inputs
    for _ in range(3):
        x = layers.Conv2D(8, 3, padding="same", use_bias=False)(x)
    model = keras.Model(inputs, x)
    model.compile("sgd", "mse")
    return model


@pytest.fixture
def base():
    """Convolutions by im2col, whatever AUTO expects to be faster for parts of images."""
    before = keras.config.conv_variant()
    keras.config.set_conv_variant("BASE")
    yield
    keras.config.set_conv_variant(before)


def test_a_rank_computes_and_holds_its_part(base):
    model = network(64)
    link = Network(alpha=1e-3, beta=1e-6)
    whole = model.plan(1)
    half = predict_mesh(model, {"height": 2}, 1, OneRank(whole, 8.0), link)
    assert 4 < half.compute < 5.5  # steps of microseconds, of which each takes some to begin
    # a row of 64 pixels to the other rank in each direction, for each of three layers; those of backward are hidden
    row = 1e-3 + 64 * 8 * 4 * 1e-6
    copies = predict_mesh(model, {"height": 2}, 1, OneRank(whole, 8.0), Network(0.0, 0.0)).exchange
    assert half.exchange == pytest.approx(3 * row + copies)
    hurried = predict_mesh(model, {"height": 2}, 1, OneRank(whole, 1e-6), link)
    assert hurried.exchange == pytest.approx((3 + 2) * row, rel=1e-3)
    assert whole.peak_bytes / 2 < half.nbytes < 0.75 * whole.peak_bytes  # workspaces are of blocks of an image
    many = predict_mesh(model, {"height": 8, "width": 8}, 1, OneRank(whole, 8.0), link)
    assert many.compute < half.compute / 2
    assert many.nbytes < half.nbytes
    assert replica.current().partition is None
    with pytest.raises(ValueError, match="at most 1 ranks along batch"):
        predict_mesh(model, {"batch": 2}, 1, OneRank(whole, 8.0), link)
    with pytest.raises(ValueError, match="axis 'depth'"):
        predict_mesh(model, {"depth": 2}, 1, OneRank(whole, 8.0), link)


def test_ranks_of_one_host_have_one_copy_of_the_weights():
    model = keras.Sequential([keras.Input((32, 32, 8)), layers.Conv2D(8, 3), layers.Flatten(), layers.Dense(2000)])
    model.compile(keras.optimizers.Adam(), "mse")
    weights = sum(variable.value.nbytes for variable in model.trainable_variables)
    alone, far, near = (
        peak_bytes(model, mesh, 2, here) for mesh, here in (({}, False), ({"height": 2}, False), ({"height": 2}, True))
    )
    assert alone == model.plan(2).peak_bytes
    model._pydt_training.memory.keeps_gradients = True  # as while it is profiled
    assert model.plan(2).peak_bytes > alone == peak_bytes(model, {}, 2)
    assert 3.9 * weights < far < 4.3 * weights
    assert 1.4 * weights < near < 1.8 * weights < alone


def test_columns_of_dense_layers_are_not_summed():
    model = keras.Sequential([keras.Input((32, 32, 8)), layers.Conv2D(8, 3), layers.Dense(2000, name="wide")])
    model.compile(keras.optimizers.Adam(), "mse")
    one, link = OneRank.by_cost_model(model.plan(2)), Network(alpha=0.0, beta=1e-6)
    whole, cut, both = (
        predict_mesh(model, mesh, 2, one, link, columns=names)
        for mesh, names in (({"height": 2}, ()), ({"height": 2}, ["wide"]), ({"batch": 2, "model": 2}, ["wide"]))
    )
    weights, columns = one.plan.trainable_bytes, 4 * 9 * 2000
    assert whole.reduction - cut.reduction == pytest.approx(columns * 1e-6, rel=0.01)
    with as_rank({"model": 2}, 1, one_host=True, columns=["w*"]):
        plan = model.plan(2)
    assert (plan.trainable_bytes, plan.column_bytes, plan.sharers) == (weights - columns / 2, columns / 2, 1)
    assert both.reduction == pytest.approx(cut.reduction * 1.5 + columns / 2 * 1e-6, rel=0.01)
    with pytest.raises(ValueError, match=r"'wild': expected one of the model's Dense layers \(wide\), got no layer"):
        peak_bytes(model, {"height": 2}, 2, columns=["wild"])


def profile_of(model, seconds, images=1):
    """Of a step in which forward of each convolution takes so long, the optimizer a second, and the rest nothing."""
    plan = model.plan(images)
    timings = []
    for index, step in enumerate(plan.steps):
        convolves = step.node.op.name == "conv" and step.kind == "forward"
        timings.append(Timing(index, step.node.name, step.node.op.name, step.kind, seconds if convolves else 0.0))
    timings.append(Timing(-1, "optimizer", "optimizer", "outside", 1.0))
    return plan, Profile("m", images, 1, "float32", "AUTO", "cpu", 1, 3 * seconds + 1.0, 1, timings)


def test_measured_times_of_steps_are_those_of_a_rank():
    model = network()
    plan, profile = profile_of(model, 2.0)
    one = OneRank.of(plan, profile)
    assert sum(one.seconds(plan.steps)) == pytest.approx(6.0)
    assert one.outside == pytest.approx(1.0)
    found = predict_mesh(model, {"height": 2}, 1, one, Network(0.0, 0.0))
    assert 1 + 3 < found.compute < 1 + 3.6  # half of each convolution, and what does not become smaller
    with pytest.raises(ValueError, match="profile: expected one of a plan"):
        OneRank.of(keras_plan(), profile)


def test_a_rank_copies_its_part_of_the_inputs_and_takes_time_to_agree():
    model = network()
    plan, profile = profile_of(model, 2.0)
    less = predict_mesh(model, {"height": 2}, 1, OneRank.of(plan, profile), Network(0.0, 0.0))
    profile.timings.append(Timing(-1, "inputs", "inputs", "outside", 0.5))
    with_inputs = predict_mesh(model, {"height": 2}, 1, OneRank.of(plan, profile), Network(0.0, 0.0))
    assert less.compute - with_inputs.compute == pytest.approx(0.25)  # of the same second outside of the plan
    alone = predict_mesh(model, {"height": 1}, 1, OneRank.of(plan, profile), Network(1.0, 0.0))
    assert alone.compute == pytest.approx(7.0)
    slow = predict_mesh(model, {"batch": 2}, 2, OneRank.of(plan, profile), Network(1.0, 0.0))
    assert slow.compute == pytest.approx(7.0 + SHARING + 3 * 1.0, rel=0.01)


def keras_plan():
    inputs = keras.Input((4,))
    model = keras.Model(inputs, layers.Dense(2)(inputs))
    model.compile("sgd", "mse")
    return model.plan(1)


def test_what_lies_elsewhere_than_it_is_read_is_copied():
    model = network()
    one = OneRank(model.plan(1), 8.0)
    rows, columns = (predict_mesh(model, {axis: 2}, 1, one, Network(0.0, 0.0)).exchange for axis in ("height", "width"))
    assert 0 < rows < columns  # as many bytes are sent; gradients of the rows' halos are added in one piece


def test_the_fastest_that_fits():
    meshes = [MeshPrediction("a", 2, 3.0, 1.0, 1.0, 100), MeshPrediction("b", 4, 1.0, 1.0, 6.0, 60)]
    assert [each.seconds for each in meshes] == [4.0, pytest.approx(1 + 1 + 6 - 2 / 3)]
    assert fastest(meshes).mesh == "a"
    assert fastest(meshes, 80).mesh == "b"
    assert fastest(meshes, 50) is None


@pytest.mark.slow
def test_the_command_names_the_fastest_mesh(capsys):
    words = ["simulate", "--model", "resnet20", "--image-size", "32", "--batch", "2", "--steps", "1"]
    assert main([*words, "--mesh", "height=2", "batch=2,height=2", "--memory-limit", "1GB"]) == 0
    told = capsys.readouterr().out
    assert "fastest within 954 MiB a rank: batch=2,height=2" in told
    assert main([*words, "--mesh", "height=2", "--ranks-per-host", "2"]) == 0
    assert "one rank of 1 threads takes" in (told := capsys.readouterr().out)
    assert " beside 1 others, " in told
    assert main([*words, "--mesh", "height=2", "--ranks-per-host", "2", "--variant", "none"]) == 2
    assert "variant" in capsys.readouterr().err
    assert main(["simulate", "--mesh", "height=2"]) == 2
    assert "--mesh: expected --model" in capsys.readouterr().err


def test_normalizations_sum_their_statistics():
    inputs = keras.Input((64, 64, 8))
    model = keras.Model(inputs, layers.BatchNormalization()(layers.BatchNormalization()(inputs)))
    model.compile("sgd", "mse")
    one = OneRank(model.plan(2), 1.0)
    slow = predict_mesh(model, {"batch": 2}, 2, one, Network(alpha=1.0, beta=0.0))
    assert slow.exchange == pytest.approx(2 * (2 * 1.0 + SUMMING))  # a message for each of two, there and back
