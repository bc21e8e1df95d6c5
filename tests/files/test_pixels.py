"""Pixels of files: each kind of file, color mode and loader beside the integers that were written."""

import io
import struct
import zlib
from argparse import Namespace
from dataclasses import replace

import numpy as np
import pytest

from pydtconv import preprocessing, utils
from pydtconv.cli.data import load
from pydtconv.compat.tensorflow import files
from pydtconv.compat.tensorflow import image as tf_image
from pydtconv.files.reading import BadFileError

Image = pytest.importorskip("PIL.Image")
RNG = np.random.default_rng(8)
H, W = 3, 4


def png(samples, kind, depth, palette=None, transparent=b""):
    """A PNG of samples (h, w, channels) of so many bits, as its specification has it, without filters."""
    rows = []
    for row in samples.reshape(len(samples), -1):
        bits = "".join(format(int(value), f"0{depth}b") for value in row)
        bits += "0" * (-len(bits) % 8)
        rows.append(b"\0" + int(bits, 2).to_bytes(len(bits) // 8, "big"))
    head = struct.pack(">IIBBBBB", samples.shape[1], samples.shape[0], depth, kind, 0, 0, 0)
    parts = {
        b"IHDR": head,
        b"PLTE": palette,
        b"tRNS": transparent,
        b"IDAT": zlib.compress(b"".join(rows)),
        b"IEND": b"",
    }
    chunks = (
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in parts.items()
        if data or name == b"IEND"
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def tiff(samples, depth):
    """A TIFF of one channel of 12 or 16 bits: rows are packed, most significant bit first, or little-endian."""
    if depth == 16:
        data = samples.astype("<u2").tobytes()
    else:
        bits = "".join(format(int(value), "012b") for value in samples.ravel())
        data = int(bits, 2).to_bytes(len(bits) // 8, "big")
    tags = [(256, W), (257, H), (258, depth), (259, 1), (262, 1), (273, 8), (277, 1), (278, H), (279, len(data))]
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags)
    return struct.pack("<2sHI", b"II", 42, 8 + len(data)) + data + struct.pack("<H", len(tags)) + entries + bytes(4)


def kinds():
    """name -> (bytes, pixels of 16 bits at full range (h, w, channels), opacity or None)."""
    found = {}
    for kind, channels, depths in ((0, 1, (1, 2, 4, 8, 16)), (4, 2, (8, 16)), (2, 3, (8, 16)), (6, 4, (8, 16))):
        for depth in depths:
            samples = RNG.integers(0, 2**depth, (H, W, channels))
            full = samples * 65535 // (2**depth - 1)
            alpha = full[..., -1:] if kind in (4, 6) else None
            found[f"png-{kind}-{depth}"] = png(samples, kind, depth), full if alpha is None else full[..., :-1], alpha
    for depth in (1, 2, 4, 8):
        samples, palette = RNG.integers(0, 2**depth, (H, W, 1)), RNG.integers(0, 256, (2**depth, 3))
        opacity = np.where(samples == 1, 7, 255) * 257
        coded = palette.astype(np.uint8).tobytes()
        found[f"png-3-{depth}"] = png(samples, 3, depth, coded), palette[samples[..., 0]] * 257, None
        found[f"png-3-{depth}-t"] = png(samples, 3, depth, coded, b"\xff\7"), palette[samples[..., 0]] * 257, opacity
    for kind, channels in ((0, 1), (2, 3)):
        full = RNG.integers(0, 65536, (H, W, channels))
        clear = np.where((full == full[1, 1]).all(-1, keepdims=True), 0, 65535)
        found[f"png-{kind}-16-t"] = png(full, kind, 16, None, full[1, 1].astype(">u2").tobytes()), full, clear
    return found


KINDS = kinds()
TF_CHANNELS = {0: None, 1: "grayscale", 3: "rgb", 4: "rgba"}


def expected(name, mode, bits):
    """Pixels (h, w, channels) in a color mode, None for that of the file, and how much a gray may be off."""
    _, color, alpha = KINDS[name]
    if bits == 8 or not name.endswith(("16", "16-t")):  # gray is computed of what the file has
        color, alpha = color >> 8, None if alpha is None else alpha >> 8
    off = 0
    if mode == "grayscale" and color.shape[-1] == 3:
        color, off = color @ np.array([[0.299], [0.587], [0.114]]), 1
    if mode in ("rgb", "rgba"):
        color = np.repeat(color, 3 // color.shape[-1], -1)
    if mode == "rgba" and alpha is None:
        alpha = np.full_like(color[..., :1], 65535 if color.max() > 255 else 255)
    if mode == "rgba" or (mode is None and alpha is not None and name != "png-0-16-t" and name != "png-2-16-t"):
        color = np.concatenate([color, alpha], -1)
    scale = 257 if bits == 16 and not name.endswith(("16", "16-t")) else 1
    return color * scale, off * scale


@pytest.mark.parametrize("name", KINDS)
def test_decoders_of_tensorflow(name):
    for channels, mode in TF_CHANNELS.items():
        for decode, dtype in [("decode_png", "uint8"), ("decode_png", "uint16")] + [
            ("decode_image", dtype) for dtype in ("uint8", "uint16", "float32")
        ]:
            found = np.asarray(getattr(tf_image, decode)(KINDS[name][0], channels=channels, dtype=dtype))
            wanted, off = expected(name, mode, 8 if dtype == "uint8" else 16)
            scale = 65535 if dtype == "float32" else 1
            assert (found.dtype, found.shape) == (dtype, wanted.shape), (channels, decode, dtype)
            np.testing.assert_allclose(
                found, wanted / scale, 0, (off + 0.01) / scale, err_msg=f"{mode} {decode} {dtype}"
            )


@pytest.mark.parametrize("mode", ["grayscale", "rgb", "rgba"])
def test_loaders_agree(tmp_path, mode):
    """Of 8 bits: folders, the command, load_img and the generators; these two keep wide grays, as Keras does."""
    names = [name for name in KINDS if not (mode == "rgba" and name == "png-2-16-t")]
    (tmp_path / "val" / "a").mkdir(parents=True)
    for number, name in enumerate(names):
        (tmp_path / "val" / "a" / f"{number:02}.png").write_bytes(KINDS[name][0])
    size = {"target_size": (H, W), "color_mode": mode, "batch_size": len(names), "shuffle": False}
    paths = sorted((tmp_path / "val" / "a").iterdir())
    generator = preprocessing.image.ImageDataGenerator()
    table = {"filename": [path.name for path in paths], "class": ["a"] * len(paths)}
    options = {"color_mode": mode, "image_size": (H, W), "batch_size": len(names), "verbose": False, "shuffle": False}
    found = {
        "folder": utils.image_dataset_from_directory(tmp_path / "val", **options)[0][0],
        "load_img": [utils.img_to_array(utils.load_img(path, color_mode=mode)) for path in paths],
        "flow_from_directory": generator.flow_from_directory(tmp_path / "val", class_mode=None, **size)[0],
        "flow_from_dataframe": generator.flow_from_dataframe(table, tmp_path / "val" / "a", class_mode=None, **size)[0],
    }
    if mode == "rgb":
        args = Namespace(data=tmp_path, dataset=None, image_size=W, batch_size=64, skip_bad_files=False, classes=None)
        test = load(args, training=False).test
        test._read = test._decoder = replace(test._decoder, size=(H, W))
        found["the command"] = test[0][0]
    for loader, images in found.items():
        for name, image in zip(names, images, strict=True):
            keeps = loader not in ("folder", "the command") and mode == "grayscale" and name.startswith("png-0-16")
            wanted, off = expected(name, mode, 16 if keeps else 8)
            np.testing.assert_allclose(image, wanted, 0, off, err_msg=f"{loader} {name}")


def test_further_formats():
    gray, color = RNG.integers(0, 65536, (H, W)), RNG.integers(0, 65536, (H, W, 3))
    head = f"{W} {H}\n65535\n".encode()
    # bytes, pixels that are kept in grayscale, their high byte, and how much that may be off
    files = {
        "tiff-16": (tiff(gray, 16), gray, gray >> 8, 0),
        "tiff-12": (tiff(gray >> 4, 12), gray >> 4, gray >> 8, 0),
        "pgm": (b"P5\n" + head + gray.astype(">u2").tobytes(), gray, gray >> 8, 0),
        "ppm": (b"P6\n" + head + color.astype(">u2").tobytes(), None, color >> 8, 1),
    }
    for name, (data, kept, high, off) in files.items():
        for mode in ("rgb", "rgba"):
            found = np.asarray(utils.load_img(io.BytesIO(data), mode))[..., :3]
            wanted = high if high.ndim == 3 else high[..., None]
            np.testing.assert_allclose(found, np.broadcast_to(wanted, found.shape), 0, off, err_msg=name)
        if kept is not None:
            np.testing.assert_array_equal(np.asarray(utils.load_img(io.BytesIO(data), "grayscale")), kept, name)


def test_pixels_that_are_no_integers_are_refused():
    for pixels, words in (
        (gray := np.ones((2, 3), "float32"), "integers, got floats"),
        (-gray, "integers, got floats"),
    ):
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, "TIFF")
        with pytest.raises(BadFileError, match=words):
            utils.load_img(file)
    file = io.BytesIO()
    Image.fromarray(np.full((2, 3), -5, "int32")).save(file, "TIFF")
    with pytest.raises(BadFileError, match="0 or more, got -5"):
        utils.load_img(file)


def test_images_of_a_gif():
    frames, file = (
        [Image.fromarray(RNG.integers(0, 256, (H, W, 3), np.uint8)).quantize(8) for _ in range(2)],
        io.BytesIO(),
    )
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:])
    pixels = np.stack([np.asarray(frame.convert("RGB")) for frame in frames])
    for decode in (tf_image.decode_image, tf_image.decode_gif):
        np.testing.assert_array_equal(decode(file.getvalue()), pixels)
    np.testing.assert_array_equal(tf_image.decode_image(file.getvalue(), expand_animations=False), pixels[0])
    with pytest.raises(ValueError, match="expected one image, got 2: use decode_gif"):
        tf_image.decode_png(file.getvalue())


@pytest.mark.parametrize(
    ("options", "words"), [({"channels": 2}, "expected 0, 1, 3 or 4"), ({"dtype": "int32"}, "uint16")]
)
def test_what_decoders_do_not_give(options, words):
    for decode in (tf_image.decode_png, tf_image.decode_image):
        with pytest.raises(ValueError, match=words):
            decode(KINDS["png-0-8"][0], **options)


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_encoded_png(dtype, channels):
    pixels = RNG.integers(0, np.iinfo(dtype).max + 1, (H, W, channels)).astype(dtype)
    np.testing.assert_array_equal(tf_image.decode_png(files.encode_png(pixels), dtype=dtype), pixels)


def test_encoders_refuse_what_they_would_cut():
    for encode, dtype in (
        (files.encode_png, "float32"),
        (files.encode_png, "int32"),
        (files.encode_jpeg, "uint16"),
    ):
        with pytest.raises(ValueError, match=f"got .*{dtype}"):
            encode(np.ones((H, W, 3), dtype))


@pytest.mark.parametrize(
    ("kind", "wanted", "pairs"),
    [  # recorded from TensorFlow 2
        ("uint8", "uint16", {0: 0, 1: 256, 255: 65280}),
        ("uint16", "uint8", {0: 0, 255: 0, 256: 1, 65535: 255}),
        ("uint8", "int32", {1: 8388608, 255: 2139095040}),
        ("int32", "uint8", {8388607: 0, 2139095040: 255}),
        ("uint16", "float32", {65535: 1.0, 13107: 0.2}),
    ],
)
def test_convert_image_dtype(kind, wanted, pairs):
    found = tf_image.convert_image_dtype(np.array(list(pairs), kind), wanted)
    assert str(found.dtype) == wanted
    np.testing.assert_allclose(found, list(pairs.values()), 1e-6)
