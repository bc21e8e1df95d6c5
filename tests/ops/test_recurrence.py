"""Recurrent layers against a plain reference: cells, masks, directions, states, samples on several threads."""

import itertools

import numpy as np
import pytest

from pydtconv import ops
from pydtconv.ops import Recurrence
from pydtconv.ops.base import Spec
from pydtconv.ops.recurrence import GATES
from tests.ops.harness import check_op, normal
from tests.ops.runner import Options, run_op

F = {"tanh": np.tanh, "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "hard_sigmoid": lambda x: np.clip(x / 6 + 0.5, 0, 1)}


def reference(op):
    f, g = F[op.state_activation], F[op.gate_activation]

    def run(*inputs):
        given = dict(zip(op.places, inputs, strict=True))
        z, w, u = given["z"], given["w"], given["w"].shape[0]
        n, steps, _ = z.shape
        h, c = (given.get(name, np.zeros((n, u))) for name in ("h0", "c0"))
        mask, b = given.get("mask", np.ones((n, steps))) != 0, given.get("b", np.zeros(w.shape[1]))
        last, ys = np.zeros((n, u)), []
        for t in reversed(range(steps)) if op.backwards else range(steps):
            p, new_c = h @ w + b, c
            if op.cell == "simple":
                new = f(z[:, t] + p)
            elif op.cell == "lstm":
                i, forget, k, o = np.split(z[:, t] + p, 4, axis=1)
                new_c = g(forget) * c + g(i) * f(k)
                new = g(o) * f(new_c)
            else:
                (zu, zr, zk), (pu, pr, pk) = np.split(z[:, t], 3, axis=1), np.split(p, 3, axis=1)
                r = g(zr + pr)
                k = f(zk + (r * pk if op.cell == "gru" else (r * h) @ w[:, 2 * u :]))
                new = g(zu + pu) * h + (1 - g(zu + pu)) * k
            on = mask[:, t : t + 1]
            last = np.where(on, new, 0 if op.zero_output else last)
            h, c = np.where(on, new, h), np.where(on, new_c, c)
            ys.append(last)
        return (np.stack(ys, 1) if op.sequences else last, h, c)[: 1 + op.state_count]

    return run


def inputs(op, n=3, steps=4, units=5):
    width = GATES[op.cell] * units
    mask = (np.random.default_rng(3).random((n, steps)) < 0.6).astype("int32")
    mask[0, :2] = 0
    every = {
        "z": normal(n, steps, width),
        "w": normal(units, width, seed=2) / 2,
        "b": normal(width, seed=3),
        "h0": normal(n, units, seed=4),
        "c0": normal(n, units, seed=5),
        "mask": mask,
    }
    return [every[name] for name in op.places]


#: every option with every cell
OPTIONS = [
    {},
    {"sequences": True, "has_state": True},
    {"backwards": True, "sequences": True, "has_mask": True},
    {"has_state": True, "has_mask": True, "gate_activation": "hard_sigmoid"},
    {"sequences": True, "zero_output": True, "has_mask": True, "has_state": True},
]
CASES = [(cell, options) for cell, options in itertools.product(GATES, OPTIONS)]
CASES += [("gru", {**options, "has_bias": True}) for options in OPTIONS[:3]]


@pytest.mark.parametrize(("cell", "options"), CASES)
def test_recurrence(cell, options):
    op = Recurrence(cell, **options)
    check_op(op, *inputs(op), reference=reference(op), rtol=1e-4)


@pytest.mark.parametrize("cell", GATES)
def test_more_samples_than_a_piece_and_wider_than_a_tile(cell):
    op = Recurrence(cell, sequences=True)
    check_op(op, *inputs(op, n=131, steps=2, units=37), reference=reference(op), rtol=1e-4)


@pytest.mark.parametrize("cell", GATES)
def test_masked_rows_make_no_difference_to_others(cell):
    """Lengths that are sorted, and others; each sample has the bits that it has alone."""
    op = Recurrence(cell, sequences=True, has_mask=True)
    z, w, _ = inputs(op, n=9, steps=6)
    for lengths in ([6, 5, 5, 3, 3, 2, 1, 0, 0], [0, 0, 4, 1, 0, 3, 0, 0, 0]):
        mask = np.arange(6) < np.array(lengths)[:, None]
        dys = [normal(9, 6, 5), *[normal(9, 5)] * op.state_count]
        whole = run_op(op, [z, w, mask], dys, [True, True, False], Options())
        for i in range(9):
            parts = [[array[i : i + 1] for array in (z, mask)], [dy[i : i + 1] for dy in dys]]
            alone = run_op(op, [parts[0][0], w, parts[0][1]], parts[1], [True, True, False], Options())
            for a, b in zip([*whole.y, whole.dx[0]], [*alone.y, alone.dx[0]], strict=True):
                np.testing.assert_array_equal(a[i : i + 1], b)


@pytest.mark.parametrize("cell", GATES)
def test_formula_is_the_operator(cell):
    op = Recurrence(cell, has_state=True, has_mask=True, sequences=True, has_bias=cell == "gru")
    arrays = inputs(op)
    for found, expected in zip(op.formula(*arrays), op(*arrays), strict=True):
        np.testing.assert_allclose(ops.convert_to_numpy(found), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("op", "shapes", "message"),
    [
        (lambda: Recurrence("rnn"), (), r"cell: expected one of simple, lstm, gru, gru_before, got 'rnn'"),
        (lambda: Recurrence("gru", state_activation="gelu"), (), r"state_activation: expected .*, got 'gelu'"),
        (lambda: Recurrence("gru"), ((2, 3, 9),), r"gru: expected inputs z, w, got 1 inputs"),
        (lambda: Recurrence("gru"), ((2, 3, 9), (3, 12)), r"w: expected \(units, 3 \* units\), got shape \(3, 12\)"),
        (lambda: Recurrence("gru"), ((2, 3, 8), (3, 9)), r"z: expected \(n, steps, 9\) .*, got shape \(2, 3, 8\)"),
        (lambda: Recurrence("gru"), ((2, 0, 9), (3, 9)), r"z: expected \(n, steps, 9\) with one step or more"),
        (
            lambda: Recurrence("lstm", has_state=True),
            ((2, 3, 12), (3, 12), (2, 3), (2, 4)),
            r"c0: expected shape \(2, 3\), got \(2, 4\)",
        ),
        (lambda: Recurrence("simple", has_mask=True), ((2, 3, 4), (4, 4), (3, 2)), r"mask: expected shape \(2, 3\)"),
    ],
)
def test_refusals(op, shapes, message):
    with pytest.raises(ValueError, match=message):
        op().infer(*(Spec(shape) for shape in shapes))
