"""Window operators that get halos as vectors (ops/halo.py): passes over their own part, and over rims.

A rim is computed on copies: what it reads of this process's part and of the halo makes a small image.  Backward finds
the gradient of the halo from rims alone, so that it can travel while the gradients of the part are computed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np

from pydtconv.dtypes import in_memory
from pydtconv.kernels.base import Call, Kernel, Pass, RunState, sequence
from pydtconv.kernels.cpu.shape import bind_fill
from pydtconv.kernels.cpu.strided import bind_copy
from pydtconv.ops.base import Spec
from pydtconv.ops.halo import Halo, Rim, packed, rims
from pydtconv.ops.layout import Box, intersection

#: bytes to which arrays within a workspace are aligned
_ALIGNED = 64

KernelType = TypeVar("KernelType", bound=Kernel[Any])


@dataclass(frozen=True)
class Part(Generic[KernelType]):
    """A rim with what computes it.  x, y: of its small images."""

    rim: Rim
    kernel: KernelType
    x: Spec
    y: Spec

    def of(self, y: np.ndarray) -> np.ndarray:
        """The rim's part of an array of the whole y's shape."""
        return y[slices(self.rim.out)]


class RimPasses(Generic[KernelType]):
    """The parts of the passes of a kernel whose operator has a halo; between them others may run.

    Forward is `forward_inner`, then `forward_rims`.  Backward is `backward_rims`, after which the gradients of the halo
    and of a bias are complete, then `backward_inner`.
    """

    def __init__(self, kernel: KernelType) -> None:
        self.kernel = kernel
        self.op: Any = kernel.op
        self.halo: Halo = self.op.halo

    def kernel_of(self, op: Any) -> KernelType:
        return type(self.kernel)(op)

    def of_rim(self, rim: Rim) -> Any:
        """The operator that computes a rim."""
        return dataclasses.replace(self.halo.whole, padding=rim.padding)  # type: ignore[type-var]

    def parts(self, y: Spec, *filters: Spec) -> list[Part[KernelType]]:
        """The rims of an output."""
        found = []
        x, (n, *outputs, channels) = self.halo.image, y.shape
        for rim in rims(self.halo, outputs, *filters) or ():  # type: ignore[arg-type]
            small = Spec((n, *(stop - start for start, stop in rim.out), channels), y.dtype)
            kernel = self.kernel_of(self.of_rim(rim))
            found.append(Part(rim, kernel, Spec(self.halo.shape(rim.read), x.dtype), small))
        return found

    def pieces(self, vector: np.ndarray) -> Iterator[tuple[Box, np.ndarray]]:
        """The boxes of a halo, or of its gradient, as images."""
        boxes = self.halo.pieces
        return zip(boxes, packed(vector, [self.halo.shape(box) for box in boxes]), strict=True)

    def gathered(self, rim: Rim, own: np.ndarray | None, vector: np.ndarray, image: np.ndarray) -> Iterator[Call]:
        """What fills the image that a rim reads, of the own part and the halo; own None: zeros stand for it."""
        for box, source in ((self.halo.own, own), *self.pieces(vector)):
            shared = intersection(box, rim.read)
            if shared is not None:
                target = image[slices(shared, rim.read)]
                yield bind_fill(target, 0) if source is None else copied(source[slices(shared, box)], target)

    def given_back(self, rim: Rim, image: np.ndarray, vector: np.ndarray) -> Iterator[Call]:
        """What adds the gradient of the image that a rim reads to that of the halo."""
        for box, target in self.pieces(vector):
            shared = intersection(box, rim.read)
            if shared is not None:
                yield bind_copy(image[slices(shared, rim.read)], target[slices(shared, box)], accumulate=True)

    def small(self, p: Pass, workspace: np.ndarray | None = None, **arrays: Any) -> Pass:
        """A pass over a rim, whose parts are not told one by one."""
        return Pass(workspace=workspace, training=p.training, stream=p.stream, run=RunState(), **arrays)

    # -- what kernels run --------------------------------------------------------------------------------------------

    def forward(self, p: Pass) -> Call:
        return sequence([self.forward_inner(p), self.forward_rims(p)])

    def backward(self, p: Pass) -> Call:
        return sequence([self.backward_rims(p), self.backward_inner(p)])

    def saves(self, *inputs: Spec) -> dict[str, Spec]:
        """Arrays that `forward_inner` leaves for `forward_rims`, where others run between."""
        return {}

    def problems(self, *inputs: Spec) -> list[tuple[Any, dict[str, str]]]:
        """The convolution of each rim, and its algorithms."""
        return []

    def workspace(self, direction: str, *inputs: Spec) -> int:
        """Of both parts of a pass."""
        raise NotImplementedError

    def forward_inner(self, p: Pass) -> Call:
        raise NotImplementedError

    def forward_rims(self, p: Pass) -> Call:
        raise NotImplementedError

    def backward_rims(self, p: Pass) -> Call:
        raise NotImplementedError

    def backward_inner(self, p: Pass) -> Call:
        raise NotImplementedError


class PoolRims(RimPasses[KernelType]):
    """Of pooling.  Places of maxima are those in their windows: backward of the own part needs no others."""

    def __init__(self, kernel: KernelType) -> None:
        super().__init__(kernel)
        plain = dataclasses.replace(self.op, halo=None)
        if hasattr(plain, "count_include_pad"):
            plain = dataclasses.replace(plain, count_include_pad=True)  # what is beyond the part is in the image
        self.inner = self.kernel_of(plain)

    def workspace(self, direction: str, *inputs: Spec) -> int:
        # places of maxima take at most four bytes, which no element of y takes less than half of
        return max(size(part.x) + 3 * size(part.y) for part in self.parts(self.op.infer(*inputs)))

    def _arrays(self, p: Pass, part: Part[KernelType]) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
        """The small images of a rim, and where its places of maxima lie."""
        assert p.workspace is not None
        image, result, rest = carved(p.workspace, part.x, part.y)
        saved = p.saved.get("argmax")
        if saved is None:
            return image, result, {}
        places = rest[: result.size * saved.itemsize].view(saved.dtype).reshape(result.shape)
        return image, result, {"argmax": places}

    def forward_inner(self, p: Pass) -> Call:
        return self.inner.forward(dataclasses.replace(p, x=p.x[:1]))

    def forward_rims(self, p: Pass) -> Call:
        calls: list[Call] = []
        for part in self.parts(spec_like(p.y[0], self.halo.image)):
            image, result, saved = self._arrays(p, part)
            calls += self.gathered(part.rim, p.x[0], p.x[1], image)
            calls.append(part.kernel.forward(self.small(p, x=[image], y=[result], saved=saved)))
            calls.append(copied(result, part.of(p.y[0])))
            calls += [copied(places, part.of(p.saved[key])) for key, places in saved.items()]
        return sequence(calls)

    def backward_rims(self, p: Pass) -> Call:
        vector = p.dx[1]
        if vector is None:
            return sequence([])
        calls = [bind_fill(vector, 0)]
        for part in self.parts(spec_like(p.dy[0], self.halo.image)):
            image, result, saved = self._arrays(p, part)
            calls.append(copied(part.of(p.dy[0]), result))
            calls += [copied(part.of(p.saved[key]), places) for key, places in saved.items()]
            calls.append(part.kernel.backward(self.small(p, dy=[result], dx=[image], saved=saved)))
            calls += self.given_back(part.rim, image, vector)
        return sequence(calls)

    def backward_inner(self, p: Pass) -> Call:
        if p.dx[0] is None:
            return sequence([])
        return self.inner.backward(dataclasses.replace(p, dx=p.dx[:1]))


def slices(box: Box, of: Box | None = None) -> tuple[slice, ...]:
    """The images of a box, in an array of the box `of`, or of one that begins at 0."""
    starts = [0] * len(box) if of is None else [start for start, _ in of]
    return (
        slice(None),
        *(slice(start - first, stop - first) for (start, stop), first in zip(box, starts, strict=True)),
    )


def copied(x: np.ndarray, y: np.ndarray) -> Call:
    """y = x."""
    return bind_copy(x, y) if x.dtype.name in ("float32", "float64", "uint16") else partial(np.copyto, y, x)


def spec_like(array: np.ndarray, image: Spec) -> Spec:
    """The spec of an array that holds what an image does."""
    return Spec(array.shape, image.dtype)


def aligned(nbytes: int) -> int:
    return -(-nbytes // _ALIGNED) * _ALIGNED


def size(spec: Spec) -> int:
    """Bytes that a dense array takes within a workspace."""
    return aligned(spec.nbytes)


def carved(workspace: np.ndarray, *specs: Spec) -> list[np.ndarray]:
    """Dense arrays, one after the other, and the bytes behind them."""
    found, at = [], 0
    for spec in specs:
        dtype = np.dtype(in_memory(spec.dtype))
        found.append(workspace[at : at + spec.nbytes].view(dtype).reshape(spec.shape))  # type: ignore[arg-type]
        at += size(spec)
    return [*found, workspace[at:]]
