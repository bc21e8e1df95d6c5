"""Attention against a plain reference: masks, causality, groups, dropout, blocks of queries and keys."""

import numpy as np
import pytest

from pydtconv import ops
from pydtconv.kernels import Pass, RunState, compute, find, scratch
from pydtconv.ops import Attention
from pydtconv.ops.base import Spec
from tests.ops.harness import check_op, normal


def reference(scale=None, causal=False, zero_empty=False):
    def attention(q, k, v, mask=None):
        groups = q.shape[2] // k.shape[2]
        k, v = np.repeat(k, groups, 2), np.repeat(v, groups, 2)
        scores = np.einsum("bqhd,bkhd->bhqk", q, k) * (1 / np.sqrt(q.shape[-1]) if scale is None else scale)
        allowed = np.ones(scores.shape, bool)
        if causal:
            allowed &= np.tril(np.ones(scores.shape[-2:], bool))
        if mask is not None:
            allowed &= mask != 0
        empty = ~allowed.any(-1, keepdims=True)
        scores = np.where(empty, 0, np.where(allowed, scores, -np.inf))
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        return np.einsum("bhqk,bkhd->bqhd", np.where(empty & zero_empty, 0, weights), v)

    return attention


def inputs(n, tq, tk, heads, kv_heads, d, dv):
    return [normal(n, tq, heads, d), normal(n, tk, kv_heads, d, seed=2), normal(n, tk, kv_heads, dv, seed=3)]


def mask_of(*shape):
    return np.random.default_rng(0).random(shape) < 0.6


CASES = [
    ((2, 5, 7, 3, 3, 4, 6), {}),
    ((1, 5, 7, 4, 2, 4, 4), {"causal": True}),
    ((1, 9, 7, 2, 1, 3, 5), {"causal": True, "scale": 0.3}),
    ((1, 1, 1, 1, 1, 1, 1), {}),
]
#: more keys than are packed at a time, more queries than are taken at a time, on one head and on several
LARGE = [
    ((1, 70, 300, 1, 1, 16, 24), {}),
    ((1, 70, 300, 2, 1, 16, 24), {"causal": True}),
    ((1, 300, 290, 1, 1, 8, 8), {"causal": True}),
    ((3, 600, 65, 2, 2, 64, 64), {}),
]


@pytest.mark.parametrize(
    ("sizes", "options"), [*CASES, *(pytest.param(*case, marks=pytest.mark.slow) for case in LARGE)]
)
def test_attention(sizes, options):
    check_op(Attention(**options), *inputs(*sizes), reference=reference(**options), rtol=1e-4)


