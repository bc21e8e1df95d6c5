"""Boxes of a tensor between processes: sent, received; what this process holds itself is copied.

Messages go from and to where boxes lie, if these consist of long rows; others are packed and unpacked.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from pydtconv.dtypes import BFLOAT16
from pydtconv.kernels.base import Call, Kernel, Pass, nothing, sequence
from pydtconv.kernels.cpu.rows import spec_of
from pydtconv.kernels.cpu.shape import bind_fill
from pydtconv.kernels.cpu.strided import bind_copy
from pydtconv.kernels.registry import ANY, register
from pydtconv.ops.base import Spec
from pydtconv.ops.exchange import Exchange, Transfer
from pydtconv.ops.halo import packed
from pydtconv.ops.layout import Box, intersection, pieces

#: bytes to which buffers are aligned
_ALIGNED = 64
#: bytes of the rows of a box from which on they are sent from where they lie
_LONG = 4096

Pieces = list[tuple[int, Box]]
Halves = tuple[Call, Call]


@register(Exchange, dtypes=(*ANY, BFLOAT16))
class ExchangeKernel(Kernel[Exchange]):
    """While messages travel, what this process holds itself is copied."""

    def __init__(self, op: Exchange) -> None:
        super().__init__(op)
        self.receives = op.received
        self.sends = [
            (other, box)
            for other in range(len(op.held))
            if other != op.index and intersection(op.need[other], op.held[op.index]) is not None
            for source, box in pieces(op.need[other], op.held, other)
            if source == op.index
        ]

    @property
    def sent(self) -> int:
        """Processes that something is sent to."""
        return len({other for other, _ in self.sends})

    def sent_bytes(self, x: Spec) -> int:
        """Bytes that forward sends."""
        return sum(self._size(box, x) for _, box in self.sends)

    def workspace(self, direction: str, *inputs: Spec) -> int:
        boxes = [*self.sends, *((other, box) for other, box in self.receives if other != self.op.index)]
        return sum(-(-self._size(box, inputs[0]) // _ALIGNED) * _ALIGNED for _, box in boxes)

    def _size(self, box: Box, x: Spec) -> int:
        return Spec(self.op.shape_of(box, x), x.dtype).nbytes

    def _part(self, array: np.ndarray, box: Box, whole: Box) -> np.ndarray:
        """The elements of a box in the array of another one that holds it."""
        where: list[slice] = [slice(None)] * array.ndim
        for axis, (start, stop), (first, _) in zip(self.op.axes, box, whole, strict=True):
            where[axis] = slice(start - first, stop - first)
        return array[tuple(where)]

    def forward(self, p: Pass) -> Call:
        return sequence(self.forward_halves(p))

    def backward(self, p: Pass) -> Call:
        return sequence(self.backward_halves(p))

    def forward_halves(self, p: Pass) -> Halves:
        """What begins the exchange and puts what this process holds itself into y, and what waits for the rest."""
        x, y = p.x[0], p.y[0]
        held, need = self.op.held[self.op.index], self.op.need[self.op.index]
        others = [(other, box) for other, box in self.receives if other != self.op.index]
        own = [box for other, box in self.receives if other == self.op.index]
        sent = [self._part(x, box, held) for _, box in self.sends]
        if self.op.packed:
            received = packed(y, [self.op.shape_of(box, spec_of(x)) for _, box in others])
            return self._bind(p, self.sends, sent, others, received, nothing, add=False)
        received = [self._part(y, box, need) for _, box in others]
        copy = sequence([_copy(self._part(x, box, held), self._part(y, box, need)) for box in own])
        return self._bind(p, self.sends, sent, others, received, copy, add=False)

    def backward_halves(self, p: Pass) -> Halves:
        """What begins the exchange of gradients, and what waits for those that are added to dx."""
        dy, dx = p.dy[0], p.dx[0]
        if dx is None:
            return nothing, nothing
        held, need = self.op.held[self.op.index], self.op.need[self.op.index]
        others = [(other, box) for other, box in self.receives if other != self.op.index]
        own = [box for other, box in self.receives if other == self.op.index]
        received = [self._part(dx, box, held) for _, box in self.sends]
        if self.op.packed:
            sent = packed(dy, [self.op.shape_of(box, spec_of(dx)) for _, box in others])
            return self._bind(
                p, others, sent, self.sends, received, nothing if p.adds(0) else bind_fill(dx, 0), add=True
            )
        sent = [self._part(dy, box, need) for _, box in others]
        calls = [] if p.adds(0) or own == [held] else [bind_fill(dx, 0)]
        copies = []
        for box in own:
            source, target = self._part(dy, box, need), self._part(dx, box, held)
            adds = p.adds(0) or own != [held]
            copies.append(bind_copy(source, target, accumulate=True) if adds else _copy(source, target))
        return self._bind(p, others, sent, self.sends, received, sequence([*calls, *copies]), add=True)

    def _bind(
        self,
        p: Pass,
        sends: Pieces,
        sent: Sequence[np.ndarray],
        receives: Pieces,
        received: Sequence[np.ndarray],
        meanwhile: Call,
        add: bool,
    ) -> Halves:
        """What packs, sends and does something meanwhile, and what waits and unpacks what has come (or adds it)."""
        if not sends and not receives:
            return meanwhile, nothing
        assert p.workspace is not None
        buffers = _buffers(p.workspace, [*sent, *received])
        outgoing = [part if _is_sent_there(part) else buffer for part, buffer in zip(sent, buffers, strict=False)]
        incoming = [
            part if not add and _is_sent_there(part) else buffer
            for part, buffer in zip(received, buffers[len(sent) :], strict=True)
        ]
        pack = sequence([_copy(part, buffer) for part, buffer in zip(sent, outgoing, strict=True)])
        unpack = sequence(
            [
                bind_copy(buffer, part, accumulate=True) if add else _copy(buffer, part)
                for buffer, part in zip(incoming, received, strict=True)
            ]
        )
        messages = (
            [(other, buffer) for (other, _), buffer in zip(sends, outgoing, strict=True)],
            [(other, buffer) for (other, _), buffer in zip(receives, incoming, strict=True)],
        )
        what = f"{self.op.name} of {'the gradient of ' if add else ''}{self.op.producer}"
        exchanging = _Exchanging(p.run, messages, what, pack, meanwhile, unpack)
        return exchanging.start, exchanging.wait


class _Exchanging:
    """A bound exchange; its transfer is made when there is somebody who carries it."""

    def __init__(self, run: Any, messages: Any, what: str, pack: Call, meanwhile: Call, unpack: Call) -> None:
        self.run = run
        self.messages = messages
        self.what = what
        self.pack, self.meanwhile, self.unpack = pack, meanwhile, unpack
        self._exchanger: Any = None
        self._transfer: Transfer | None = None
        self._under_way = False

    def start(self) -> None:
        exchanger = self.run.exchanger
        if exchanger is None:
            raise RuntimeError(f"{self.what}: expected an active distribution that carries it, got none")
        if exchanger is not self._exchanger:
            self._exchanger, self._transfer = exchanger, exchanger.transfer(*self.messages, self.what)
        assert self._transfer is not None
        self.pack()
        self._transfer.start()
        self._under_way = True
        self.meanwhile()

    def wait(self) -> None:
        """Returns at once where nothing has begun."""
        if self._under_way:
            assert self._transfer is not None
            self._under_way = False
            self._transfer.wait()
            self.unpack()


def _is_sent_there(part: np.ndarray) -> bool:
    """Whether a message goes from, or to, where a box lies: in one piece, or in long rows."""
    run = part.itemsize
    for extent, stride in zip(reversed(part.shape), reversed(part.strides), strict=True):
        if extent != 1 and stride != run:
            return run >= _LONG
        run *= extent
    return True


def _copy(x: np.ndarray, y: np.ndarray) -> Call:
    if x.ctypes.data == y.ctypes.data:  # it lies there already
        return nothing
    if x.dtype.name in ("float32", "float64", "uint16"):
        return bind_copy(x, y)
    return partial(np.copyto, y, x)


def _buffers(workspace: np.ndarray, parts: Sequence[np.ndarray]) -> list[np.ndarray]:
    """A dense array for each part, one after the other."""
    found, at = [], 0
    for part in parts:
        found.append(workspace[at : at + part.nbytes].view(part.dtype).reshape(part.shape))
        at += -(-part.nbytes // _ALIGNED) * _ALIGNED
    return found
