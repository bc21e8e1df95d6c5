"""Steps of changes of images by NumPy in float64, each on its own."""

import numpy as np

#: by their numbers, from 1 on (cext/include/dtconv_image_changes.h)
KINDS = (
    "affine", "places", "add", "contrast", "gray", "invert", "hue", "saturation", "posterize", "solarize", "colour",
    "sharpness", "blur", "erase", "auto_contrast", "equalize", "scale",
)  # fmt: skip


def steps_of(program):
    """Lists (kind, numbers) of each image of what images/steps.py made."""
    return [[(KINDS[int(row[0]) - 1], row[1:]) for row in rows if row[0]] for rows in program.rows]


def changed(x, program):
    """Images (n, h, w, c) after a program; each joined transform is an interpolation of its own."""
    found = []
    for image, steps in zip(x.astype("float64"), steps_of(program), strict=True):
        for kind, numbers in steps:
            image = STEPS[kind](image, numbers, program.extra)
        found.append(image)
    return np.stack(found)


def _inside(index, extent, mode):
    """Indices of pixels that take the place of those outside, one by one."""
    period = {"wrap": extent, "mirror": max(2 * extent - 2, 1), "reflect": 2 * extent}.get(mode)
    if period is None:
        return np.clip(index, 0, extent - 1)
    one = (
        [*range(extent), *range(extent - 2, 0, -1)] if mode == "mirror" else [*range(extent), *reversed(range(extent))]
    )
    return np.array(one)[index % period]


def _sampled(image, rows, columns, order, mode, value):
    mode = ("constant", "nearest", "wrap", "mirror", "reflect")[int(mode)]
    h, w, _ = image.shape
    if order == 0:
        corners = [(np.round(rows).astype(int), np.round(columns).astype(int), np.ones(rows.shape))]
    else:
        top, left = np.floor(rows).astype(int), np.floor(columns).astype(int)
        down, across = rows - top, columns - left
        corners = [
            (top + i, left + j, (down if i else 1 - down) * (across if j else 1 - across))
            for i in (0, 1)
            for j in (0, 1)
        ]
    total = 0
    for row, column, weight in corners:
        pixels = image[_inside(row, h, mode), _inside(column, w, mode)]
        if mode == "constant":
            outside = (row < 0) | (row >= h) | (column < 0) | (column >= w)
            pixels = np.where(outside[..., None], value, pixels)
        total = total + weight[..., None] * pixels
    return total


def _affine(image, p, extra):
    y, x = np.mgrid[: image.shape[0], : image.shape[1]].astype(float)
    t, k = p[3:11], p[9] * x + p[10] * y + 1
    return _sampled(image, (t[3] * x + t[4] * y + t[5]) / k, (t[0] * x + t[1] * y + t[2]) / k, *p[:3])


def _places(image, p, extra):
    h, w, _ = image.shape
    rows, columns = extra[int(p[3]) : int(p[3]) + 2 * h * w].reshape(2, h, w)
    return _sampled(image, rows, columns, *p[:3])


def _contrast(image, p, extra):
    mean = image.mean((0, 1))
    return np.clip((image - mean) * p[0] + mean, p[1], p[2])


def _gray(image):
    return image @ np.array([[0.2989], [0.5870], [0.1140]])


def _hsv(image):
    r, g, b = np.moveaxis(image, -1, 0)
    value, least = image.max(-1), image.min(-1)
    span = value - least
    with np.errstate(all="ignore"):
        hue = np.where(r == value, (g - b) / span, np.where(g == value, (b - r) / span + 2, (r - g) / span + 4)) / 6
        saturation = np.where(value > 0, span / value, 0)
    return np.where(span > 0, hue, 0) % 1, saturation, value


def _rgb(hue, saturation, value):
    ramps = [np.clip(abs((hue + turn) % 1 * 6 - 3) - 1, 0, 1) for turn in (1, 2 / 3, 1 / 3)]
    return np.stack([value * (saturation * (ramp - 1) + 1) for ramp in ramps], -1)


