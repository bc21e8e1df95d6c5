"""Small cases of each operator that has a kernel: what `test_registry` runs every row of the registry on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pydtconv import ops
from pydtconv.graph import Graph
from pydtconv.graph.runtime.body import Body
from pydtconv.ops.base import Op, Spec
from pydtconv.ops.body_loop import Scan, VectorProduct
from pydtconv.ops.moments import Moments
from pydtconv.ops.recurrence import BothDirections
from pydtconv.ops.separable_convolution import SeparableConv
from tests.ops.harness import away_from, normal


@dataclass
class Case:
    """An operator and its inputs.

    of_dtype: the operator for a dtype of its inputs, where it is not the same for all.
    rtol: allowed in float32, relative to the largest value.  gradient: whether it has one.  exchanger: see RunState.
    """

    op: Op
    arrays: tuple[Any, ...]
    rtol: float = 2e-5
    gradient: bool = True
    exchanger: Any = None
    of_dtype: Callable[[str], Op] | None = None

    def operator(self, dtype: str) -> Op:
        return self.op if self.of_dtype is None else self.of_dtype(dtype)


class Mirror:
    """Carries messages of two processes that hold the same: what one sends to the other comes back to it."""

    def transfer(self, sends, receives, what):
        assert [(other, buffer.shape) for other, buffer in sends] == [
            (other, buffer.shape) for other, buffer in receives
        ]
        return _Reflected(sends, receives)


class _Reflected:
    def __init__(self, sends, receives):
        self.sends, self.receives = sends, receives

    def start(self):
        self.on_the_way = [buffer.copy() for _, buffer in self.sends]
        for _, buffer in self.receives:
            buffer.fill(np.nan if buffer.dtype.kind == "f" else 0x7FC0)  # bits of bfloat16

    def wait(self):
        for (_, buffer), message in zip(self.receives, self.on_the_way, strict=True):
            buffer[...] = message


def scan(dtype: str = "float64", steps: int = 3, **options: Any) -> Scan:
    """h = tanh(x w + h), y = h x; x (2, steps, 4)."""
    graph = Graph()
    with graph:
        shapes = {"x": (2, 4), "h": (2, 3), "w": (4, 3)}
        x, h, w = (graph.input(name, Spec(shape, dtype)) for name, shape in shapes.items())
        after = ops.tanh(ops.matmul(x, w) + h)
        graph.outputs = {"h": after, "y": after * x[:, :3]}
    options = {"sequences": 1, "states": 1, "axis": 1, "needs": (True,) * 3, "training": True, **options}
    return Scan(Body(graph, 1, 1), steps, **options)


IMAGE = normal(2, 5, 6, 3)
LABELS = np.array([1, 0, 3, 2])
SCORES = normal(4, 5)
TARGETS = np.abs(normal(4, 5, seed=2)) / 10
POSITIVE = np.abs(normal(3, 4)) + 0.5
PHOTO = np.random.default_rng(4).random((3, 6, 5, 3)).astype("float32").astype("float64")
BETWEEN = (("interpolation", "bilinear"), ("fill_mode", "reflect"), ("fill_value", 0.0))
UNIT = ("value_range", (0.0, 1.0))

CASES: dict[type, list[Case]] = {}
for _case in (
    Case(ops.Activation("gelu"), (normal(3, 7),)),
    Case(ops.Bias(), (normal(3, 7), normal(7, seed=2))),
    Case(ops.Add("relu"), (normal(3, 7), away_from(normal(3, 7, seed=2), 0))),
    Case(ops.Subtract(), (normal(3, 7), normal(7, seed=2))),
    Case(ops.Multiply(), (normal(3, 7), normal(3, 1, seed=2))),
    Case(ops.Divide(), (normal(3, 4), POSITIVE)),
    Case(ops.Maximum(), (normal(3, 7), normal(3, 7, seed=2))),
    Case(ops.Minimum(), (normal(3, 7), normal(3, 7, seed=2))),
    Case(ops.Power(), (POSITIVE, normal(3, 4))),
    Case(ops.Conv(2, "same", activation="tanh"), (IMAGE, normal(3, 3, 3, 4, seed=2), normal(4, seed=3))),
    Case(ops.DepthwiseConv(), (IMAGE, normal(3, 2, 3, 2, seed=2))),
    Case(SeparableConv(1, "same"), (IMAGE, normal(3, 3, 3, 1, seed=2), normal(1, 1, 3, 4, seed=3))),
    Case(ops.ConvTranspose(2), (IMAGE, normal(3, 3, 4, 3, seed=2), normal(4, seed=3))),
    Case(ops.CrossEntropy("sparse", from_logits=True), (SCORES, LABELS)),
    Case(ops.SoftmaxCrossEntropy("sparse"), (SCORES, LABELS)),
    Case(ops.SigmoidCrossEntropy(), (SCORES, TARGETS)),
    Case(ops.ElementwiseLoss("logcosh"), (SCORES, TARGETS)),
    Case(ops.WeightedMean(), (normal(4, 3), POSITIVE[:, 0].repeat(2)[:4])),
    Case(ops.L1L2Penalty(0.1, 0.2), (away_from(normal(5, 3), 0),)),
    Case(ops.Portion(), (normal()[()],)),
    Case(ops.WeightedSum((0.5, 2.0)), (normal(), normal(seed=2))),
    Case(ops.NumpyOp(np.sin, lambda dy, x, y: dy * np.cos(x)), (normal(3, 4),)),
    Case(ops.LayerNorm(), (normal(3, 7), normal(7, seed=2), normal(7, seed=3))),
    Case(ops.Dense("tanh"), (normal(4, 6), normal(6, 5, seed=2), normal(5, seed=3))),
    Case(ops.MatMul(), (normal(2, 4, 6), normal(6, 5, seed=2))),
    Case(ops.Attention(), (normal(2, 3, 2, 4), normal(2, 5, 2, 4, seed=2), normal(2, 5, 2, 3, seed=3)), rtol=1e-4),
    Case(ops.Contract("bqhd", "bkhd", "bhqk"), (normal(2, 3, 2, 4), normal(2, 5, 2, 4, seed=2))),
    Case(ops.TakeRows(), (np.array([[0, 3], [3, 1]]), normal(4, 5))),
    Case(Moments(), (IMAGE,)),
    *(
        Case(
            ops.BatchNorm(activation=activation),
            (IMAGE, normal(3, seed=2), normal(3, seed=3), normal(3, seed=4), np.ones(3)),
            rtol=1e-4,
        )
        for activation in ("tanh", "silu", "hard_silu")
    ),
    Case(ops.MaxPool((2, 2)), (IMAGE,)),
    Case(ops.AveragePool((3, 2), (2, 2), "same"), (IMAGE,)),
    Case(ops.GlobalAveragePool(), (IMAGE,)),
    Case(ops.GlobalMaxPool(), (IMAGE,)),
    Case(ops.Dropout(0.4), (normal(4, 9),)),
    Case(ops.GaussianNoise(0.3), (normal(4, 9),), rtol=1e-4),
    Case(ops.RandomFlip(), (IMAGE,)),
    Case(ops.RandomCrop(3, 4), (IMAGE,)),
    Case(ops.Sum(1), (normal(3, 7, 2),)),
    Case(ops.Mean((0, 2)), (normal(3, 7, 2),)),
    Case(ops.Max(1), (normal(3, 7),)),
    Case(ops.Min(), (normal(3, 7),)),
    Case(ops.ArgMax(), (normal(3, 7),)),
    Case(ops.Pad(((0, 0), (1, 2)), "reflect"), (normal(3, 7),)),
    Case(ops.Upsample((2, 3), "bilinear"), (IMAGE,)),
    Case(ops.Separable((1, 2), (("resize", 3, "cubic", True), ("filter", (0.5, 1.0, 0.25)))), (IMAGE,)),
    Case(ops.Transpose((1, 0)), (normal(3, 7),)),
    Case(ops.Concatenate(0), (normal(3, 7), normal(2, 7, seed=2))),
    Case(ops.Slice((1, 0), (3, -1)), (normal(4, 7),)),
    Case(ops.Cast("float64"), (normal(3, 7),)),
    Case(ops.Softmax(), (normal(3, 7),)),
    Case(ops.LogSoftmax(0), (normal(3, 7),)),
    # windows that overlap, that divide the extent, that are fewer pixels than there are outputs
    *(
        Case(op(size), (normal(*shape),))
        for op in (ops.AdaptiveMaxPool, ops.AdaptiveAveragePool)
        for shape, size in (
            ((2, 11, 5), (4,)),
            ((2, 2, 3), (5,)),
            (IMAGE.shape, (3, 3)),
            ((1, 5, 4, 6, 2), (2, 4, 5)),
            ((1, 18, 17, 2), (1, 1)),  # places of maxima that a byte does not hold
        )
    ),
    # a process alone: all of it, a part of it, axes in between
    Case(ops.Exchange((1,), (((0, 5),),), (((0, 5),),), 0), (IMAGE,)),
    Case(ops.Exchange((1, 2), (((0, 5), (0, 6)),), (((1, 4), (2, 6)),), 0), (IMAGE,)),
    # two that read a part of their own, of which the other holds nothing; then halos of one and of two rows
    Case(ops.Exchange((1,), (((0, 2),), ((2, 7),)), (((0, 2),), ((3, 6),)), 1), (IMAGE,)),
    Case(ops.Exchange((1,), (((0, 5),), ((5, 10),)), (((0, 6),), ((4, 10),)), 0), (IMAGE,), exchanger=Mirror()),
    Case(ops.Exchange((1,), (((0, 5),), ((5, 10),)), (((1, 7),), ((3, 9),)), 1), (IMAGE,), exchanger=Mirror()),
    Case(ops.Augment("rotation", (("factor", (-0.2, 0.2)), *BETWEEN)), (PHOTO,), rtol=1e-4),
    Case(ops.Augment("contrast", (("factor", (0.5, 0.5)), UNIT), seed=5), (PHOTO,)),
    Case(ops.Augment("hue", (("factor", (0.0, 1.0)), UNIT)), (PHOTO,), rtol=1e-4),
    Case(
        ops.Augment("erasing", (("factor", (0.7, 0.7)), ("scale", (0.1, 0.4)), ("fill_value", None), UNIT)),
        (PHOTO,),
    ),
    Case(ops.Recurrence("simple", state_activation="relu"), (normal(2, 3, 4), normal(4, 4, seed=2))),
    Case(ops.Recurrence("lstm", sequences=True, backwards=True), (normal(2, 3, 16), normal(4, 16, seed=2))),
    Case(ops.Recurrence("gru", has_bias=True), (normal(2, 3, 12), normal(4, 12, seed=2), normal(12, seed=3))),
    Case(ops.Recurrence("gru_before", has_state=True), (normal(2, 3, 12), normal(4, 12, seed=2), normal(2, 4, seed=3))),
    Case(
        BothDirections(ops.Recurrence("lstm"), ops.Recurrence("lstm", backwards=True, has_mask=True)),
        (*(normal(2, 3, 16), normal(4, 16, seed=2)) * 2, np.array([[1, 1, 0], [0, 1, 1]])),
    ),
    Case(scan(), (normal(2, 3, 4), normal(2, 3, seed=2), normal(4, 3, seed=3)), of_dtype=scan),
    Case(VectorProduct(), (normal(2, 3), normal(2, 3, seed=2))),
    Case(ops.TableOp("arctan2"), (normal(3, 4), away_from(normal(4, seed=2), 0))),
    Case(ops.TableOp("cumsum", (("axis", 1), ("dtype", None))), (normal(3, 7),)),
    Case(ops.TableOp("median", (("axis", 0), ("keepdims", False))), (normal(5, 3),)),
    Case(ops.TableOp("roll", (("shift", 2), ("axis", 1))), (normal(3, 7),)),
    Case(ops.TableOp("sort", (("axis", 0),)), (normal(5, 3),)),
    Case(ops.TableOp("top_k", (("k", 2), ("sorted", True))), (normal(3, 7),)),
    Case(ops.TableOp("take", (("axis", 0),)), (normal(4, 3), np.array([3, 0, 3]))),
    Case(ops.TableOp("argsort", (("axis", -1),)), (normal(3, 7),)),
    Case(ops.TableOp("inv"), (normal(2, 3, 3) + 3 * np.eye(3),)),
    Case(ops.TableOp("solve"), (normal(3, 3) + 3 * np.eye(3), normal(3, 2, seed=2))),
    Case(ops.TableOp("slogdet"), (normal(2, 3, 3),), rtol=1e-4),
):
    CASES.setdefault(type(_case.op), []).append(_case)
