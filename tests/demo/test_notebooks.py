"""The notebooks of examples/: all cells run, and show what they promise."""

from __future__ import annotations

import os
import re
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOKS = ("graph_breaks.ipynb", "tour.ipynb")
LANGUAGE_MODEL = ("COMPILESCOPE_LLM_", "OPENAI_")


def read(name: str) -> Any:
    return nbformat.read(EXAMPLES / name, as_version=4)


def executed(name: str, monkeypatch: pytest.MonkeyPatch, folder: Path) -> dict[str, str]:
    """What each code cell printed, by the heading above it."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    # Where the notebook makes its folder. Under pytest, a child would take our test for its own.
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.delenv("PYTEST_CURRENT_TEST", raising=False)
    notebook = read(name)
    where = {"metadata": {"path": str(folder)}}
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3", resources=where).execute()
    shown: dict[str, str] = {}
    heading = ""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            found = re.search(r"^#+ (.+)", cell.source, flags=re.M)
            heading = found[1] if found else heading
        else:
            text = "".join(output.get("text", "") for output in cell.outputs)
            shown[heading] = shown.get(heading, "") + re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)
    return shown


@pytest.fixture
def no_language_model(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(LANGUAGE_MODEL):
            monkeypatch.delenv(name)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_is_kept_without_outputs(name: str) -> None:
    notebook = read(name)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code)
    assert "%pip install" in code[0].source, "the first code cell says how to install"
    assert "cuda" in code[0].source


def test_the_tour_uses_the_model_of_the_demo() -> None:
    from compilescope.apps.demo.tour import PROGRAMS

    written = [c.source for c in read("tour.ipynb").cells if c.source.startswith("%%writefile")]
    assert written == ["%%writefile model.py\n" + (PROGRAMS / "model.py").read_text().rstrip("\n")]


def test_the_key_has_one_place() -> None:
    text = "\n".join(cell.source for cell in read("graph_breaks.ipynb").cells)
    assert text.count("THE ONE PLACE FOR A KEY") == 1
    assert re.findall(r"^(\w*KEY\w*) = (.*?)  #", text, flags=re.M) == [("LLM_KEY", '""')]


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("no_language_model")
def test_graph_breaks_without_a_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shown = executed("graph_breaks.ipynb", monkeypatch, tmp_path)
    taxonomy = shown["The taxonomy"]
    assert "Branch on a tensor's value" in taxonomy and "GB0170" in taxonomy
    for part in ("A model with five graph breaks", "Your own model here"):
        assert "5 graphs, 5 graph breaks" in shown[part]
        for gb_id in ("GB0170", "GB0124", "GB0059", "GB0036", "GB0025"):
            assert gb_id in shown[part], gb_id
    assert "line 8: if x.sum() > 0:" in shown["A model with five graph breaks"]
    asked = shown["With a language model"]
    assert "nothing will be sent" in asked and "--- break 1, user message" in asked


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("no_language_model")
def test_graph_breaks_with_a_language_model(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sys.path.insert(0, str(Path(__file__).parents[1] / "explain"))
    from test_llm import Server

    with Server() as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        monkeypatch.setenv("COMPILESCOPE_LLM_MODEL", "tiny")
        monkeypatch.setenv("COMPILESCOPE_LLM_URL", server.url)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        shown = executed("graph_breaks.ipynb", monkeypatch, tmp_path)
        server.shutdown()
    asked = shown["With a language model"]
    assert "A language model will be asked." in asked and "Because of `item`." in asked
    assert len(server.requests) == 1


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_tour(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shown = executed("tour.ipynb", monkeypatch, tmp_path)
    assert "4 graphs instead of 1" in shown["Capture"]
    assert "GB0170 at line 18" in shown["Capture"] and "self.step == 0" in shown["Capture"]
    assert "torch.where" in shown["Explain"]
    assert "2 fixes verified" in shown["Fix"]
    assert "Wrote report.html" in shown["Report"]
    assert "does not support 4 operations" in shown["Hardware constraints"]
    assert "aot_joint" in shown["FX and AOT graphs"] and "gelu" in shown["FX and AOT graphs"]
    assert "wrong operation: torch._C._nn.gelu" in shown["KernelDiff"]
    assert "where the errors are" in shown["KernelDiff"] and "+----" in shown["KernelDiff"]
    assert "The bug is present" in shown["Minifier"]
    assert "FAIL: " in shown["Gate"] and "PASS: " in shown["Gate"]
    assert "GB0170" in shown["Registry"] and "4 graphs instead of 1" in shown["Logs"]
    model = shown["A transformers model"]
    assert "BertModel" in model or "is not installed" in model
