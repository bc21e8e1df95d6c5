"""The model zoo: sizes as the papers' networks have them, names, and a step of training for each family."""

import subprocess
import sys

import numpy as np
import pytest

from pydtconv import applications, optimizers, utils

# trainable parameters for (32, 32, 3) and 10 classes, and for (224, 224, 3) and 1000, counted in the same networks in
# PyTorch (GoogLeNet with two 3x3 convolutions in the place of each 5x5)
PARAMETERS = {
    "smallvgg16": (15_245_130, 138_357_544),
    "resnet34": (21_282_122, 21_797_672),
    "smalldensenet121": (6_956_298, 7_978_856),
    "googlenet": (6_158_346, 7_292_264),
}
# for (32, 32, 3) and 10 classes: the counts of K. He et al.'s networks for CIFAR-10
CIFAR_RESNETS = {"resnet20": 269_722, "resnet32": 464_154, "resnet44": 658_586, "resnet56": 853_018}
#: built in less than a second or two
QUICK = ("smalldensenet121", "googlenet", "resnet20", "resnet32")
# for (224, 224, 3) and 1000 classes, as torchvision and Keras (smallmobilenet) count them
LARGE = {
    "resnet18": 11_689_512,
    "smallresnet50": 25_557_032,
    "smallresnet101": 44_549_160,
    "smallresnet152": 60_192_808,
    "smalldensenet169": 14_149_480,
    "smalldensenet201": 20_013_928,
    "alexnet": 61_100_840,
    "smallmobilenet": 4_231_976,
}


def quick(names):
    return [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in names]


def trainable(model):
    return sum(int(np.prod(variable.shape)) for variable in model.trainable_variables)


@pytest.mark.parametrize("name", quick(PARAMETERS))
def test_parameter_counts(name):
    small = PARAMETERS[name][0]
    assert trainable(applications.build(name, input_shape=(32, 32, 3), classes=10)) == small


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("name", PARAMETERS)
def test_parameter_counts_for_large_images(name):
    assert trainable(applications.build(name, input_shape=(224, 224, 3), classes=1000)) == PARAMETERS[name][1]


@pytest.mark.parametrize("name", quick(CIFAR_RESNETS))
def test_parameter_counts_of_resnets_for_cifar(name):
    assert trainable(applications.build(name, input_shape=(32, 32, 3), classes=10)) == CIFAR_RESNETS[name]


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("name", LARGE)
def test_parameter_counts_of_the_other_large_networks(name):
    assert trainable(applications.build(name, input_shape=(224, 224, 3), classes=1000)) == LARGE[name]


@pytest.mark.slow
def test_deep_ones_are_deep():
    model = applications.ResNet110()
    assert sum(type(layer).__name__ in ("Conv2D", "Dense") for layer in model.layers) == 110
    assert trainable(model) == 1_727_962


@pytest.mark.slow
def test_normalization_takes_the_place_of_the_bias():
    plain, normalized = (applications.build(name, (32, 32, 3), 10) for name in ("vgg11", "vgg11-bn"))
    filters = 64 + 128 + 2 * 256 + 4 * 512
    assert trainable(normalized) - trainable(plain) == filters
    kinds = [type(layer).__name__ for layer in normalized.layers]
    assert kinds.count("BatchNormalization") == kinds.count("Conv2D") == 8


def test_weights_of_a_file(tmp_path):
    path = tmp_path / "mlp.weights.h5"
    model = applications.MLP((4, 4, 1), 3, hidden=(5,))
    model.save_weights(path)
    loaded = applications.build("mlp", (4, 4, 1), 3, hidden=(5,), weights=path)
    for ours, other in zip(loaded.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, other)
    with pytest.raises(ValueError, match=r"resnet20: weights: .* got 'imagenet': there are no pretrained weights"):
        applications.ResNet20(weights="imagenet")


def test_the_convnet_of_keras_first_example():
    assert trainable(applications.MNISTConvNet()) == 34_826


def test_names_in_any_case_and_near_ones():
    assert "resnet34" in applications.names()
    assert applications.build("MNIST-ConvNet", input_shape=(28, 28, 1), classes=7).output_shape == (None, 7)
    assert applications.build("mlp", input_shape=(8, 8, 1), classes=3, hidden=(4,)).count_params() == 65 * 4 + 5 * 3
    with pytest.raises(ValueError, match=r"no model is called 'resnet43'; did you mean .*resnet34"):
        applications.build("resnet43", input_shape=(32, 32, 3), classes=10)
    with pytest.raises(ValueError, match=r"'zzz'; expected one of alexnet, .* and [0-9]+ more"):
        applications.build("zzz", input_shape=(32, 32, 3), classes=10)


def test_every_family_lists_its_builders():
    assert {name.lower() for name in applications.__all__} - {"axes", "build", "names"} == set(applications.names())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mlp", "mnistconvnet"])
def test_small_models_learn(name):
    utils.set_random_seed(1)
    x = np.random.default_rng(1).random((64, 12, 12, 1), np.float32)
    y = (x[:, :6].mean((1, 2, 3)) > x[:, 6:].mean((1, 2, 3))).astype(np.int64)
    model = applications.build(name, input_shape=(12, 12, 1), classes=2)
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    history = model.fit(x, y, batch_size=16, epochs=80, verbose=0).history
    assert history["loss"][-1] < 0.7 * history["loss"][0]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["resnet18", "resnet20", "smallresnet50", "vgg11bn", "alexnet", "smallmobilenet"])
def test_a_step_of_training_lowers_the_loss(name):
    utils.set_random_seed(1)
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((4, 32, 32, 3), np.float32), np.arange(4)
    model = applications.build(name, input_shape=(32, 32, 3), classes=10)
    model.compile(optimizer=optimizers.SGD(0.001), loss="sparse_categorical_crossentropy")
    losses = [float(model.train_on_batch(x, y)) for _ in range(4)]
    assert np.isfinite(losses).all()
    assert min(losses[1:]) < losses[0]


@pytest.mark.slow
def test_the_first_use_of_the_zoo_draws_nothing():
    """Networks that are made after a seed are the same whether the zoo has been imported before or not."""
    code = """
from pydtconv.utils import set_random_seed
from pydtconv.support.random import next_seed
set_random_seed(5)
import pydtconv.applications
drawn = next_seed()
set_random_seed(5)
assert drawn == next_seed()
"""
    subprocess.run([sys.executable, "-c", code], check=True)
