"""Random networks on meshes of ranks and alone: on_ranks.py SEED, under mpiexec.  Prints a line of JSON on rank 0."""

import json
import sys

import numpy as np

from pydtconv import config, distribution, optimizers, replica, utils
from pydtconv.support.launcher import launched
from tests.fuzz import networks, other_networks

NETWORKS, EPOCHS, SAMPLES, RTOL = 4, 2, 5, 1e-8
#: kinds of networks, more images than others, and meshes by the number of ranks
KINDS = {
    networks.images: {
        2: ("height=2", "width=2", "batch=2"),
        3: ("height=3", "width=3"),
        4: ("height=2,width=2", "batch=2,height=2"),
    },
    other_networks.volumes: {2: ("depth=2", "width=2"), 3: ("depth=3", "height=3"), 4: ("depth=2,width=2",)},
    other_networks.signals: {2: ("width=2", "batch=2"), 3: ("width=3",), 4: ("batch=2,width=2",)},
}
ORDER = [networks.images, networks.images, other_networks.volumes, other_networks.signals]


def mesh_of(text):
    parts = dict(part.split("=") for part in text.split(","))
    return distribution.DeviceMesh([int(extent) for extent in parts.values()], list(parts))


def made(seed):
    """A network and its data; the same of the same seed."""
    random = np.random.default_rng(seed)
    utils.set_random_seed(seed % 1000)
    net = ORDER[seed // NETWORKS % len(ORDER)](random)
    for variable, value in zip(net.model.variables, net.values, strict=True):
        variable.assign(value)
    net.model.compile(optimizers.SGD(1e-3, momentum=0.9), net.loss)
    x = random.standard_normal((SAMPLES, *net.arrays["x"].shape[1:]))
    y = np.resize(net.arrays["y"], (SAMPLES, *net.arrays["y"].shape[1:]))
    return net, x, y


def trained(seed, nudge=0.0):
    net, x, y = made(seed)
    history = net.model.fit(x * (1 + nudge), y, 2, EPOCHS, 0, shuffle=False).history
    found = {f"history {key}": np.array(values) for key, values in history.items()}
    found["prediction"] = net.model.predict(x, batch_size=2, verbose=0)
    return found | {f"{i} {v.path}": np.array(v.value) for i, v in enumerate(net.model.variables)}


def compare(want, near, got, counts, told):
    for (name, value), moved, other in zip(want.items(), near.values(), got.values(), strict=True):
        scale = max(np.abs(value).max(initial=0), 1e-3)
        if not np.isfinite(value).all() or np.abs(moved - value).max(initial=0) > RTOL / 20 * scale:
            counts["arrays, left out: rounding decides"] = counts.get("arrays, left out: rounding decides", 0) + 1
            continue
        error = np.abs(other - value).max(initial=0) / scale
        if not error <= RTOL:
            raise AssertionError(f"error {error:.2e} in {name} of {told}")
        counts["arrays, right"] = counts.get("arrays, right", 0) + 1


def main(seed):
    config.set_floatx("float64")
    config.set_conv_precision("strict")
    seeds = [seed * NETWORKS + i for i in range(NETWORKS)]
    alone = {s: (trained(s), trained(s, 1e-12)) for s in seeds}
    counts = {}
    ranks = launched()[0]
    meshes = KINDS[ORDER[seed % len(ORDER)]][ranks]
    mesh = meshes[seed // len(ORDER) % len(meshes)]
    network = "1Gbps:1s" if seed % 2 else None  # so slow that convolutions share halos wherever they can
    distribution.set_distribution(distribution.SpatialParallel(mesh_of(mesh), network=network))
    for s in seeds:
        told = f"{mesh}, network {s}, rank {replica.current().rank}"
        try:
            got = trained(s)
        except (ValueError, NotImplementedError) as error:
            if not str(error).strip():
                raise
            counts[f"{mesh}, refused"] = counts.get(f"{mesh}, refused", 0) + 1
            print(f"{told}: {error}", file=sys.stderr)
            continue
        compare(*alone[s], got, counts, told)
        counts[f"{mesh}, right"] = counts.get(f"{mesh}, right", 0) + 1
    if replica.current().is_main:
        print(json.dumps(counts), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
