"""The page of what Keras has and pydtconv does not is up to date, and each name on it stands under a reason."""

import importlib.util
from pathlib import Path

import pytest

from tests.real_keras import import_keras

TOOL = Path(__file__).parent.parent / "tools" / "keras_coverage.py"


@pytest.mark.filterwarnings("ignore")
def test_the_page_is_what_the_tool_writes():
    import_keras()
    if not TOOL.exists():
        pytest.skip("needs the tools of a checkout")
    spec = importlib.util.spec_from_file_location("keras_coverage", TOOL)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert tool.unexplained({"keras.layers": ["Dense", "TFSMLayer"]}) == ["keras.layers.Dense"]
    assert tool.page() == tool.PAGE.read_text()