def _hue(image, p, extra):
    hue, saturation, value = _hsv((image - p[1]) / (p[2] - p[1]))
    return np.clip(_rgb((hue + p[0]) % 1, saturation, value), 0, 1) * (p[2] - p[1]) + p[1]


def _saturation(image, p, extra):
    hue, saturation, value = _hsv(image)
    return _rgb(hue, np.clip(saturation * p[0], p[1], p[2]), value)


def _posterize(image, p, extra):
    pixels = np.clip((image - p[1]) * (255 / (p[2] - p[1])), 0, 255).astype(int)
    return ((pixels >> int(p[0])) << int(p[0])) / 255 * (p[2] - p[1]) + p[1]


def _solarize(image, p, extra):
    pixels = np.clip((image - p[2]) / (p[3] - p[2]) * 255 + p[0], 0, 255)
    return np.where(pixels < p[1], pixels, 255 - pixels) / 255 * (p[3] - p[2]) + p[2]


def _blend(image, other, share, low, high):
    return np.clip(other + share * (image - other), low, high)


def _sharpness(image, p, extra):
    padded = np.pad(image, ((1, 1), (1, 1), (0, 0)))
    h, w, _ = image.shape
    total = sum(padded[i : i + h, j : j + w] for i in range(3) for j in range(3))
    return _blend(image, (total + 4 * image) / 13, *p[:3])


def _blur(image, p, extra):
    for axis, count, at in ((0, p[0], p[1]), (1, p[2], p[3])):
        weights = extra[int(at) : int(at) + int(count)]
        half = len(weights) // 2
        widths = [(half, half) if i == axis else (0, 0) for i in range(3)]
        padded = np.moveaxis(np.pad(image, widths), axis, 0)
        extent = image.shape[axis]
        image = np.moveaxis(sum(weight * padded[i : i + extent] for i, weight in enumerate(weights)), 0, axis)
    return np.clip(image, p[4], p[5])


def _erase(image, p, extra):
    top, left, rows, columns = p[:4].astype(int)
    image = image.copy()
    inner = image[top : top + rows, left : left + columns]
    inner[...] = p[5] if p[4] < 0 else extra[int(p[4]) : int(p[4]) + inner.size].reshape(inner.shape)
    inner[...] = np.clip(inner, p[6], p[7])
    return image


def _auto_contrast(image, p, extra):
    low, high = image.min((0, 1)), image.max((0, 1))
    with np.errstate(all="ignore"):
        stretched = np.clip((image - low) / (high - low) * (p[1] - p[0]) + p[0], p[0], p[1])
    return np.where(high > low, stretched, image)


def _equalize(image, p, extra):
    bins, low, high = int(p[0]), p[2], p[3]
    pixels = (image - low) * (255 / (high - low))
    result = pixels.copy()
    for k in range(image.shape[-1]):
        places = np.clip((pixels[..., k] * ((bins - 1) / 255)).astype(int), 0, bins - 1)
        count = np.cumsum(np.bincount(places.reshape(-1), minlength=bins))
        least = count[count > 0][0]
        if count[-1] > least:
            result[..., k] = np.clip(np.round((count - least) * 255 / (count[-1] - least)), 0, 255)[places]
    return result / 255 * (high - low) + low


def _scale(image, p, extra):
    c = image.shape[-1]
    scale, offset = extra[int(p[0]) : int(p[0]) + 2 * c].reshape(2, c)
    return image * scale + offset


STEPS = {
    "affine": _affine,
    "places": _places,
    "add": lambda image, p, extra: np.clip(image + p[0], p[1], p[2]),
    "contrast": _contrast,
    "gray": lambda image, p, extra: np.repeat(_gray(image), 3, -1),
    "invert": lambda image, p, extra: p[0] - image,
    "hue": _hue,
    "saturation": _saturation,
    "posterize": _posterize,
    "solarize": _solarize,
    "colour": lambda image, p, extra: _blend(image, _gray(image), *p[:3]),
    "sharpness": _sharpness,
    "blur": _blur,
    "erase": _erase,
    "auto_contrast": _auto_contrast,
    "equalize": _equalize,
    "scale": _scale,
}
