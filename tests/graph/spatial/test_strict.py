"""In "strict" precision the parts of an image have the bits of the whole one; the processes are threads."""

import numpy as np
import pytest

from pydtconv import config
from pydtconv.conv import ConvProblem, choose
from pydtconv.graph.ir.graph import Graph, Thresholds
from tests.graph.spatial import networks
from tests.graph.spatial.test_cutting import MESHES, mesh_of
from tests.graph.spatial.threads import run, run_mesh, whole
from tests.marks import slow

#: networks whose outputs are pixels: the sums of global pooling are in the order of the processes
OF_PIXELS = ("unet", "weighted")


@pytest.fixture(autouse=True)
def strict(monkeypatch):
    monkeypatch.setattr(Graph, "thresholds", Thresholds(halo_pixels=1))
    before = config.num_threads()
    config.set_conv_precision("strict")
    config.set_num_threads(1)
    yield
    config.set_conv_precision("fast")
    config.set_num_threads(before)


def check(name, mesh, samples=2):
    make = networks.made(name)
    x, *others = networks.data(make(), samples)
    arrays = x.astype(np.float32), *others
    one = run(make(), arrays)
    several = run_mesh(make, arrays, *mesh_of(mesh))
    for key, value in one.outputs.items() if name in OF_PIXELS else ():
        np.testing.assert_array_equal(whole(several, key), value, err_msg=key)
    scale = max(abs(gradient).max() for gradient in one.gradients)
    for i, gradient in enumerate(one.gradients):
        total = sum(rank.gradients[i] for rank in several)
        np.testing.assert_allclose(total / scale, gradient / scale, rtol=0, atol=1e-5, err_msg=f"gradient {i}")
    return one, several


@pytest.mark.parametrize("mesh", [slow("height=2,width=2"), "batch=2,height=2"])
def test_results_in_float32_have_the_bits_of_whole_images(mesh):
    one, several = check("unet", mesh)
    for i, state in enumerate(one.state):  # moving means and variances
        for rank in several:
            np.testing.assert_array_equal(rank.state[i], state, err_msg=f"state {i}")


@pytest.mark.slow
@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("name", list(networks.NETWORKS))
def test_all_networks(name, mesh):
    check(name, mesh)


def test_algorithms_follow_from_the_filters():
    """Of forward and of the gradients of images, whatever the image; the fastest ones differ."""
    sizes = [(n, h, w) for n in (1, 64) for h in (3, 17, 224) for w in (3, 17, 224)]
    for channels in (4, 64, 256):
        for kernel, strides in ((1, 1), (3, 1), (3, 2), (5, 1)):
            problems = [ConvProblem(*size, channels, channels, kernel, strides, "same") for size in sizes]
            for direction in ("forward", "backward_data"):
                assert len({choose(p, direction).algorithm for p in problems}) == 1


def test_filters_beyond_all_limits_are_ranked_nevertheless():
    p = ConvProblem(1, 2**30, 1, 1, 1, (2**30, 1), strides=(1, 1), dilation=(1, 1))
    assert choose(p, "forward").algorithm
