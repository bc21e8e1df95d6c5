"""Dumps of graphs after each pass, schedule and memory."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from pydtconv import ops
from pydtconv.graph import Graph, build_plan
from pydtconv.graph.dump.layered import Drawing
from pydtconv.graph.passes.order import PASSES
from pydtconv.ops.base import Spec
from tests.disks import file_size_limit
from tests.graph.networks import NETWORKS, trace

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def dumped(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dump")
    return folder, build_plan(trace(NETWORKS["dense"](16, 4), "dense", 16, 2), dump=folder)


def boxes(path) -> list[ET.Element]:
    return ET.parse(path).getroot().findall(f"{SVG}g")


def test_every_pass_leaves_a_text_and_a_picture(dumped) -> None:
    folder, plan = dumped
    ran = {report.name for report in plan.passes}  # the others are asked for, or for another kind of step
    assert ran >= {each.name for each in PASSES} - {
        "exact-statistics",
        "normalized-results",
        "wider-halos",
        "patches",
        "spatial",
        "packed-halos",
    }
    passes = [f"{place:02}-{each.name}" for place, each in enumerate(PASSES, 1) if each.name in ran]
    names = ["00-traced", *passes]
    count = len(PASSES)
    expected = [f"{name}.{kind}" for name in names for kind in ("svg", "txt")]
    expected += [f"{count + 1}-schedule.txt", f"{count + 2}-memory.txt"]
    assert sorted(path.name for path in folder.iterdir()) == sorted(expected)
    ends = len(plan.graph.inputs) + len(plan.graph.outputs)
    for name, report in zip(names[1:], plan.passes, strict=True):
        assert len(boxes(folder / f"{name}.svg")) == report.after + ends
        marked = [box for box in boxes(folder / f"{name}.svg") if "changed" in box.find(f"{SVG}rect").get("class", "")]
        assert len(marked) == report.changed
        nodes = [line for line in (folder / f"{name}.txt").read_text().splitlines() if " = " in line]
        assert len(nodes) == report.after


def test_text_says_what_passes_have_noted(dumped) -> None:
    folder, plan = dumped
    last = (folder / f"{len(PASSES):02}-{PASSES[-1].name}.txt").read_text()
    assert last.count("backward reductions of") == len(plan.graph.fused_reductions) > 0
    assert last.count("# elided") == len(plan.graph.elided)
    assert re.search(r"conv\w*#\d+: 2x16x16x\d+.* = conv\[.*'forward', '\w+'", last)
    assert "input x: 2x16x16x3\n" in last
    assert "input y_true: 2 int32\n" in last


def test_schedule_and_memory_list_all_steps_and_storages(dumped) -> None:
    folder, plan = dumped
    schedule = (folder / f"{len(PASSES) + 1}-schedule.txt").read_text().splitlines()
    rows = [re.match(r" *\d+ (.*?) +(\S+#\d+) ", line) for line in schedule]
    assert [row.groups() for row in rows if row] == [(step.kind, step.node.name) for step in plan.steps]
    memory = (folder / f"{len(PASSES) + 2}-memory.txt").read_text().splitlines()
    assert memory[0].startswith(f"arena: {plan.arena_bytes} bytes; most in use at step {plan.peak_step()}")
    assert len(memory) == 2 + len(plan.storages)


def test_boxes_of_a_picture_do_not_overlap(dumped) -> None:
    folder, _ = dumped
    found = []
    for box in boxes(folder / "00-traced.svg"):
        rectangle = box.find(f"{SVG}rect")
        found.append([float(rectangle.get(name)) for name in ("x", "y", "width", "height")])
    for i, (x, y, width, height) in enumerate(found):
        for x2, y2, *_ in found[:i]:
            assert abs(x - x2) >= width or abs(y - y2) >= height


def test_items_lie_below_what_they_read_and_edges_go_row_by_row() -> None:
    edges = [("a", "b"), ("b", "c"), ("a", "c"), ("late", "c")]
    drawing = Drawing(["a", "late", "b", "c"], edges)
    assert [drawing.row_of[item] for item in ("a", "late", "b", "c")] == [0, 1, 1, 2]
    long = drawing.routes[edges.index(("a", "c"))]
    assert len(long) == 3
    assert drawing.centre[long[1]] != drawing.centre["b"]


def test_names_are_escaped(tmp_path) -> None:
    graph = Graph()
    with graph, graph.scope("<a&b>"):
        graph.outputs = {"<y>": ops.tanh(graph.input("x", Spec((2, 3))))}
    build_plan(graph, dump=tmp_path)
    texts = [text.text for text in ET.parse(tmp_path / "00-traced.svg").getroot().iter(f"{SVG}text")]
    assert "<a&b>" in texts
    assert "<y>" in texts


def test_files_are_whole_or_as_before_where_the_disk_is_full(tmp_path) -> None:
    build_plan(trace(NETWORKS["plain"](12, 3), "plain", 12, 2), dump=tmp_path)
    before = {path.name: path.read_text() for path in tmp_path.iterdir()}
    with file_size_limit(1000), pytest.raises(OSError, match="what was there before is untouched"):
        build_plan(trace(NETWORKS["plain"](12, 3), "plain", 12, 2), dump=tmp_path)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == before


def test_environment_names_a_folder_for_every_plan(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("PYDTCONV_DUMP", str(tmp_path / "all"))
    for loss in (True, False):
        graph = Graph(training=loss)
        with graph:
            graph.outputs = {"y": ops.sum(graph.input("x", Spec((2, 3))))}
            graph.loss = graph.outputs["y"] if loss else None
        build_plan(graph)
    assert sorted(path.name for path in (tmp_path / "all").iterdir()) == ["001-training", "002-inference"]
    assert (tmp_path / "all" / "002-inference" / "00-traced.svg").exists()


def test_a_file_in_the_place_of_the_folder_is_refused_before_anything_changes(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    graph = trace(NETWORKS["plain"](12, 3), "plain", 12, 2)
    before = list(graph.nodes)
    with pytest.raises(ValueError, match="dump: expected a folder, got the file"):
        build_plan(graph, dump=tmp_path / "file")
    assert graph.nodes == before
