"""Contractions and einsum against NumPy's."""

import numpy as np
import pytest

from pydtconv import ops
from pydtconv.graph import Executor, Graph, Memory, Variable, build_plan
from pydtconv.ops import Contract
from tests.ops.harness import check_op, normal

EXTENTS = {"b": 2, "q": 3, "k": 4, "h": 5, "d": 6, "i": 3, "j": 2, "z": 7, "g": 2}


def array(letters, seed=1):
    return normal(*(EXTENTS[letter] for letter in letters), seed=seed)


@pytest.mark.parametrize(
    ("a", "b", "c"),
    [
        ("bqhd", "bkhd", "bhqk"),
        ("bhqk", "bkhd", "bqhd"),
        ("ij", "jz", "zi"),
        ("ij", "ij", "ij"),
        ("ij", "ij", "i"),
        ("i", "j", "ij"),
        ("ijz", "jzi", ""),
        ("bqhd", "bkgd", "bhqkg"),
    ],
)
def test_contract(a, b, c):
    check_op(Contract(a, b, c), array(a), array(b, 2), reference=lambda x, y: np.einsum(f"{a},{b}->{c}", x, y))


EQUATIONS = [
    ("bqhd,bkhd->bhqk", (2, 3, 4, 5), (2, 6, 4, 5)),
    ("abc,cde->abde", (2, 3, 4), (4, 5, 6)),
    ("abcd,cde->abe", (2, 3, 4, 5), (4, 5, 6)),
    ("ij->ji", (3, 4)),
    ("ij->", (3, 4)),
    ("ij,jk", (3, 4), (4, 5)),
    ("...ij,...jk->...ik", (2, 3, 4), (2, 4, 5)),
    ("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)),
    ("bij,bj->ib", (2, 3, 4), (2, 4)),
    ("i,i->", (4,), (4,)),
    ("ij,k->k", (3, 4), (5,)),
    ("...x,xy->...y", (2, 3, 4), (4, 5)),
    ("bi, bj -> bij", (2, 3), (2, 4)),
    ("abi,ab->iba", (2, 3, 4), (2, 3)),
    ("...a,...b->...ab", (2, 1, 3), (1, 4, 5)),
    ("ij,i->ij", (3, 4), (3,)),
    ("ii->i", (3, 3)),
    ("ii", (3, 3)),
    ("bii->bi", (2, 3, 3)),
    ("iijj->ji", (2, 2, 3, 3)),
    ("iji,jk->ik", (3, 2, 3), (2, 4)),
]


@pytest.mark.parametrize(("equation", "shapes"), [(e, s) for e, *s in EQUATIONS], ids=[e for e, *_ in EQUATIONS])
def test_einsum_and_its_gradients(equation, shapes):
    arrays = [normal(*shape, seed=seed) for seed, shape in enumerate(shapes)]
    expected = np.einsum(equation, *arrays)
    np.testing.assert_allclose(ops.einsum(equation, *arrays), expected, rtol=1e-10, atol=1e-12)
    variables = [Variable(x, dtype="float64", name=f"x{i}") for i, x in enumerate(arrays)]
    weight = normal(*expected.shape, seed=9)
    memory = Memory()
    with Graph(training=True) as graph:
        y = ops.einsum(equation, *(graph.parameter(variable) for variable in variables))
        graph.loss = ops.sum(y * weight)
    Executor(build_plan(graph), memory).run({})
    for i, variable in enumerate(variables):
        direction = normal(*shapes[i], seed=20 + i)
        moved, other = ([*arrays[:i], arrays[i] + step * direction, *arrays[i + 1 :]] for step in (1e-6, -1e-6))
        slope = ((np.einsum(equation, *moved) - np.einsum(equation, *other)) * weight).sum() / 2e-6
        gradient = memory.store.gradient_of(variable).reshape(shapes[i])
        np.testing.assert_allclose((gradient * direction).sum(), slope, rtol=1e-6, atol=1e-7)


def test_products_of_attention_need_no_copies():
    with Graph() as graph:
        q, k = (graph.parameter(Variable(normal(2, 3, 4, 5), name=name)) for name in "qk")
        ops.einsum("bqhd,bkhd->bhqk", q, k)
        w = graph.parameter(Variable(normal(4, 5, 6), name="w"))
        ops.einsum("bqhd,hde->bqe", q, w)
    assert [node.op.name for node in graph.nodes] == ["contract", "reshape", "reshape", "dense"]


@pytest.mark.parametrize(
    "shapes", [((3,), (3,)), ((2, 3), (3, 4)), ((2, 3), (5, 3, 4)), ((3,), (5, 3, 4)), ((), (2, 3))]
)
def test_dot(shapes):
    a, b = normal(*shapes[0]), normal(*shapes[1], seed=2)
    np.testing.assert_allclose(ops.dot(a, b), np.dot(a, b), rtol=1e-10)


@pytest.mark.parametrize(
    ("equation", "shapes", "message"),
    [
        ("i->ii", ((3,),), "each letter once"),
        ("ii->i", ((3, 4),), "one extent of 'i'"),
        ("ij,jk->ik", ((3, 3),), "an operand for each"),
        ("ij,jk->ik", ((3, 3), (3,)), "an operand of 2 axes for 'jk', got 1 axes"),
        ("ij->ik", ((3, 3),), "letters of the operands in the result"),
        ("ij,jk->ik", ((3, 3), (4, 3)), "j: expected one extent|expected x of shape"),
    ],
)
def test_errors(equation, shapes, message):
    with pytest.raises(ValueError, match=message):
        ops.einsum(equation, *(normal(*shape) for shape in shapes))
