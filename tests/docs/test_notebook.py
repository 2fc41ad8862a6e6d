"""docs/tutorials/compare-schedulers.ipynb has the code of its page, which tests/docs/test_examples.py runs."""

import json
import re
from pathlib import Path

import pytest
from tests.conftest import load_program

TUTORIALS = Path(__file__).resolve().parent.parent.parent / "docs" / "tutorials"
PAGE = TUTORIALS / "compare-schedulers.md"
NOTEBOOK = TUTORIALS / "compare-schedulers.ipynb"


def test_the_notebook_is_made_from_its_page():
    """If this fails, run `python docs/make_notebook.py > docs/tutorials/compare-schedulers.ipynb`."""
    made = load_program("docs/make_notebook.py").notebook(PAGE.read_text(encoding="utf-8"))

    assert json.loads(NOTEBOOK.read_text(encoding="utf-8")) == made


def test_the_notebook_has_all_code_of_the_page():
    """Each Python block is a cell, in order; the block of a file writes the file."""
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]

    assert [text.removeprefix("%%writefile predicting.py\n").strip() for text in code] == [
        one.strip() for one in blocks
    ]
    assert sum(text.startswith("%%writefile") for text in code) == 1


def test_the_notebook_has_the_form_that_jupyter_reads():
    """Version 4.5 of the format: each cell has a unique id, metadata and its source; code has no outputs."""
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))

    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    for cell in notebook["cells"]:
        wanted = {"cell_type", "id", "metadata", "source"}
        wanted |= {"execution_count", "outputs"} if cell["cell_type"] == "code" else set()
        assert set(cell) == wanted


@pytest.mark.slow
def test_the_notebook_runs_in_a_kernel(tmp_path, monkeypatch):
    """A kernel of Jupyter runs all cells; they print what the page says, and write and show the figures."""
    wanted = "pip install nbclient ipykernel"
    nbclient = pytest.importorskip("nbclient", reason=wanted)
    pytest.importorskip("ipykernel", reason=wanted)
    nbformat = pytest.importorskip("nbformat", reason=wanted)
    for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    work = tmp_path / "work"
    work.mkdir()
    notebook = nbformat.reads(NOTEBOOK.read_text(encoding="utf-8"), as_version=4)
    resources = {"metadata": {"path": str(work)}}
    nbclient.NotebookClient(notebook, timeout=None, kernel_name="python3", resources=resources).execute()

    outputs = [one for cell in notebook.cells if cell.cell_type == "code" for one in cell.outputs]
    said = [one.text for one in outputs if one.output_type == "stream" and one.name == "stdout"]
    page = re.findall(
        r"^<!-- output -->\n```text\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    assert [text for text in said if not text.startswith("Writing ")] == page
    assert (work / "waits.pdf").stat().st_size > 1000
    assert (work / "slowdown.pdf").stat().st_size > 1000
    assert any("image/svg+xml" in one.get("data", {}) for one in outputs)
    assert not [one for one in outputs if one.output_type == "stream" and "rror" in one.text]
