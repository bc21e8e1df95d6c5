"""Kernels of GPUs, run as C++ on this machine, and on a GPU where there is one: they compute what the CPU's do."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from pydtconv import ops
from pydtconv.kernels import MissingKernelError, find, lookup, registry
from pydtconv.kernels.gpu import attention, table
from pydtconv.kernels.gpu.arrays import NUMBERS
from pydtconv.ops.base import outputs_of, spec_of
from tests.devices.accelerators import on_each
from tests.kernels.cases import CASES, IMAGE, LABELS, SCORES, TARGETS, Case
from tests.ops.harness import assert_close, normal
from tests.ops.runner import Options, cast, run_op

lookup.load("gpu")
ENTRIES = [entry for entry in registry.entries() if entry.device == "gpu"]
OPERATORS = list(dict.fromkeys(entry.operator for entry in ENTRIES))

PROBABILITIES = 1 / (1 + np.exp(-normal(4, 40, seed=9)))
#: a mask of attention by which a query sees nothing
SEEN = np.maximum(normal(2, 4, 3, 6, seed=4), 0)
SEEN[0, :, 1] = 0

#: further cases of operators with kernels for GPUs
MORE = {
    ops.Activation: [Case(ops.Activation(kind), (np.abs(normal(5, 7)) + 0.1,)) for kind in ops.activation.KINDS],
    ops.Add: [
        Case(ops.Add(), (normal(3, 1, 7), normal(2, 7, seed=2), normal(7, seed=3))),
        Case(ops.Add(average=True), (normal(3, 7), normal(3, 7, seed=2))),
    ],
    ops.DepthwiseConv: [Case(ops.DepthwiseConv(2, "same", moments=True), (IMAGE, normal(3, 3, 3, 2, seed=2)))],
    ops.Conv: [
        Case(ops.Conv(1, "valid"), (IMAGE, normal(1, 1, 3, 4, seed=2))),
        Case(ops.Conv((2, 1), ((1, 0), (2, 1)), (1, 2), groups=3), (IMAGE, normal(3, 2, 1, 6, seed=2))),
        Case(ops.Conv(1, "same", moments=True, activation="relu"), (IMAGE, normal(3, 3, 3, 4, seed=2))),
        Case(
            ops.Conv(1, "same", residual=True, activation="relu"),
            (IMAGE, normal(3, 3, 3, 4, seed=2), normal(4, seed=3), normal(2, 5, 6, 4, seed=4)),
        ),
        Case(ops.Conv(2), (normal(2, 9, 3), normal(4, 3, 5, seed=2))),
        Case(ops.Conv(1, "same"), (normal(1, 4, 5, 3, 2), normal(3, 3, 3, 2, 3, seed=2))),
    ],
    ops.Dense: [
        Case(ops.Dense("gelu"), (normal(2, 3, 6), normal(6, 5, seed=2), normal(5, seed=3))),
        Case(ops.Dense(residual=True), (normal(4, 6), normal(6, 5, seed=2), normal(4, 5, seed=3))),
    ],
    ops.CrossEntropy: [
        Case(ops.CrossEntropy("categorical", axis=0, label_smoothing=0.1), (np.abs(SCORES) + 0.1, TARGETS)),
        Case(ops.CrossEntropy("binary", label_smoothing=0.1), (PROBABILITIES, np.round(PROBABILITIES))),
        Case(ops.CrossEntropy("binary", from_logits=True), (normal(4, 40), PROBABILITIES)),
        Case(ops.CrossEntropy("sparse", ignore_class=0), (np.abs(normal(4, 40)) + 0.1, LABELS)),
    ],
    ops.SoftmaxCrossEntropy: [
        Case(ops.SoftmaxCrossEntropy("categorical"), (normal(4, 70), np.abs(normal(4, 70, seed=2))))
    ],
    ops.ElementwiseLoss: [
        *(
            Case(ops.ElementwiseLoss(kind), (np.abs(SCORES) + 0.1, np.abs(TARGETS) + 0.1))
            for kind in ops.elementwise_loss.KINDS
        ),
        *(Case(ops.ElementwiseLoss(kind), (SCORES, (TARGETS > 0.3) * 1.0)) for kind in ("hinge", "squared_hinge")),
        Case(ops.ElementwiseLoss("huber", delta=0.3, axis=0), (normal(40, 3, 2), normal(40, 3, 2, seed=2))),
    ],
    ops.Power: [Case(ops.Power(), (np.array([[0.0, 0.0, 2.0, 1.5]]), np.array([[2.0, 0.0, 0.0, 3.0]])))],
    ops.SigmoidCrossEntropy: [Case(ops.SigmoidCrossEntropy(label_smoothing=0.2), (normal(4, 40), PROBABILITIES))],
    ops.WeightedMean: [
        Case(ops.WeightedMean(kind), (normal(4, 3), np.abs(normal(4)))) for kind in ops.loss_sums.REDUCTIONS
    ],
    ops.BatchNorm: [
        Case(
            ops.BatchNorm(activation=kind, scale=scale, center=center, frozen=frozen),
            (normal(3, 40, 35), *(normal(35, seed=i) for i in range(scale + center + 1)), np.ones(35)),
            rtol=1e-4,
        )
        for kind, scale, center, frozen in (
            (None, False, True, False),
            ("relu", True, False, False),
            ("relu", True, True, True),
        )
    ],
    ops.MaxPool: [
        Case(ops.MaxPool((3, 3), (2, 1), "same"), (IMAGE,)),
        Case(ops.MaxPool((17, 17), (1, 1), "same"), (normal(1, 17, 18, 2),)),
    ],
    ops.AveragePool: [Case(ops.AveragePool((3, 2), (2, 2), "same", True), (IMAGE,))],
    ops.Pad: [
        Case(ops.Pad(((0, 0), (2, 1), (0, 3), (1, 1)), value=0.5), (IMAGE,)),
        Case(ops.Pad(((0, 0), (2, 1), (0, 3), (0, 0)), "symmetric"), (IMAGE,)),
    ],
    **{
        kind: [
            Case(kind(None), (normal(3, 40, 9),)),
            Case(kind((0, -1), True), (normal(3, 4, 300),)),
            Case(kind(1), (np.round(normal(4, 6, 5)),)),
            Case(kind(()), (IMAGE,)),
            Case(kind(2), (normal(2, 3, 1, 4),)),
        ]
        for kind in (ops.Sum, ops.Mean, ops.Max, ops.Min)
    },
    ops.ConvTranspose: [
        Case(ops.ConvTranspose(2, "same", activation="relu"), (IMAGE, normal(3, 2, 4, 3, seed=2), normal(4, seed=3))),
        Case(ops.ConvTranspose((2, 3), output_padding=(1, 2)), (IMAGE, normal(3, 4, 2, 3, seed=2))),
        Case(ops.ConvTranspose(1, "same", (2, 1)), (IMAGE, normal(3, 3, 2, 3, seed=2), normal(2, seed=3))),
        Case(ops.ConvTranspose(1, algorithm="fft"), (IMAGE, normal(3, 3, 2, 3, seed=2))),
        Case(ops.ConvTranspose(3), (normal(2, 5, 3), normal(2, 4, 3, seed=2))),
        Case(ops.ConvTranspose(2), (normal(1, 2, 3, 2, 2), normal(2, 3, 2, 3, 2, seed=2))),
    ],
    ops.Upsample: [
        Case(ops.Upsample((3,)), (normal(2, 4, 5),)),
        Case(ops.Upsample((2, 1)), (IMAGE,)),
        Case(ops.Upsample((2, 1, 3)), (normal(2, 2, 3, 2, 4),)),
        Case(ops.Upsample((3, 2), "bilinear"), (normal(1, 2, 1, 8),)),
    ],
    ops.Separable: [
        Case(ops.Separable((0,), (("resize", 4, "linear", True),)), (normal(9, 5),)),
        Case(ops.Separable((-1 % 3,), (("resize", 5, "lanczos3", False),)), (normal(2, 3, 8),)),
        Case(ops.Separable((1, 2, 3), (("resize", 3, "nearest", True),) * 3), (normal(2, 5, 2, 4, 3),)),
        Case(ops.Separable((2,), (("resize", 3, "cubic", True),), (7,)), (normal(2, 4, 3, 8),)),
    ],
    ops.Cast: [
        *(Case(ops.Cast("float32"), ((IMAGE * 3).astype(name),), gradient=False) for name in NUMBERS),
        *(Case(ops.Cast(name), (np.abs(IMAGE * 3),), gradient=False) for name in NUMBERS),
        Case(ops.Cast("float32"), (normal()[()],)),
    ],
    ops.RandomFlip: [Case(ops.RandomFlip(mode), (IMAGE,)) for mode in ("horizontal", "vertical")],
    ops.RandomCrop: [Case(ops.RandomCrop(5, 2, seed=3, always=True), (normal(20, 5, 6, 3),))],
    ops.MatMul: [
        Case(ops.MatMul(), (normal(*a), normal(*b, seed=2)))
        for a, b in (
            ((4, 6), (6, 5)),
            ((4, 6), (2, 6, 5)),
            ((3, 1, 4, 6), (2, 6, 5)),
            ((2, 3, 1, 6), (2, 3, 6, 1)),
            ((2, 1, 4, 3), (1, 3, 3, 2)),
        )
    ],
    ops.Contract: [
        Case(ops.Contract(a, b, c), tuple(normal(*(" bqkhde".index(n) + 1 for n in x), seed=2) for x in (a, b)))
        for a, b, c in (
            ("bhqk", "bkhd", "bqhd"),
            ("bqd", "dhe", "bqhe"),
            ("bqhe", "hed", "bqd"),
            ("qkb", "bdk", "dqb"),
            ("qbhk", "dbh", "dkq"),
            ("b", "q", "qb"),
            ("bq", "bq", ""),
        )
    ],
    ops.LayerNorm: [
        Case(ops.LayerNorm(center=False), (IMAGE, normal(3, seed=2)), rtol=1e-4),
        Case(ops.LayerNorm(scale=False), (IMAGE, normal(3, seed=2)), rtol=1e-4),
        Case(ops.LayerNorm(rms=True, scale=False, center=False), (normal(70, 33),)),
        Case(ops.LayerNorm((-2, -1)), (normal(2, 3, 5), normal(3, 5, seed=2), normal(3, 5, seed=3))),
        Case(ops.LayerNorm(center=False), (normal(2, 2051), normal(2051, seed=2)), rtol=1e-4),
    ],
    ops.Attention: [
        Case(op, (normal(2, 3, 4, 5), normal(2, 6, kv, 5, seed=2), normal(2, 6, kv, 3, seed=3), *masks), rtol=1e-4)
        for op, kv, *masks in (
            (ops.Attention(causal=True), 4),
            (ops.Attention(0.3, rate=0.4), 2, SEEN > 0),
            (ops.Attention(zero_empty=True), 1, SEEN[:, :1]),
            (ops.Attention(causal=True, rate=0.3, seed=5), 2, SEEN[:1, :, :, :1].astype("int32")),
            (ops.Attention(), 4, (SEEN[:, :1, :1] > 0).astype("int8")),
        )
    ],
    ops.TableOp: [
        *(Case(ops.TableOp(name), (np.abs(normal(3, 7)) + 0.1,)) for name in table.UNARY),
        *(Case(ops.TableOp(name), (np.round(normal(3, 7)), np.round(normal(7, seed=2)))) for name in table.COMPARISONS),
        *(Case(ops.TableOp(name), (normal(3, 1) > 0, normal(7, seed=2) > 0)) for name in table.LOGIC),
        *(Case(ops.TableOp(name), (np.array([1.0, np.nan, np.inf]),)) for name in ("isnan", "isfinite")),
        Case(ops.TableOp("logical_not"), (normal(5) > 0,)),
        Case(ops.TableOp("stop_gradient"), (normal(5),)),
        Case(ops.TableOp("where"), (normal(3, 7) > 0, normal(7, seed=2), normal(3, 7, seed=3))),
        Case(ops.TableOp("where"), (normal(3, 1) > 0, normal(3, 7, seed=2), normal()[()])),
        Case(ops.TableOp("take", (("axis", None),)), (normal(4, 3), np.array([[3, -1], [3, 11]]))),
        Case(ops.TableOp("take", (("axis", -1),)), (normal(2, 4, 3), np.array([2, 0, 2, -2], "int32"))),
        *(
            Case(
                ops.TableOp("one_hot", (("num_classes", 4), ("axis", axis), ("dtype", None), ("sparse", False))),
                (np.array([[0, 3, 5], [2, -1, 1]], "int32"),),
            )
            for axis in (-1, 0, 1)
        ),
        *(
            Case(ops.TableOp(name, tuple(static.items())), (IMAGE,))
            for name, static in (
                ("flip", {"axis": (1, 2)}),
                ("tril", {"k": -1}),
                ("repeat", {"repeats": 3, "axis": 2}),
                ("broadcast_to", {"shape": (4, *IMAGE.shape)}),
                ("unfold", {"kernel_size": 2, "dilation": 1, "padding": 1, "stride": 1}),
                ("_index", {"key": (("slice", None, None, None), ("slice", 4, None, -2))}),
            )
        ),
        Case(
            ops.TableOp("depth_to_space", (("block_size", 2), ("data_format", "channels_last"))), (normal(1, 2, 3, 8),)
        ),
    ],
    ops.TakeRows: [
        *(Case(ops.TakeRows(), (np.arange(5).astype(name) % 4, normal(4, 7))) for name in NUMBERS),
        Case(ops.TakeRows(), (np.arange(70).reshape(2, 35) * 7 % 9, normal(11, 40))),
        Case(ops.TakeRows(), (np.array([-0.9, 1.9, 3.0]), normal(4, 8))),
    ],
    ops.Dropout: [Case(ops.Dropout(0.4, (None, 1, 1, None)), (IMAGE,)), Case(ops.Dropout(0.5), (normal(7, 50),))],
}


@pytest.mark.slow
@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.__name__)
@on_each
def test_each_kernel_computes_what_that_of_the_cpu_does(operator, device):
    """In both dtypes; images as slices of channels; added to gradients that are there."""
    for case in [*CASES[operator], *MORE.get(operator, ())]:
        if operator is ops.TableOp and not table.is_there(case.op.function):
            continue
        for dtype, (sliced, accumulate) in itertools.product(("float64", "float32"), ((False, False), (True, True))):
            check(case, dtype, sliced, accumulate, device)


def check(case, dtype, sliced, accumulate, where):
    op = case.op
    arrays = [cast(np.asarray(array), "float64") for array in case.arrays]
    specs = outputs_of(op, *map(spec_of, arrays))
    needs = [
        case.gradient and array.dtype.kind == "f" and i not in (*op.nondifferentiable, *op.updates)
        for i, array in enumerate(arrays)
    ]
    dys = [normal(*spec.shape, seed=7 + i) for i, spec in enumerate(specs)]
    start = [normal(*array.shape, seed=11 + i) for i, array in enumerate(arrays)]

    def run(device, dtype):
        return run_op(op, arrays, dys, needs, Options(dtype, True, sliced, accumulate, device=device), start)

    want, got = run("cpu", "float64"), run(where, dtype)
    tolerance = 1e-10 if dtype == "float64" else case.rtol
    for name, mine, reference in (("y", got.y, want.y), ("dx", got.dx, want.dx), ("x", got.x, want.x)):
        for i, (a, b) in enumerate(zip(mine, reference, strict=True)):
            if b is not None:
                assert_close(a, b, tolerance, f"{op}, {where}, {dtype}, sliced {sliced}: {name}[{i}]")


@on_each
def test_attention_of_a_few_images_at_a_time(device, monkeypatch):
    """The scores of each are in the workspace by themselves."""
    monkeypatch.setattr(attention, "SCORES", 1)
    for case in MORE[ops.Attention]:
        check(case, "float64", False, True, device)


@on_each
def test_rows_outside_of_a_table(device):
    """Where nothing has looked at the numbers they are NaN, and get no gradient."""
    index, table, dy = np.array([1, -1, 4, 0]), normal(4, 3), normal(4, 3, seed=2)
    found = run_op(ops.TakeRows(), [index, table], [dy], [False, True], Options("float64", device=device))
    np.testing.assert_array_equal(found.y[0], [table[1], [np.nan] * 3, [np.nan] * 3, table[0]])
    np.testing.assert_array_equal(found.dx[1], [dy[3], dy[0], np.zeros(3), np.zeros(3)])


def test_an_operator_without_a_kernel_is_refused_by_name():
    message = "operator ArgMax: expected a kernel for device host and dtype float32, got kernels for"
    with pytest.raises(MissingKernelError, match=message):
        find(ops.ArgMax(), "host", "float32")
