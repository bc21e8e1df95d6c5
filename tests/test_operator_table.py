"""Each operator has each row, or a reason; the page of them is that of the tool."""

import importlib.util
from pathlib import Path

import pytest

from pydtconv.graph.spatial.rules import RULES as MESH_RULES

TOOL = Path(__file__).parent.parent / "tools" / "operator_table.py"


@pytest.fixture(scope="module")
def tool():
    if not TOOL.exists():
        pytest.skip("needs the tools of a checkout")
    spec = importlib.util.spec_from_file_location("operator_table", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_each_operator_has_each_row_or_a_reason(tool):
    rows = list(tool.rows())
    assert len(rows) > 50
    assert not [row for row in rows if not all(row)]


def test_no_reason_stands_beside_what_is_there(tool):
    """What is written takes its reason away."""
    for op in tool.operators():
        written = {
            "gpu": tool.kernels(op, "gpu"),
            "onnx": tool.export_table.row_of(op),
            "gradient": op.__name__ in tool.GRADIENTS or op.gradient or op.formula,
        }
        own = vars(op).get("lacks", {})
        assert not [name for name in own if written[name]], op.__name__


def test_each_operator_names_a_rule_of_meshes(tool):
    assert {op.mesh for op in tool.operators()} <= set(MESH_RULES)


def test_the_page_is_what_the_tool_writes(tool):
    assert tool.PAGE.read_text() == tool.page(), "run python tools/operator_table.py --write"
