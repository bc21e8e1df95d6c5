"""A small case of each operator that has a kernel: what `test_registry` runs every row of the registry on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pydtconv import ops
from pydtconv.ops.base import Op
from pydtconv.ops.moments import Moments
from tests.ops.harness import away_from, normal


@dataclass
class Case:
    """An operator and its inputs.  rtol: allowed in float32, relative to the largest value."""

    op: Op
    arrays: tuple[Any, ...]
    rtol: float = 2e-5


IMAGE = normal(2, 5, 6, 3)
LABELS = np.array([1, 0, 3, 2])
SCORES = normal(4, 5)
TARGETS = np.abs(normal(4, 5, seed=2)) / 10
POSITIVE = np.abs(normal(3, 4)) + 0.5

CASES: dict[type, Case] = {
    type(case.op): case
    for case in (
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
        Case(Moments(), (IMAGE,)),
        Case(
            ops.BatchNorm(activation="tanh"),
            (IMAGE, normal(3, seed=2), normal(3, seed=3), normal(3, seed=4), np.ones(3)),
            rtol=1e-4,
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
        Case(ops.Transpose((1, 0)), (normal(3, 7),)),
        Case(ops.Concatenate(0), (normal(3, 7), normal(2, 7, seed=2))),
        Case(ops.Slice((1, 0), (3, -1)), (normal(4, 7),)),
        Case(ops.Cast("float64"), (normal(3, 7),)),
        Case(ops.Softmax(), (normal(3, 7),)),
        Case(ops.LogSoftmax(0), (normal(3, 7),)),
    )
}
