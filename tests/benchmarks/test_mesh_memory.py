"""The benchmark of the memory of meshes: what it makes of measurements; it runs once, with a small network."""

import argparse

import pytest

from benchmarks import mesh_memory
from benchmarks.networks import Case
from benchmarks.processes import Kept
from tests.distribution.ranks import needs_mpi


def test_meshes_stand_over_one_process():
    def row(mesh, over, measured=None):
        more = {} if measured is None else {"measured over one": measured, "measured / predicted": 0.9}
        return {"mesh": mesh, "over one": over, **more}

    rows = [row("alone", 1.0), row("height=2", 0.5, 0.6), row("height=2", 2.0), row("height=4", 0.3)]
    assert mesh_memory.summary(rows) == [
        "height=2: over one: 1.00 in geometric mean, at most 2.00",
        "height=2: measured over one: 0.60 in geometric mean, at most 0.60",
        "height=4: over one: 0.30 in geometric mean, at most 0.30",
        "measured / predicted: off by at most 10.0%",
    ]


def test_all_networks_of_images_are_among_them():
    found = mesh_memory.convolutional()
    assert {"resnet34", "unet", "vgg16", "convnexttiny", "nasnetmobile"} <= set(found)
    assert not set(mesh_memory.OTHERS) & set(found)


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.skipif(needs_mpi[1].args[0], reason=needs_mpi[1].kwargs["reason"])
def test_it_runs():
    options = argparse.Namespace(meshes=["height=2"], measure=[])
    one, two = mesh_memory.rows_of(Case("resnet18", 64, 2), options, Kept(None))
    assert one["over one"] == one["measured over one"] == 1
    for row in (one, two):
        assert 0.8 < row["measured / predicted"] < 1.2
    assert two["measured over one"] < 0.75
    parts = mesh_memory.planned(Case("resnet18", 64, 2), "height=2")
    assert parts["predicted peak"] == pytest.approx(two["predicted MiB"], rel=0.05)
    assert parts["gradients"] == 2  # that wait for those of the other rank
