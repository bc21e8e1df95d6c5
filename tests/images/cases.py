"""Steps of random numbers, and images for them."""

import numpy as np

from pydtconv.images.steps import FILL_MODES, affine, places, step

RANGE = (0.0, 255.0)


def transform(rng, h, w):
    turned = rng.normal(scale=0.4, size=8)
    turned[[0, 4]] += 1
    turned[[2, 5]] *= (w, h)
    turned[6:] *= rng.integers(2) / (20 * max(h, w))
    return turned


def filter_of(rng):
    weights = rng.random(rng.integers(1, 8))
    return weights / weights.sum()


def blur(rng, shape):
    down, across = filter_of(rng), filter_of(rng)
    return step("blur", 1, len(down), 0, len(across), len(down), *RANGE, extra=np.concatenate([down, across]))


def erase(rng, shape):
    (top, bottom), (left, right) = (np.sort(rng.integers(0, side + 1, 2)) for side in shape[1:3])
    rectangle, count = (top, left, bottom - top, right - left), (bottom - top) * (right - left) * shape[3]
    if rng.random() < 0.5 or count == 0:
        return step("erase", 1, *rectangle, -1, rng.normal() * 200, *RANGE)
    return step("erase", 1, *rectangle, 0, 0, *RANGE, extra=rng.normal(size=count) * 200)


def moved(rng, shape):
    grid = np.mgrid[: shape[1], : shape[2]] + rng.normal(scale=3, size=(2, *shape[1:3]))
    return places([grid], int(rng.integers(2)), str(rng.choice(FILL_MODES)), rng.normal() * 50)


def bent(rng, shape):
    return affine(
        1, transform(rng, *shape[1:3])[None], int(rng.integers(2)), str(rng.choice(FILL_MODES)), rng.normal() * 50
    )


#: a step of each kind for one image, of random numbers
KINDS = {
    "affine": bent,
    "places": moved,
    "add": lambda rng, shape: step("add", 1, rng.normal() * 50, *RANGE),
    "contrast": lambda rng, shape: step("contrast", 1, rng.random() * 2, *RANGE),
    "gray": lambda rng, shape: step("gray", 1),
    "invert": lambda rng, shape: step("invert", 1, 255),
    "hue": lambda rng, shape: step("hue", 1, rng.uniform(-1, 1), *RANGE),
    "saturation": lambda rng, shape: step("saturation", 1, rng.uniform(0, 2), 0, 1),
    "posterize": lambda rng, shape: step("posterize", 1, rng.integers(9), *RANGE),
    "solarize": lambda rng, shape: step("solarize", 1, rng.normal() * 30, rng.random() * 255, *RANGE),
    "colour": lambda rng, shape: step("colour", 1, rng.uniform(-1, 2), *RANGE),
    "sharpness": lambda rng, shape: step("sharpness", 1, rng.uniform(0, 2), *RANGE),
    "blur": blur,
    "erase": erase,
    "auto_contrast": lambda rng, shape: step("auto_contrast", 1, *RANGE),
    "equalize": lambda rng, shape: step("equalize", 1, 64, 0, *RANGE, extra=np.zeros(64 * shape[3])),
    "scale": lambda rng, shape: step("scale", 1, 0, extra=rng.normal(size=2 * shape[3])),
}
#: these are for RGB alone
OF_COLOURS = ("gray", "hue", "saturation", "colour")


def shape_of(rng, kinds):
    h, w = rng.integers(1, 40, 2)
    return (1, h, w, 3 if set(kinds) & set(OF_COLOURS) else int(rng.choice([1, 2, 3, 4, 7])))
