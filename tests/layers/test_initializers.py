"""Initializers: variances, bounds, seeds, names."""

import math

import numpy as np
import pytest

from pydtconv import initializers, layers, random
from pydtconv.utils import set_random_seed

SHAPE = (3, 3, 64, 96)  # fan_in 576, fan_out 864
VARIANCES = {
    "glorot_uniform": 2 / (576 + 864),
    "glorot_normal": 2 / (576 + 864),
    "he_uniform": 2 / 576,
    "he_normal": 2 / 576,
    "lecun_uniform": 1 / 576,
    "lecun_normal": 1 / 576,
    "random_normal": 0.05**2,
    "random_uniform": 0.1**2 / 12,
    "variance_scaling": 1 / 576,
    # a standard normal distribution cut at +-2 has the variance 0.7737
    "truncated_normal": 0.05**2 * 0.7737413,
}


@pytest.mark.parametrize("name", VARIANCES)
def test_variance(name):
    w = initializers.get(name)(SHAPE, dtype="float64")
    standard_error = math.sqrt(2 / w.size)  # of the variance of normal samples, relative; others have less
    assert w.var() == pytest.approx(VARIANCES[name], rel=5 * standard_error)
    assert abs(w.mean()) < 5 * math.sqrt(VARIANCES[name] / w.size)


@pytest.mark.parametrize("name", ["he_normal", "glorot_normal", "lecun_normal", "truncated_normal"])
def test_truncated_at_two_deviations(name):
    w = initializers.get(name)(SHAPE, dtype="float64")
    bound = 2 * math.sqrt(VARIANCES[name] / 0.7737413)
    assert np.abs(w).max() <= bound
    assert np.abs(w).max() > 0.98 * bound


@pytest.mark.parametrize("name", ["glorot_uniform", "he_uniform", "lecun_uniform"])
def test_uniform_bound(name):
    w = initializers.get(name)(SHAPE, dtype="float64")
    bound = math.sqrt(3 * VARIANCES[name])
    assert 0.999 * bound < np.abs(w).max() <= bound


@pytest.mark.parametrize("shape", [(20, 8), (8, 20), (3, 3, 2, 7)])
def test_orthogonal(shape):
    w = initializers.Orthogonal(gain=2.0)(shape, dtype="float64").reshape(-1, shape[-1])
    product = w.T @ w if w.shape[0] >= w.shape[1] else w @ w.T
    np.testing.assert_allclose(product, 4 * np.eye(len(product)), atol=1e-12)


def test_constant_ones_zeros_identity():
    assert (initializers.Constant(3.5)((2, 3)) == 3.5).all()
    assert (initializers.Ones()((2, 3)) == 1).all()
    assert (initializers.Zeros()((2, 3)) == 0).all()
    np.testing.assert_array_equal(initializers.Identity(2.0)((3, 2)), [[2, 0], [0, 2], [0, 0]])
    with pytest.raises(ValueError, match="rank 2"):
        initializers.Identity()((3,))


def test_scaling_by_axes():
    w = initializers.GlorotUniform(input_axes=[0], output_axes=[1, 2])((400, 20, 20), dtype="float64")
    assert w.var() == pytest.approx(2 / 800, rel=0.02)


def test_same_seed_same_values():
    a, b = (initializers.HeNormal(seed=7)((4, 5)) for _ in range(2))
    np.testing.assert_array_equal(a, b)
    assert (initializers.HeNormal(seed=8)((4, 5)) != a).any()


def test_one_instance_repeats_itself_and_two_differ():
    first, second = initializers.HeNormal(), initializers.HeNormal()
    np.testing.assert_array_equal(first((4, 5)), first((4, 5)))
    assert (first((4, 5)) != second((4, 5))).any()


def test_random_seed_of_the_process():
    def draw():
        set_random_seed(11)
        return [initializers.GlorotUniform()((4, 5)) for _ in range(2)]

    for a, b in zip(draw(), draw(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_dtype_follows_floatx_and_argument():
    from pydtconv import config

    assert initializers.HeNormal()((2, 2)).dtype == np.float32
    config.set_floatx("float64")
    assert initializers.HeNormal()((2, 2)).dtype == np.float64
    assert initializers.HeNormal()((2, 2), dtype="float32").dtype == np.float32


def test_unknown_name_lists_near_ones():
    with pytest.raises(ValueError, match="he_normal"):
        initializers.get("he_normall")


@pytest.mark.parametrize("name", sorted(VARIANCES))
def test_config_round_trip(name):
    one = initializers.get(name)
    two = initializers.deserialize(initializers.serialize(one))
    assert type(one) is type(two)
    assert one.get_config() == two.get_config()


def test_bad_arguments():
    with pytest.raises(ValueError, match="fan_in"):
        initializers.VarianceScaling(mode="fan")
    with pytest.raises(ValueError, match="scale"):
        initializers.VarianceScaling(scale=0)
    with pytest.raises(ValueError, match="seed"):
        initializers.HeNormal(seed=-1)


def test_layers_draw_with_a_seed_of_their_own():
    layer = layers.BatchNormalization(gamma_initializer=initializers.RandomNormal(seed=3))
    layer.build((None, 4))
    np.testing.assert_array_equal(layer.gamma.value, initializers.RandomNormal(seed=3)((4,)))


def test_one_that_makes_no_values_says_what_is_missing():
    class Nothing(initializers.Initializer):
        pass

    with pytest.raises(NotImplementedError, match=r"Nothing must define __call__\(shape, dtype=None\)"):
        Nothing()((2, 3))


@pytest.mark.parametrize("kind", [initializers.RandomNormal, initializers.HeUniform, initializers.Orthogonal])
def test_a_seed_generator_gives_other_weights_with_each_call(kind):
    first, second = (kind(seed=random.SeedGenerator(3)) for _ in range(2))
    weights = [make((4, 4)) for make in (first, first, second, second)]
    assert not np.array_equal(weights[0], weights[1])
    np.testing.assert_array_equal(weights[:2], weights[2:])
