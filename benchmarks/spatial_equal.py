"""What meshes compute beside one process: `python -m benchmarks.spatial_equal`.

Each network trains ten steps on two images, alone and on every mesh, from the same weights, each rank with one thread:
in float64, and one step in float32, in "strict" precision.  Columns:

- gradients: of the first step in float64, the largest difference from one process over the largest gradient; wanted:
  1e-10.
- gradients 32: in float32; wanted: 1e-5.
- losses: the largest relative difference of the ten losses in float64; wanted: 1e-9.
- rounding: what one process in float32 is off by from itself in float64.  Where ReLU and maximum pooling follow many
  layers, rounding moves some values across their bends, and a gradient changes by much more than by rounding.  A mesh
  is nearer, for in "strict" precision forward has the bits of one process.

"odd" has images of 67 x 43 pixels, strides of 2 and 3, dilations of 2 and 3, "same"; "valid" the same without padding.
The exit status is 1 where a figure is larger than wanted.  A CSV file goes to benchmarks/results/.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.processes import in_own_process
from benchmarks.ranks import launcher

NETWORKS = ("smallvgg16", "resnet34", "smalldensenet121", "googlenet", "unet", "odd", "valid")
MESHES = ("height=2", "width=2", "height=2,width=2", "height=3", "width=3", "batch=2,height=2")
WANTED = {"gradients": 1e-10, "gradients 32": 1e-5, "losses": 1e-9}
STEPS = 10


def odd(padding: str) -> Any:
    """Strides of 2 and 3, dilations of 2 and 3, kernels of 2 to 5, none of which divides the sizes."""
    import pydtconv as keras
    from pydtconv import layers

    inputs = keras.Input((67, 43, 2))
    x = layers.Conv2D(6, 5, strides=2, padding=padding, activation="relu")(inputs)
    x = layers.Conv2D(8, 3, dilation_rate=2, padding=padding)(x)
    x = layers.ReLU()(layers.BatchNormalization()(x))
    x = layers.AveragePooling2D(3, strides=2, padding=padding)(x)
    x = layers.Conv2D(8, (3, 2), dilation_rate=3 if padding == "same" else 2, padding=padding)(x)
    x = layers.Conv2D(8, 4, strides=3, padding=padding)(x)
    return keras.Model(inputs, layers.Dense(10)(layers.Flatten()(x)))


def made(name: str) -> Any:
    import pydtconv as keras
    from pydtconv import applications, losses, optimizers

    keras.utils.set_random_seed(3)
    if name in ("odd", "valid"):
        model = odd("same" if name == "odd" else "valid")
    elif name == "unet":
        model = applications.build("unet", input_shape=(48, 32, 1), classes=3)
    else:
        model = applications.build(name, input_shape=(40, 36, 3), classes=10)
    logits = name in ("odd", "valid")
    model.compile(optimizers.SGD(0.01, momentum=0.9), losses.SparseCategoricalCrossentropy(from_logits=logits))
    model._pydt_training.memory.keeps_gradients = True
    return model


def trained(name: str, mesh: str, folder: str) -> None:
    """Trains in this process, one of those of a mesh; the first one writes what it found."""
    import numpy as np

    from pydtconv import config, distribution, replica
    from pydtconv.graph.ir.graph import Graph, Thresholds

    Graph.thresholds = Thresholds(halo_pixels=1)  # exchanges go on beside the smallest images, too
    config.set_num_threads(1)
    config.set_conv_precision("strict")
    if mesh != "alone":
        parts = dict(part.split("=") for part in mesh.split(","))
        shape = distribution.DeviceMesh([int(extent) for extent in parts.values()], list(parts))
        distribution.set_distribution(distribution.SpatialParallel(shape))
    found: dict[str, Any] = {}
    weights = None
    for dtype, steps in (("float32", 1), ("float64", STEPS)):
        config.set_floatx(dtype)
        model = made(name)
        rng = np.random.default_rng(1)
        weights = model.get_weights() if weights is None else weights
        model.set_weights(weights)
        x = rng.standard_normal((2, *model.input_shape[1:])).astype(np.float32)
        y = rng.integers(0, 3, (2, *model.output_shape[1:-1]))
        losses = []
        for step in range(steps):
            losses.append(float(model.train_on_batch(x, y)))
            if step == 0:
                store = model._pydt_training.memory.store
                gradients = [store.gradient_of(v).ravel() for v in model.trainable_variables]
                found[f"gradients {dtype}"] = np.concatenate(gradients)
        found[f"losses {dtype}"] = np.array(losses)
    if replica.current().is_main:
        np.savez(Path(folder) / f"{name} {mesh}.npz", **found)
        print("{}", flush=True)


def row(name: str, mesh: str, folder: Path) -> dict[str, object]:
    import numpy as np

    with np.load(folder / f"{name} alone.npz") as file:
        one = dict(file)
    with np.load(folder / f"{name} {mesh}.npz") as file:
        several = dict(file)

    def off(key: str) -> float:
        return float(abs(several[key] - one[key]).max() / abs(one[key]).max())

    losses = abs(several["losses float64"] / one["losses float64"] - 1).max()
    exact = one["gradients float64"]
    return {
        "network": name, "mesh": mesh, "gradients": off("gradients float64"),
        "gradients 32": off("gradients float32"), "losses": float(losses),
        "rounding": float(abs(one["gradients float32"] - exact).max() / abs(exact).max()),
    }  # fmt: skip


def rows_of(networks: list[str], meshes: list[str]) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as name:
        for network in networks:
            for mesh in ("alone", *meshes):
                ranks = 1
                for part in mesh.split(",") if mesh != "alone" else ():
                    ranks *= int(part.partition("=")[2])
                launch = [] if mesh == "alone" else [launcher(), "-n", str(ranks)]
                in_own_process("benchmarks.spatial_equal", ["--one", network, mesh, name], 1, launch)
                if mesh != "alone":
                    rows.append(row(network, mesh, Path(name)))
                    figures = ", ".join(f"{key} {rows[-1][key]:.1e}" for key in (*WANTED, "rounding"))
                    print(f"{network}, {mesh}: {figures}", flush=True)
    return rows


def too_large(rows: list[dict[str, object]]) -> list[str]:
    """What is larger than wanted, or no number."""
    return [
        f"{each['network']}, {each['mesh']}: {key}: expected at most {most:g}, got {float(str(each[key])):.1e}"
        for each in rows
        for key, most in WANTED.items()
        if not float(str(each[key])) <= most
    ]


def main() -> int:
    if sys.argv[1:2] == ["--one"]:
        trained(*sys.argv[2:])
        return 0
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.spatial_equal",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--networks", nargs="+", default=list(NETWORKS), choices=NETWORKS)
    parser.add_argument("--meshes", nargs="+", default=list(MESHES))
    parser.add_argument("--name", default="spatial_equal", help="of the file in benchmarks/results/")
    options = parser.parse_args()
    rows = rows_of(options.networks, options.meshes)
    print(report.write_csv(options.name, rows))
    wrong = too_large(rows)
    print("\n".join(wrong) if wrong else "all within what is wanted")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
