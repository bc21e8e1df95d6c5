"""Random changes of images: lists of steps beside NumPy in float64, and layers of random arguments beside Keras's.

What our layer has drawn is given to Keras's: so both change the same images by the same numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pydtconv import config, layers
from pydtconv.images import steps
from tests.fuzz import trials
from tests.images import reference
from tests.images.cases import KINDS, shape_of
from tests.real_keras import import_keras

LISTS, OF_LAYERS = 20, 20
MODES, BETWEEN = ("constant", "nearest", "wrap", "reflect"), ("bilinear", "nearest")


def run(seed: int) -> None:
    random = np.random.default_rng(seed)
    threads = config.num_threads()
    try:
        for _ in range(LISTS):
            config.set_num_threads(int(random.integers(1, 4)))
            _list_of_steps(random, seed)
        for _ in range(OF_LAYERS):
            _layer(random, seed)
    finally:
        config.set_num_threads(threads)


def _list_of_steps(random: np.random.Generator, seed: int) -> None:
    names = [str(name) for name in random.choice([*KINDS], int(random.integers(1, 6)))]
    # behind others, whose rounding differs, these put numbers on other sides of a border, or make noise large
    names = names[:1] + [name for name in names[1:] if name not in ("posterize", "equalize", "auto_contrast")]
    shape = shape_of(random, names)
    trials.keep("steps.txt", f"seed {seed}: {names} of {shape}".encode())
    program = steps.side_by_side([steps.in_turn([KINDS[name](random, shape) for name in names]) for _ in range(3)])
    x = random.random((3, *shape[1:])) * 255
    found, expected = steps.change(x, program), reference.changed(x, program)
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(expected))
    wrong = abs(found - expected) > 1e-6 * (1 + abs(expected))
    assert wrong.mean() < 0.02, f"{names} of {shape}: {wrong.mean()} of all pixels differ"
    trials.count("steps", "right")


def _range(random: np.random.Generator, low: float, high: float) -> tuple[float, float]:
    first, last = np.sort(random.uniform(low, high, 2))
    return float(first), float(last)


def _moved(random: np.random.Generator, **more: Any) -> dict[str, Any]:
    filling = {"fill_mode": str(random.choice(MODES)), "fill_value": float(random.normal() * 50)}
    return {**more, **filling, "interpolation": str(random.choice(BETWEEN))}


def _arguments(random: np.random.Generator) -> dict[str, dict[str, Any]]:
    """Of the layers whose transformation Keras's takes."""
    whole = {"value_range": (0, 255)}
    return {
        "RandomBrightness": {"factor": _range(random, -1, 1), **whole},
        "RandomColorDegeneration": {"factor": _range(random, 0, 1), **whole},
        "RandomContrast": {"factor": (random.random(), random.random() * 2), **whole},
        "RandomHue": {"factor": _range(random, 0, 1), **whole},
        "RandomInvert": {"factor": _range(random, 0, 1), **whole},
        "RandomPosterization": {"factor": tuple(int(n) for n in np.sort(random.integers(1, 9, 2))), **whole},
        "RandomSaturation": {"factor": _range(random, 0, 1), **whole},
        "RandomSharpness": {"factor": _range(random, 0, 1), **whole},
        "RandomRotation": _moved(random, factor=_range(random, -1, 1)),
        "RandomShear": _moved(random, x_factor=_range(random, 0, 1), y_factor=_range(random, 0, 1)),
        "RandomTranslation": _moved(random, height_factor=_range(random, -1, 1), width_factor=_range(random, -1, 1)),
        "RandomZoom": _moved(random, height_factor=_range(random, -0.9, 1), width_factor=_range(random, -0.9, 1)),
        "Solarization": {"addition_factor": _range(random, 0, 1), "threshold_factor": _range(random, 0, 1), **whole},
    }


def _layer(random: np.random.Generator, seed: int) -> None:
    try:
        keras = import_keras("jax", "tensorflow")
    except pytest.skip.Exception:
        trials.count("layers", "no Keras")
        return
    table = _arguments(random)
    name = str(random.choice([*table]))
    if table[name].get("fill_mode") == "wrap" and keras.backend.backend() == "tensorflow":
        return  # it repeats the first pixel in the place of the last one, unlike Keras's other backends
    n, (h, w) = int(random.integers(1, 4)), (int(side) for side in random.integers(2, 33, 2))
    trials.keep("layer.txt", f"seed {seed}: {name} {table[name]} of {(n, h, w)}".encode())
    ours, theirs = (getattr(of.layers, name)(**table[name], seed=1) for of in (_OURS, keras))
    images = (random.random((n, h, w, 3)) * 255).astype("float32")
    drawn = ours.get_random_transformation(images)
    tensor = keras.ops.convert_to_tensor
    how = {key: tensor(np.asarray(value, "float32" if np.asarray(value).dtype.kind == "f" else None))
           for key, value in drawn.items() if key != "input_shape"}  # fmt: skip
    if "angle" in how:
        zeros, ones = keras.ops.zeros(n), keras.ops.ones(n)
        matrix = theirs._compute_affine_matrix(0.5, 0.5, how["angle"], zeros, zeros, ones, zeros, zeros, h, w)
        how |= {"rotation_matrix": matrix, "image_height": h, "image_width": w, "batch_size": n}
    how["input_shape"] = images.shape
    want = np.asarray(keras.ops.convert_to_numpy(theirs.transform_images(tensor(images), how)))
    found = np.asarray(ours.transform_images(images, drawn))
    wrong = abs(found - want) > 0.1
    # places that single precision puts on the other side of a border between pixels
    assert wrong.mean() < (0.05 if table[name].get("interpolation") else 0.01), f"{name} {table[name]}: {wrong.mean()}"
    trials.count(name, "right")


class _OURS:
    layers = layers
