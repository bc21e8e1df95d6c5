"""From files to batches, and from files to steps: `python -m benchmarks.loading --peer torch`.

A folder of JPEGs of 500x375 becomes batches of 32 images of 224x224: by `image_dataset_from_directory`, in as many
threads as there are cores, and by PyTorch's DataLoader with as many workers (torchvision's ImageFolder, resized as
Pillow does it, uint8).  Both run in fresh processes that take turns; images/s is of the median epoch but the first, in
which files come into memory and workers start.  The floor is libjpeg-turbo's time alone, as Pillow calls it, in as many
threads.  Then a network trains from the folder and from arrays of the same images, in one process, in turns.  The
photographs are noise with the spectrum of photographs and edges, or pieces of those of --photos.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import report
from benchmarks.processes import in_own_process

HEIGHT, WIDTH, QUALITY, SIZE, BATCH = 375, 500, 90, 224, 32


def pictures(source: str | None) -> Iterator[Any]:
    """Images of Pillow without end, the same each time.  source: a folder of photographs."""
    from PIL import Image

    rng = np.random.default_rng(0)
    files = sorted(Path(source).rglob("*.jpg")) if source else []
    rows, columns = np.fft.fftfreq(HEIGHT)[:, None], np.fft.rfftfreq(WIDTH)
    amplitude = np.maximum(np.hypot(rows, columns), 1 / WIDTH) ** -1.4
    while True:
        if files:
            with Image.open(files[rng.integers(len(files))]) as image:
                scale = min(image.width / WIDTH, image.height / HEIGHT) * rng.uniform(0.7, 1)
                left, top = rng.uniform(0, image.width - WIDTH * scale), rng.uniform(0, image.height - HEIGHT * scale)
                box = (left, top, left + WIDTH * scale, top + HEIGHT * scale)
                yield image.convert("RGB").resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC, box)
            continue
        phases = np.exp(2j * np.pi * rng.random((3, HEIGHT, WIDTH // 2 + 1)))
        noise = np.fft.irfft2(amplitude * phases, (HEIGHT, WIDTH))
        gray, *colors = noise / noise.std((1, 2), keepdims=True)
        gray = gray + (gray > 0.5)  # an edge
        pixels = 110 + 50 * np.stack([gray, gray + 0.3 * colors[0], gray + 0.3 * colors[1]], -1)
        yield Image.fromarray(pixels.clip(0, 255).astype(np.uint8))


def write_photographs(folder: Path, count: int, source: str | None) -> int:
    """Writes so many JPEGs of two classes; the mean of their bytes."""
    for name in "ab":
        (folder / name).mkdir(parents=True)
    total = 0
    for number, image in zip(range(count), pictures(source), strict=False):
        path = folder / "ab"[number % 2] / f"{number:05}.jpg"
        image.save(path, quality=QUALITY)
        total += path.stat().st_size
    return total // count


def dataset(folder: str, **options: Any) -> Any:
    import pydtconv as keras

    options = {"image_size": (SIZE, SIZE), "batch_size": BATCH, "verbose": False, **options}
    return keras.utils.image_dataset_from_directory(folder, **options)


def seconds_of(epoch: Callable[[], Any], epochs: int) -> list[float]:
    """The times of all epochs but the first."""
    seconds = []
    for _ in range(epochs + 1):
        start = time.perf_counter()
        epoch()
        seconds.append(time.perf_counter() - start)
    return seconds[1:]


def loading(folder: str, epochs: int, cache: str) -> list[float]:
    """Epochs of batches alone.  cache: "memory", "folder" or ""."""
    with tempfile.TemporaryDirectory() as kept:
        data = dataset(folder, cache=kept if cache == "folder" else cache or None)
        return seconds_of(lambda: [None for _ in data], epochs)


def decoding(folder: str, epochs: int, threads: int) -> list[float]:
    """Epochs of the decoder alone: files that are in memory, to images of Pillow."""
    from PIL import Image

    files = [path.read_bytes() for path in sorted(Path(folder).rglob("*.jpg"))]

    def decode(part: list[bytes]) -> None:
        for data in part:
            Image.open(io.BytesIO(data), formats=("JPEG",)).load()

    with ThreadPoolExecutor(threads) as pool:
        return seconds_of(lambda: list(pool.map(decode, [files[i::threads] for i in range(threads)])), epochs)


def training(folder: str, epochs: int, network: str, workers: list[int]) -> dict[str, list[float]]:
    """Epochs of training by name: from arrays, and from files with so many threads that decode."""
    import pydtconv as keras

    class Clock(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            self.start = time.perf_counter()

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            seconds[name].append(time.perf_counter() - self.start)

    arrays = [np.concatenate(parts) for parts in zip(*dataset(folder, shuffle=False), strict=True)]
    inputs = keras.Input((SIZE, SIZE, 3))
    outputs = keras.applications.build(network, input_shape=(SIZE, SIZE, 3), classes=2)(
        keras.layers.Rescaling(1 / 127.5, -1)(inputs)
    )
    model = keras.Model(inputs, outputs)
    model.compile(keras.optimizers.SGD(0.001, momentum=0.9), "sparse_categorical_crossentropy")
    sides = {"arrays": (arrays, {"batch_size": BATCH})}
    sides |= {f"files, workers {count}": ((dataset(folder, workers=count),), {}) for count in workers}
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(epochs + 1):
        for name, (data, options) in sides.items():
            model.fit(*data, **options, verbose=0, callbacks=[Clock()])
            if turn == 0:
                seconds[name].clear()
    return seconds


def one(words: list[str]) -> None:
    """A measurement in this process: what, a folder, epochs, and what is asked for besides."""
    what, folder, epochs, *more = words
    if what == "training":
        found: Any = training(folder, int(epochs), more[0], [int(count) for count in more[1:]])
    else:
        found = (
            decoding(folder, int(epochs), int(more[0])) if what == "decoding" else loading(folder, int(epochs), what)
        )
    print(json.dumps({"seconds": found}))


def rows(options: argparse.Namespace, folder: str) -> Iterator[dict[str, object]]:
    """What was measured, each time with what it is compared with."""
    threads = len(os.sched_getaffinity(0))

    def seconds(module: str, *words: object) -> Any:
        return in_own_process(module, words, threads)["seconds"]

    def rate(runs: Any) -> float:
        return options.images / statistics.median(runs)

    def row(what: str, mine: Any, other: str, theirs: Any) -> dict[str, object]:
        mine, theirs = rate(mine), rate(theirs)
        return {"what": what, "images/s": mine, "compared with": other, "its images/s": theirs, "ratio": mine / theirs}

    ours, torch, floor = [], [], []
    for _ in range(options.rounds):
        ours += seconds("benchmarks.loading", "--one", "", folder, options.epochs)
        floor += seconds("benchmarks.loading", "--one", "decoding", folder, options.epochs, threads)
        if options.peer:
            torch += seconds("benchmarks.peers.torch_loading", folder, SIZE, BATCH, options.epochs, threads)
    if options.peer:
        yield row("batches of files", ours, "PyTorch", torch)
    yield row("batches of files", ours, "decoding alone", floor)
    for cache in ("memory", "folder"):
        kept = seconds("benchmarks.loading", "--one", cache, folder, options.epochs)
        yield row(f"batches, cache: {cache}", kept, "batches of files", ours)
    if options.network:
        found = seconds(
            "benchmarks.loading", "--one", "training", folder, options.rounds, options.network, *options.workers
        )
        arrays = found.pop("arrays")
        for name, runs in found.items():
            yield row(f"{options.network} of {name}", runs, "of arrays", arrays)


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        one(sys.argv[2:])
        return
    parser = argparse.ArgumentParser(prog="python -m benchmarks.loading", description=__doc__)
    parser.add_argument("--peer", choices=("torch",), help="measure PyTorch too")
    parser.add_argument("--images", type=int, default=512, help="default: 512")
    parser.add_argument("--photos", help="a folder of photographs that the files are pieces of")
    parser.add_argument("--rounds", type=int, default=3, help="processes of each side, epochs of training (default: 3)")
    parser.add_argument("--epochs", type=int, default=3, help="epochs of batches that are timed in a process")
    parser.add_argument("--network", default="mobilenetv2", help='of the zoo; "" for none (default: mobilenetv2)')
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2], help="threads while it trains (default: 1 2)")
    parser.add_argument("--name", default="loading", help="of the file in benchmarks/results/ (default: loading)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        kilobytes = write_photographs(Path(folder, "images"), options.images, options.photos) / 1000
        print(f"{options.images} files of {kilobytes:.0f} kB")
        found = [{**row, "kB": kilobytes} for row in rows(options, str(Path(folder, "images")))]
    report.print_table("from files to batches", found)
    print(report.write_csv(options.name, found))


if __name__ == "__main__":
    main()
