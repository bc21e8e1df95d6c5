"""Data-parallel training of one described network by PyTorch's DistributedDataParallel over gloo: one of several ranks.

Batches are channels_last, buckets are views of gradients, the graph is static, and buffers stay with each rank: what is
fastest on CPUs.  Gradients are float32.
"""

from __future__ import annotations

import contextlib
from typing import Any

import torch
from torch import distributed, nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
from torch.nn.parallel import DistributedDataParallel

from benchmarks.peers.torch_networks import Network

VERSION = f"PyTorch {torch.__version__}"


def join(address: str, rank: int, ranks: int) -> None:
    """Meets the others at the first one's address.  The environment names the network device."""
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"tcp://{address}:29500", rank=rank, world_size=ranks)


class Training:
    """A network of one image size, and random images of this rank.  cap: MiB of a bucket.  half: sends float16."""

    def __init__(
        self, description: dict[str, Any], batch: int, cap: float, half: bool, accumulates: bool = False
    ) -> None:
        torch.manual_seed(0)
        self._description = description
        *spatial, channels = description["layers"][0]["config"]["batch_shape"][1:]
        shape = (batch, channels, *spatial)
        self.x = torch.randn(shape).contiguous(memory_format=torch.channels_last)
        self._alone, self._alone_optimizer = self._made()
        self.y = torch.randint(0, self._alone(self.x[:2]).shape[1], (batch,))
        model, self._optimizer = self._made()
        self.model = DistributedDataParallel(
            model,
            broadcast_buffers=False,
            bucket_cap_mb=cap,
            gradient_as_bucket_view=True,
            static_graph=not accumulates,  # which cannot leave out reductions
        )
        self._wire = torch.float16 if half else torch.float32
        if half:  # that for bfloat16 needs GPUs
            self.model.register_comm_hook(None, fp16_compress_hook)

    def _made(self) -> tuple[nn.Module, torch.optim.Optimizer]:
        model = Network(self._description).train()
        model(self.x[:2])  # gives the lazy modules their shapes
        model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        return model, torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9, fused=True)

    def step(self) -> None:
        """With all ranks."""
        self._train(self.model, self._optimizer)

    def alone(self) -> None:
        """A step of this rank without the others."""
        self._train(self._alone, self._alone_optimizer)

    def update(self, batches: int = 4) -> None:
        """A step by the gradients of so many batches, which are reduced once."""
        self._optimizer.zero_grad()
        for i in range(batches):
            with self.model.no_sync() if i < batches - 1 else contextlib.nullcontext():
                self._backward(self.model)
        self._optimizer.step()

    def reduce(self) -> None:
        """All reductions of a step, and nothing else."""
        data = self.model._get_ddp_logging_data()
        sizes = str(data.get("rebuilt_bucket_sizes") or data["bucket_sizes"]).split(",")
        buckets = [torch.zeros(int(size) // 4, dtype=self._wire) for size in sizes]
        for work in [distributed.all_reduce(bucket, async_op=True) for bucket in buckets]:
            work.wait()

    def _train(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        optimizer.zero_grad()
        self._backward(model)
        optimizer.step()

    def _backward(self, model: nn.Module) -> None:
        nn.functional.cross_entropy(model(self.x), self.y).backward()
