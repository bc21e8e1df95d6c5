"""The table of passes: its order is checked, and a plan says what each pass did."""

from __future__ import annotations

import importlib

import pytest

from pydtconv.graph import build_plan
from pydtconv.graph.passes.graph_pass import GraphPass, check_table, run_passes
from pydtconv.graph.passes.order import PASSES, STAGES
from tests.graph.networks import NETWORKS, trace
from tests.graph.tables import without


def row(name: str, *after: str) -> GraphPass:
    return GraphPass(name, lambda graph: None, takes="nothing", leaves="all as it is", after=after)


def test_every_row_says_what_it_takes_and_leaves_in_a_line() -> None:
    check_table(PASSES)
    for each in (*PASSES, *STAGES):
        assert 0 < len(each.takes) <= 100, each.name
        assert 0 < len(each.leaves) <= 100, each.name
        assert "\n" not in each.takes + each.leaves


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_stages_are_where_the_table_says(stage) -> None:
    module, name = stage.where.split(":")
    assert callable(getattr(importlib.import_module(module), name))


def test_a_pass_before_one_that_it_needs_is_refused() -> None:
    with pytest.raises(ValueError, match="pass 'b': expected a, c before it, got d"):
        check_table([row("d"), row("b", "a", "c"), row("a")])
    with pytest.raises(ValueError, match="pass 'a': expected a name of its own"):
        check_table([row("a"), row("a")])
    graph = trace(NETWORKS["plain"](12, 3), "plain", 12, 2)
    before = list(graph.nodes)
    with pytest.raises(ValueError, match="pass 'bias': expected dead-nodes before it"):
        build_plan(graph, passes=[row("other"), row("bias", "dead-nodes")])
    assert graph.nodes == before


def test_a_table_without_the_pass_to_begin_with_is_refused() -> None:
    graph = trace(NETWORKS["plain"](12, 3), "plain", 12, 2)
    with pytest.raises(ValueError, match="passes: expected one called 'algorithms', got a, b"):
        run_passes(graph, [row("a"), row("b")], start="algorithms")


#: passes that run only where somebody asks for what they do
ASKED_FOR = {"exact-statistics", "wider-halos", "patches", "spatial", "packed-halos"}


def test_a_plan_says_what_each_pass_did() -> None:
    plan = build_plan(trace(NETWORKS["residual"](16, 4), "residual", 16, 2))
    reports = {report.name: report for report in plan.passes}
    assert list(reports) == [each.name for each in PASSES if each.name not in {*ASKED_FOR, "normalized-results"}]
    convolutions = sum(node.op.name.startswith("conv") for node in plan.graph.nodes)
    assert reports["algorithms"].changed == convolutions
    assert reports["transposes"].changed == 0
    activation = reports["activation"]
    assert activation.before - activation.after == activation.changed > 0  # each has become part of another node
    for earlier, later in zip(plan.passes, plan.passes[1:], strict=False):
        assert earlier.after == later.before
    assert plan.passes[-1].after == len(plan.graph.nodes)
    line = next(line for line in str(plan).splitlines() if "passes: " in line)
    assert str(activation) in line
    assert "transposes" not in line


def test_passes_for_training_do_not_run_in_inference() -> None:
    graph = trace(NETWORKS["residual"](16, 4), "residual", 16, 2)
    graph.training, graph.loss = False, None
    ran = {report.name for report in build_plan(graph).passes}
    conditional = {"state-copies", "pool-before-relu", "shared-moments", "kept-spectra"}
    conditional |= {"augmentations", "backward-reductions", "bypassed-normalization", *ASKED_FOR}
    assert ran == {each.name for each in PASSES} - conditional


def test_without_a_pass_its_pattern_stays() -> None:
    graph = trace(NETWORKS["plain"](12, 3), "plain", 12, 2)
    plan = build_plan(graph, passes=without("bias"))
    assert "bias" in [node.op.name for node in plan.graph.nodes]
