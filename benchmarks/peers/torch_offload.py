"""PyTorch with saved tensors on a disk: python -m benchmarks.peers.torch_offload FILE SIZE BATCH STEPS FOLDER.

As `torch.autograd.graph.save_on_cpu`, but to a file: hooks write each tensor of 256 KiB or more that autograd saves,
and read it back when backward asks for it.  Parameters stay.  Prints the JSON line that torch_train.py prints.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from benchmarks import memory
from benchmarks.peers.torch_networks import Network
from benchmarks.quiet import quiet

SMALLEST = 1 << 18


def train(path: str, size: int, batch: int, steps: int, folder: str) -> dict[str, object]:
    description = json.loads(Path(path).read_text())
    torch.manual_seed(0)
    if "OMP_NUM_THREADS" in os.environ:
        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    model: torch.nn.Module = Network(description).train()
    model(torch.randn(2, 3, size, size))  # gives the lazy modules their shapes
    model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    x = torch.randn(batch, 3, size, size).contiguous(memory_format=torch.channels_last)
    y = torch.randint(0, description["layers"][-1]["config"]["units"], (batch,))
    kept = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
    loss = torch.nn.CrossEntropyLoss()
    seconds = []
    with tempfile.TemporaryFile(dir=folder) as file:
        descriptor, end = file.fileno(), 0

        def pack(tensor: torch.Tensor) -> Any:
            nonlocal end
            nbytes = tensor.numel() * tensor.element_size()
            if nbytes < SMALLEST or tensor.untyped_storage().data_ptr() in kept:
                return tensor
            place, shape, stride, dtype = end, tensor.shape, tensor.stride(), tensor.dtype
            flat = torch.empty_strided(shape, stride, dtype=dtype) if not _dense(tensor) else tensor
            if flat is not tensor:
                flat.copy_(tensor)
            data = torch.as_strided(flat, (flat.numel(),), (1,), flat.storage_offset()).view(torch.uint8).numpy()
            at = 0
            while at < nbytes:
                at += os.pwrite(descriptor, data[at:].data, place + at)
            end += nbytes
            return place, shape, stride, dtype

        def unpack(packed: Any) -> torch.Tensor:
            if isinstance(packed, torch.Tensor):
                return packed
            place, shape, stride, dtype = packed
            tensor = torch.empty_strided(shape, stride, dtype=dtype)
            data = torch.as_strided(tensor, (tensor.numel(),), (1,)).view(torch.uint8).numpy()
            at = 0
            while at < data.nbytes:
                at += os.preadv(descriptor, [data[at:].data], place + at)
            return tensor

        for _ in range(steps + 1):
            with quiet():
                start, end = time.perf_counter(), 0
                optimizer.zero_grad()
                with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
                    loss(model(x), y).backward()
                optimizer.step()
                seconds.append(time.perf_counter() - start)
    return {"peer": f"PyTorch {torch.__version__}, hooks", "seconds": seconds[1:], "peak MiB": memory.peak()}


def _dense(tensor: torch.Tensor) -> bool:
    """Whether the elements lie one behind the other, in whatever order of the axes."""
    return tensor.is_contiguous() or (tensor.dim() == 4 and tensor.is_contiguous(memory_format=torch.channels_last))


if __name__ == "__main__":
    path, size, batch, steps, folder = sys.argv[1:]
    print(json.dumps(train(path, int(size), int(batch), int(steps), folder)))
