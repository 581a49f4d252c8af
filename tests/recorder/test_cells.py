"""Code of notebook cells is named by the cell's number, in a real kernel's own shell."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from builders import ROOT, frame
from compilescope.instrument.recorder.recorder import cell_names, text_with_cells, with_cells
from compilescope.record.bodies import GraphBreak
from compilescope.record.stack import CodeRef, cell_of, origin_of
from compilescope.report.places import place, shown_path

CELLS = (
    "import torch, compilescope",
    """
def scale(x):
    if x.mean() > 0:
        x = x * 2
    return x + 1
""".strip(),
    """
with compilescope.capture() as seen:
    torch.compile(scale, backend="eager")(torch.ones(4))
""".strip(),
)


def test_a_place_in_a_cell_names_the_cell() -> None:
    name = "<ipython-input-3-2727479868>"
    assert place(name, 2, "/anything") == "cell 3, line 2"
    assert shown_path(name, "") == "cell 3"
    assert cell_of(name) == 3 and origin_of(name) == "user"
    assert cell_of("<ipython-input-0-abc>") is None and cell_of("model.py") is None


def test_every_name_of_a_cell_is_replaced() -> None:
    names = {f"{ROOT}/model.py": "<ipython-input-3-model>"}
    body = GraphBreak(gb_type="t", explanation="no cell", frame=CodeRef(*names, 1, "f"))
    assert with_cells(body, names).frame == CodeRef("<ipython-input-3-model>", 1, "f")
    assert with_cells((frame(),), names)[0].file == "<ipython-input-3-model>"
    assert with_cells(body, {}) is body and with_cells(body, {"other": "x"}) is body
    assert text_with_cells(f"# File: {ROOT}/model.py:3 in f", names).startswith("# File: <ipython")


def test_outside_of_ipython_there_are_no_cells() -> None:
    if "IPython" not in sys.modules:
        assert cell_names() == {}


@pytest.fixture
def shell() -> Iterator[Any]:
    """A shell that compiles cells as a kernel does, in this process."""
    interactive = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell
    compiler = pytest.importorskip("ipykernel.compiler").XCachingCompiler

    class KernelsShell(interactive):  # type: ignore[misc, valid-type]
        compiler_class = compiler

    made = KernelsShell.instance(history_manager=None)
    yield made
    made.user_ns["torch"].compiler.reset()  # What it compiled refers to the shell's own module.
    made.restore_sys_module_state()
    KernelsShell.clear_instance()


@pytest.mark.slow
@pytest.mark.torch
def test_a_capture_in_a_kernel_names_cells(shell: Any) -> None:
    import torch

    torch.compiler.reset()
    for cell in CELLS:
        shell.run_cell(cell, store_history=True).raise_error()
    seen = shell.user_ns["seen"]
    (site,) = seen.breaks
    assert place(site.file, site.line, "") == "cell 2, line 2"
    assert seen.run.source_of(site.file).rstrip() == CELLS[1]
    assert site.source == "    if x.mean() > 0:"
    files = {code.frame.file for code in seen.graphs} | {
        node.frame.file for code in seen.graphs for node in code.graph.nodes if node.frame
    }
    assert {cell_of(file) for file in files} == {2}
    assert all("ipykernel_" not in code.code for code in seen.graphs)
    text = seen.summary()
    assert "cell 2, line 2" in text and "ipython-input" not in text
    assert "cell 2, line 2" in seen._repr_html_()
