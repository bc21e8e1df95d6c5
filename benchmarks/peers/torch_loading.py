"""Batches of a folder of images with PyTorch: `python -m benchmarks.peers.torch_loading` and

    FOLDER SIZE BATCH EPOCHS WORKERS

torchvision's ImageFolder, images of SIZE x SIZE as Pillow resizes them, in uint8; a DataLoader with WORKERS processes
that stay.  Prints a JSON line: seconds of each epoch after the first.
"""

from __future__ import annotations

import json
import sys
import time

import torch
from torch.utils.data import DataLoader

try:
    import torchvision  # noqa: F401
except RuntimeError:  # built for another torch: it lacks compiled operators, of which its data sets need none
    for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
        del sys.modules[name]
    library = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
from torchvision import datasets, transforms


def load(folder: str, size: int, batch: int, epochs: int, workers: int) -> dict[str, object]:
    change = transforms.Compose([transforms.Resize((size, size)), transforms.PILToTensor()])
    data = datasets.ImageFolder(folder, change)
    loader = DataLoader(data, batch_size=batch, num_workers=workers, persistent_workers=workers > 0)
    seconds = []
    for _ in range(epochs + 1):
        start = time.perf_counter()
        for _ in loader:
            pass
        seconds.append(time.perf_counter() - start)
    return {"peer": f"PyTorch {torch.__version__}", "seconds": seconds[1:]}


if __name__ == "__main__":
    path, *numbers = sys.argv[1:]
    print(json.dumps(load(path, *map(int, numbers))))
