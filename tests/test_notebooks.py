"""The notebooks of the documentation run from the first cell to the last."""

from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parent.parent / "docs" / "notebooks").glob("*.ipynb"))
pytestmark = pytest.mark.slow


@pytest.mark.mpi
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore")  # of the notebook's own machinery
def test_a_notebook_runs(path, tmp_path):
    nbformat = pytest.importorskip("nbformat", reason="needs nbformat: pip install 'pydtconv[notebooks]'")
    nbclient = pytest.importorskip("nbclient", reason="needs nbclient: pip install 'pydtconv[notebooks]'")
    pytest.importorskip("ipykernel", reason="needs ipykernel: pip install 'pydtconv[notebooks]'")
    notebook = nbformat.read(path, as_version=4)
    assert len(notebook.cells) > 5
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_outputs(path):
    nbformat = pytest.importorskip("nbformat", reason="needs nbformat: pip install 'pydtconv[notebooks]'")
    for cell in nbformat.read(path, as_version=4).cells:
        assert not cell.get("outputs"), cell["source"]
