"""The page on writing a pass is true: its code runs, and its table is that of the package."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pydtconv import ops
from pydtconv.graph import Graph, build_plan
from pydtconv.graph.passes.order import PASSES, STAGES
from pydtconv.ops.base import Spec

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "guides" / "writing-a-pass.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.S)


@pytest.fixture(scope="module")
def names() -> dict[str, object]:
    """What the code of the page defines."""
    found: dict[str, object] = {}
    exec("\n".join(BLOCKS), found)
    return found


def reshaped(shared: bool = False) -> Graph:
    graph = Graph()
    with graph:
        x = graph.input("x", Spec((8, 4, 4, 3)))
        between = ops.reshape(ops.reshape(x, (8, 16, 3)), (8, 4, 12))
        graph.outputs = {"y": ops.reshape(between, (8, 48))} | ({"between": between} if shared else {})
    return graph


def test_the_example_joins_reshapes(names) -> None:
    assert len(build_plan(reshaped()).graph.nodes) == 3
    plan = build_plan(reshaped(), passes=names["table"])
    assert [node.op.name for node in plan.graph.nodes] == ["reshape"]
    assert plan.graph.nodes[0].inputs == (plan.graph.inputs["x"],)
    (report,) = (report for report in plan.passes if report.name == "reshapes")
    assert (report.before, report.after, report.changed) == (3, 1, 1)


def test_the_example_keeps_what_is_a_result(names) -> None:
    plan = build_plan(reshaped(shared=True), passes=names["table"])
    assert [node.outputs[0].shape for node in plan.graph.nodes] == [(8, 4, 12), (8, 48)]
    assert all(node.inputs == (plan.graph.inputs["x"],) for node in plan.graph.nodes)


def test_the_table_of_the_package_is_as_it_was(names) -> None:
    assert "reshapes" not in [each.name for each in PASSES]
    assert len(names["table"]) == len(PASSES) + 1


def test_passes_are_those_of_the_table() -> None:
    rows = []
    for each in PASSES:
        after = ", ".join(f"`{name}`" for name in each.after) or "-"
        rows.append(f"| `{each.name}` | {each.when.words} | {after} | {each.leaves} |")
    table = PAGE.split("<!-- the table of passes -->")[1].split("<!-- end -->")[0]
    assert table.split("| --- | --- | --- | --- |")[1].split("\n")[1:-1] == rows


def test_files_and_stages_that_are_named_exist() -> None:
    for name in re.findall(r"`((?:graph|passes|tests|pydtconv)/[\w./]+)`", PAGE):
        places = (ROOT / name, ROOT / "pydtconv" / name, ROOT / "pydtconv" / "graph" / name)
        assert any(place.exists() for place in places), name
    for stage in STAGES:
        assert f"| {stage.name.replace('-', ' ')} |" in PAGE
