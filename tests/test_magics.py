"""`%load_ext compilescope` in a real IPython shell, and findings that draw as tables."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys

import pytest

import compilescope

SHELL = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

shell = InteractiveShell.instance(history_manager=None)
shell.user_ns["finders"] = list(sys.meta_path)
said = []
for cell in json.loads(sys.argv[1]):
    with capture_output() as output:
        result = shell.run_cell(cell, store_history=True)
    error = result.error_in_exec or result.error_before_exec
    said.append([output.stdout, type(error).__name__ if error else "", output.stderr])
names = ("captured", "mine", "table", "text", "left")
seen = {name: repr(shell.user_ns.get(name)) for name in names}
print("\\n" + json.dumps([said, seen]))
"""
DEFINITION = """%%compilescope
import torch

@torch.compile(backend="eager")
def f(x):
    print("here")
    return x + 1

f(torch.ones(3))
"""
LEFT = """
import os, sys, types, compilescope
ours = os.path.dirname(compilescope.__file__) + os.sep
left = set(sys.meta_path) - set(finders)
for name, module in list(sys.modules.items()):
    if not name.startswith("torch") or type(module) is not types.ModuleType:
        continue
    if "exec_module" in vars(getattr(module.__spec__, "loader", types)):
        left.add(("loader", name))
    for value in list(vars(module).values()):
        parts = vars(value).values() if issubclass(type(value), type) else [value]
        for part in parts:
            if type(part) is types.FunctionType and part.__code__.co_filename.startswith(ours):
                left.add((name, part.__qualname__))
"""
"""What a capture has put into torch's modules, which were imported meanwhile."""


def run_cells(*cells: str) -> tuple[list[tuple[str, str, str]], dict[str, str]]:
    done = subprocess.run(
        [sys.executable, "-c", SHELL, json.dumps(cells)],
        env={**os.environ, "NO_COLOR": "1", "IPYTHONDIR": os.devnull},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said, seen = json.loads(done.stdout.splitlines()[-1])
    return [tuple(each) for each in said], seen


@pytest.mark.torch
def test_a_cell_is_captured_and_its_places_are_those_of_the_page() -> None:
    pytest.importorskip("IPython")
    said, seen = run_cells(
        "%load_ext compilescope",
        DEFINITION,
        LEFT,
        "table = captured.breaks; text = table._repr_html_(); table",
        "%%compilescope mine --reset --explain\nf(torch.ones(5))\n1 / 0",
        "%%compilescope mine --nonsense\npass",
        "%%compilescope 'mine\npass",
        "%unload_ext compilescope",
        DEFINITION,
    )
    loaded, captured, looked, table, failed, wrong, quotes, _, unloaded = said
    assert loaded[1] == looked[1] == ""
    assert seen["left"] == "set()", "modules that were imported meanwhile are left clean"
    # The line of the magic is line 1.
    assert captured[1] == "" and "here\n" in captured[0]
    assert "cell 2, line 6 in f" in captured[0] and "ipython-input" not in captured[0]
    assert "cell 2, line 6" in table[0] and "GB0059" in table[0]
    assert "<table" in seen["text"] and "cell 2, line 6" in seen["text"]
    # Raised once, and what was seen until then is shown.
    assert failed[1] == "ZeroDivisionError" and failed[0].count("ZeroDivisionError") == 2
    assert "In[6]" not in failed[0]
    assert "cell 2, line 6" in failed[0]
    assert "1 graph breaks" in seen["captured"] and "1 graph breaks" in seen["mine"]
    assert wrong[1] == quotes[1] == "UsageError"
    assert "unrecognized arguments: --nonsense" in wrong[0] + wrong[2]
    assert unloaded[1] == "UsageError"


def test_dir_lists_what_is_public() -> None:
    assert dir(compilescope) == sorted(compilescope.__all__)
    for name in dir(compilescope):
        assert name in compilescope.__all__


def test_a_table_is_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    from compilescope.report.finding_table import FindingTable

    empty = FindingTable([], "graph breaks", "")
    assert empty == [] and repr(empty) == "[]" and "No graph breaks." in empty._repr_html_()
    assert pickle.loads(pickle.dumps(empty)) == []


def test_a_cell_that_raises_keeps_its_error_for_who_runs_notebooks() -> None:
    """nbclient makes its own error of the reply: class and message must be those of the cell."""
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    notebook = nbformat.v4.new_notebook()
    texts = ("%load_ext compilescope", "%%compilescope --quiet\nraise ValueError('my message')")
    notebook.cells = [nbformat.v4.new_code_cell(text) for text in texts]
    with pytest.raises(nbclient.exceptions.CellExecutionError) as raised:
        nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
    assert (raised.value.ename, raised.value.evalue) == ("ValueError", "my message")
    (shown,) = [each for each in notebook.cells[1].outputs if each.output_type == "error"]
    assert shown.ename == "ValueError" and "my message" in "".join(shown.traceback)
