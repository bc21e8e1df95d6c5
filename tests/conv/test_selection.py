"""The problem's derived sizes, and the choice of an algorithm: explicit, by variant, by ranking."""

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest

from pydtconv import config, conv, ops
from pydtconv.conv import VARIANTS, ConvProblem, algorithms, choose, explain
from pydtconv.conv.algorithms import TABLE
from pydtconv.conv.problem import DIRECTIONS

P = ConvProblem(2, 12, 11, 6, 8, (3, 3), padding="same")
DEPTHWISE = ConvProblem(2, 12, 11, 6, 12, (3, 3), groups=6)
PAPER = {
    "BASE": ("im2col", "im2col", "im2col", False),
    "RDX": ("convgemm", "im2col", "rdx", False),
    "CGT": ("convgemm", "im2col", "convgemm_trans", False),
    "CGT+PM": ("convgemm", "im2col", "convgemm_trans", True),
    "CGT+DG": ("convgemm", "deconvgemm", "convgemm_trans", False),
    "CGT+DG+PM": ("convgemm", "deconvgemm", "convgemm_trans", True),
}


@pytest.fixture(autouse=True)
def variant_in_force():
    before = config.conv_variant()
    yield
    config.set_conv_variant(before)


def test_a_former_name_warns_and_works():
    with pytest.warns(FutureWarning, match="'reindex' is called 'exchanged_strides' now"):
        assert choose(P, "backward_weights", "reindex").algorithm == "exchanged_strides"
    for given in ("reindex", {"backward_weights": "reindex"}):
        with pytest.warns(FutureWarning, match="exchanged_strides"):
            found = ops.Conv(algorithm=given).algorithm
        assert found in ("exchanged_strides", (("backward_weights", "exchanged_strides"),))


def test_derived_sizes():
    p = ConvProblem(3, 11, 10, 6, 8, kernel=(3, 2), strides=(2, 1), padding=((1, 0), (2, 1)), dilation=(2, 1), groups=2)
    assert (p.oh, p.ow) == (4, 12)
    assert (p.x_shape, p.w_shape, p.y_shape) == ((3, 11, 10, 6), (3, 2, 3, 8), (3, 4, 12, 8))
    assert p.flops == 2 * 3 * 4 * 12 * 3 * 2 * 3 * 8
    assert p == ConvProblem(3, 11, 10, 6, 8, (3, 2), (2, 1), ((1, 0), (2, 1)), (2, 1), 2)
    with pytest.raises(dataclasses.FrozenInstanceError):
        p.n = 4


@pytest.mark.parametrize(
    ("extent", "kernel", "stride", "dilation"), [(7, 3, 2, 1), (8, 3, 2, 1), (9, 5, 3, 2), (5, 1, 2, 1), (6, 2, 1, 1)]
)
def test_same_padding_is_that_of_keras(extent, kernel, stride, dilation):
    p = ConvProblem(1, extent, extent, 1, 1, kernel, stride, "same", dilation)
    assert p.oh == -(-extent // stride)
    top, bottom = p.padding[0]
    assert bottom - top in (0, 1)


@pytest.mark.parametrize("name", PAPER)
def test_variants(name):
    """The paper's table of variants."""
    config.set_conv_variant(name)
    assert tuple(choose(P, direction).algorithm for direction in DIRECTIONS) == PAPER[name][:3]
    assert VARIANTS[name].persistent is PAPER[name][3]
    assert choose(P, "forward").why == f"variant {name}"


def test_the_table_of_variants_is_that_of_the_guide():
    page = Path(__file__).parent.parent.parent / "docs" / "how" / "choice.md"
    if not page.exists():
        pytest.skip("needs the pages of a checkout")
    rows = [re.findall(r"[\w+]+(?: [a-z]+)?", line) for line in page.read_text().splitlines()]
    told = {row[0]: row[1:] for row in rows if len(row) == 5 and row[0] in VARIANTS}
    want = {
        name: [*(row.algorithm(each) or "auto" for each in DIRECTIONS), "ahead" if row.persistent else "in calls"]
        for name, row in VARIANTS.items()
    }
    assert told == want
    assert list(VARIANTS) == list(config.CONV_VARIANTS)


def test_auto_takes_the_first_of_the_ranking():
    for direction in DIRECTIONS:
        choice = choose(P, direction, variant="AUTO")
        assert choice.algorithm == algorithms(P, direction)[0]
        assert "ranking" in choice.why


def test_an_explicit_algorithm_wins():
    config.set_conv_variant("CGT")
    assert choose(P, "backward_data", "deconvgemm").algorithm == "deconvgemm"
    assert choose(P, "forward", {"forward": "im2col"}).algorithm == "im2col"
    assert choose(P, "backward_data", {"forward": "im2col"}).why == "variant CGT"
    assert choose(P, "forward", "auto").algorithm == "convgemm"


def test_a_variant_falls_back_and_says_so():
    for name in PAPER:
        for direction in DIRECTIONS:
            choice = choose(DEPTHWISE, direction, variant=name)
            assert choice.algorithm == "depthwise"
            assert f"variant {name} wants {VARIANTS[name].algorithm(direction)}, but groups == ci" in choice.why


def test_explain_names_every_algorithm():
    for p in (P, DEPTHWISE):
        for direction in DIRECTIONS:
            reasons = explain(p, direction)
            assert set(reasons) == set(TABLE)
            families = [TABLE[name].family for name in algorithms(p, direction)]
            assert sorted(name for name, reason in reasons.items() if reason is None) == sorted(families)
            assert all(reason for name, reason in reasons.items() if name not in families)
    assert explain(P, "forward")["deconvgemm"] == "deconvgemm has no forward, only backward_data"
    assert explain(P, "forward")["depthwise"] == "depthwise needs groups == ci, got groups=1 and ci=6"


def test_auto_of_the_functions_is_the_variant_in_force():
    """rdx sums in another order than convgemm_trans: the bits tell which of them ran."""
    random = np.random.default_rng(0)
    x, dy = (random.standard_normal(shape, dtype="float32") for shape in (P.x_shape, P.y_shape))
    for name in ("BASE", "RDX", "CGT"):
        config.set_conv_variant(name)
        want = conv.backward_weights(P, x, dy, algorithm=PAPER[name][2])
        assert np.array_equal(conv.backward_weights(P, x, dy), want)