@pytest.mark.parametrize("zero_empty", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", ["bool", "float64"])
def test_masks_and_queries_that_may_attend_to_nothing(dtype, causal, zero_empty):
    mask = mask_of(2, 1, 5, 7)
    mask[0, 0, 2] = False
    options = {"causal": causal, "zero_empty": zero_empty}
    op = Attention(**options)
    check_op(op, *inputs(2, 5, 7, 2, 2, 4, 4), mask.astype(dtype), reference=reference(**options), rtol=1e-4)


@pytest.mark.slow
def test_mask_of_heads_and_keys_over_several_blocks():
    check_op(Attention(), *inputs(1, 130, 300, 2, 2, 8, 8), mask_of(1, 2, 1, 300), reference=reference(), rtol=1e-4)


@pytest.mark.parametrize(
    "sizes", [(2, 5, 7, 2, 2, 4, 4), pytest.param((1, 70, 300, 1, 1, 16, 24), marks=pytest.mark.slow)]
)
def test_dropout_is_the_same_in_backward_and_on_any_number_of_threads(sizes):
    check_op(Attention(rate=0.3), *inputs(*sizes), rtol=1e-4)


def test_dropout_follows_the_place_in_the_global_batch():
    q, k, v = inputs(4, 6, 9, 2, 2, 5, 5)
    op = Attention(rate=0.5, seed=3)

    def run(part, offset):
        arrays = [x[part] for x in (q, k, v)]
        specs = [Spec(x.shape, "float64") for x in arrays]
        kernel, y = find(op, "cpu", "float64"), np.empty_like(arrays[0])
        saved = {"sums": np.empty((len(y), 2, 6))}
        workspace = scratch(kernel.workspace("forward", *specs))
        state = RunState(step=2, sample_offset=offset)
        kernel.forward(Pass(x=arrays, y=[y], saved=saved, workspace=workspace, training=True, run=state, stream=1))()
        return y

    whole = run(slice(0, 4), 0)
    np.testing.assert_array_equal(np.concatenate([run(slice(0, 1), 0), run(slice(1, 4), 1)]), whole)
    assert not np.allclose(whole, compute(Attention(), q, k, v))


def test_dropout_keeps_the_mean():
    q, k, v = (np.zeros((1, 400, 1, 4)), np.zeros((1, 300, 1, 4)), np.ones((1, 300, 1, 1)))
    y = compute(Attention(rate=0.4, seed=1, always=True), q, k, v)
    assert 0.02 < y.std() < 0.08
    np.testing.assert_allclose(y.mean(), 1, atol=0.01)


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_scores_of_long_sequences_are_never_all_in_memory(direction):
    specs = [Spec((1, 8192, 1, 64))] * 3
    workspace = find(Attention(), "cpu", "float32").workspace(direction, *specs)
    assert workspace < 8192 * 8192 * 4 / 16


def test_scores_that_are_large_or_not_numbers():
    q, k, v = inputs(1, 3, 4, 1, 1, 2, 2)
    y = compute(Attention(scale=1e4), *(x.astype("float32") for x in (q, k, v)))
    np.testing.assert_allclose(y, reference(1e4)(q, k, v), rtol=1e-4)
    q[0, 1] = np.nan
    y = compute(Attention(), q, k, v)
    assert np.isnan(y[0, 1]).all()
    assert np.isfinite(y[0, [0, 2]]).all()


@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"mask": mask_of(2, 1, 5, 7)}])
def test_function_with_and_without_the_matrix_of_scores(options):
    q, k, v = inputs(2, 5, 7, 4, 2, 8, 3)
    expected = ops.dot_product_attention(q, k, v, flash_attention=False, **options)
    np.testing.assert_allclose(ops.dot_product_attention(q, k, v, **options), expected, rtol=1e-9)


def test_function_with_a_bias():
    q, k, v = inputs(2, 5, 7, 2, 2, 8, 3)
    bias = np.where(mask_of(1, 2, 5, 7), 0, -1e9)
    expected = reference()(q, k, v, bias == 0)
    np.testing.assert_allclose(ops.dot_product_attention(q, k, v, bias=bias), expected, rtol=1e-9)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("flash", [None, False])
def test_function_with_a_bias_a_mask_and_causal(causal, biased, flash):
    q, k, v = inputs(2, 5, 7, 2, 2, 8, 3)
    mask = mask_of(2, 1, 5, 7)
    mask[0, 0, :2, :3] = False  # of these queries, causal ones attend to no key
    scores = np.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(8)
    bias = normal(2, 2, 5, 7) if biased else None
    allowed = np.logical_and(mask, np.tri(5, 7)) if causal else mask
    scores = np.where(allowed, scores + (bias if biased else 0), -1e30)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = np.einsum("bhqk,bkhd->bqhd", weights / weights.sum(-1, keepdims=True), v)
    found = ops.dot_product_attention(q, k, v, bias, mask, is_causal=causal, flash_attention=flash)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Attention()(normal(2, 3, 4), *inputs(2, 3, 3, 2, 2, 4, 4)[1:]), r"q: expected \(n, tokens, heads"),
        (lambda: Attention()(*inputs(2, 5, 7, 3, 2, 4, 4)), "heads of k and v that divide 3, got 2"),
        (
            lambda: Attention()(*inputs(2, 5, 7, 2, 2, 4, 4), mask_of(2, 2, 5, 6)),
            r"mask: expected shape \(2, 2, 5, 7\)",
        ),
        (lambda: Attention()(normal(2, 5, 2, 4), normal(2, 7, 2, 3), normal(2, 7, 2, 3)), "that fit q of shape"),
        (lambda: Attention(rate=1.0), "rate: expected a number from 0 to below 1"),
        (
            lambda: ops.dot_product_attention(*inputs(2, 5, 7, 2, 2, 4, 4), attn_logits_soft_cap=2.0),
            "attn_logits_soft_cap: expected None",
        ),
    ],
)
def test_errors(make, message):
    with pytest.raises(ValueError, match=message):
        make()
