"""compilescope.capture and compilescope.explain in a Python session."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from recorder.harness import functions_of, latest_run, run_captured, show

pytest.importorskip("torch")

import torch
import torch._dynamo
import torch._inductor.output_code

import compilescope
from compilescope.record.bodies import GraphBreak

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def fresh_dynamo():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def broken_once(x):
    x = x + 1
    torch._dynamo.graph_break()
    return x * 2


def call_compiled() -> Any:
    return torch.compile(broken_once, backend="eager")(torch.ones(2))


def attributes_of_torch() -> dict[tuple[str, ...], int]:
    """The identity of everything that torch's modules and classes hold."""
    seen: dict[tuple[str, ...], int] = {}
    for module_name, module in list(sys.modules.items()):
        if not module_name.startswith("torch") or not isinstance(module, types.ModuleType):
            continue
        for name, value in list(vars(module).items()):
            # type(), not isinstance(): some of torch's objects answer that with a warning.
            if type(value) is types.FunctionType or issubclass(type(value), type):
                seen[module_name, name] = id(value)
            if issubclass(type(value), type) and value.__module__.startswith("torch"):
                for inner, attribute in list(vars(value).items()):
                    if isinstance(attribute, types.FunctionType):
                        seen[module_name, name, inner] = id(attribute)
    return seen


def test_nothing_survives_the_block() -> None:
    call_compiled()  # torch fills some of its tables at the first use.
    torch._dynamo.reset()
    before, finders, path = attributes_of_torch(), list(sys.meta_path), list(sys.path)
    with compilescope.capture(ir=True):
        call_compiled()
        during = attributes_of_torch()
    after = attributes_of_torch()
    assert any(during[key] != before[key] for key in before if key in during)
    assert {key for key in before if after.get(key) != before[key]} == set()
    assert sys.meta_path == finders
    assert sys.path == path


@pytest.mark.slow
def test_module_imported_during_the_block_is_left_clean() -> None:
    """In a cell of a notebook, test_magics.py shows it."""
    # In a process of its own: here Inductor has long been imported.
    code = """
import os, sys, types, torch, compilescope
ours = os.path.dirname(compilescope.__file__) + os.sep
finders = list(sys.meta_path)
with compilescope.capture():
    assert "torch._dynamo" not in sys.modules
    import torch._inductor.output_code
assert sys.meta_path == finders
left = set()
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
print(sorted(left))
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.stdout == "[]\n", ended.stderr


def test_nested_captures_each_see_everything_once() -> None:
    with compilescope.capture() as outer:
        call_compiled()
        torch._dynamo.reset()
        with compilescope.capture() as middle:
            call_compiled()
            torch._dynamo.reset()
            with compilescope.capture() as inner:
                call_compiled()
        torch._dynamo.reset()
        call_compiled()
    assert [run.run.count(GraphBreak) for run in (outer, middle, inner)] == [4, 2, 1]
    assert [len(run.graphs) for run in (outer, middle, inner)] == [8, 4, 2]
    assert all(run.digest.tool_faults == 0 for run in (outer, middle, inner))


def test_exception_passes_and_the_record_stays() -> None:
    before = attributes_of_torch()
    with pytest.raises(ZeroDivisionError) as caught, compilescope.capture() as run:
        call_compiled()
        1 / 0
    assert caught.value.__context__ is None
    after = attributes_of_torch()
    assert {key for key in before if after.get(key) != before[key]} == set()
    assert len(run.breaks) == 1
    assert not run.digest.live
    assert not run.digest.cut_short


def test_record_that_vanishes_hides_no_exception(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="mine"), compilescope.capture(dir=tmp_path / "runs"):
        shutil.rmtree(tmp_path / "runs")
        raise KeyError("mine")


def test_readable_while_it_goes_on(tmp_path: Path) -> None:
    for options in ({}, {"dir": tmp_path}):
        torch._dynamo.reset()
        with compilescope.capture(**options) as run:
            assert len(run.breaks) == 0
            call_compiled()
            assert len(run.breaks) == 1
            # It is not over, so nothing can be missing yet.
            assert not run.digest.cut_short
        assert not run.digest.live
        assert not run.digest.cut_short


def test_capture_on_disk_opens_from_the_command_line(tmp_path: Path) -> None:
    with compilescope.capture(dir=tmp_path) as run:
        call_compiled()
    seen = show(tmp_path)
    assert seen == json.loads(json.dumps(seen))
    assert (seen["graphs"], len(seen["sites"]), seen["cut_short"]) == (2, 1, False)
    assert seen["events"] == len(run.events)
    assert [graph.code for graph in run.graphs if graph.code]


def test_capture_inside_a_captured_program(tmp_path: Path) -> None:
    code = """
import torch, compilescope
def f(x):
    return x + 1
def g(x):
    return x * 2
# Both captures wait for Dynamo to be imported.
with compilescope.capture() as run:
    torch.compile(g, backend="eager")(torch.ones(2))
print([graph.frame.function for graph in run.graphs])
torch.compile(f, backend="eager")(torch.ones(2))
torch._dynamo.reset()
torch.compile(f, backend="eager")(torch.ones(2))
"""
    ended = run_captured(tmp_path, "-q", "-c", code)
    assert (ended.status, ended.stdout, ended.stderr) == (0, b"['g']\n", b"")
    assert [name for _, name in functions_of(latest_run(tmp_path))] == ["g", "f", "f"]


def test_explain() -> None:
    x = torch.ones(2)
    seen = compilescope.explain(broken_once)(x)
    assert torch.equal(seen.result, broken_once(x))
    assert [(site.function, site.source.strip()) for site in seen.breaks] == [
        ("broken_once", "torch._dynamo.graph_break()")
    ]
    assert len(seen.graphs) == 2
    assert "broken_once" in seen.summary()


def test_explain_passes_errors_on() -> None:
    with pytest.raises(torch._dynamo.exc.Unsupported):
        compilescope.explain(broken_once, fullgraph=True)(torch.ones(2))


def test_notebook_view_escapes_the_users_source(tmp_path: Path) -> None:
    file = tmp_path / "<script>name.py"
    file.write_text(
        "import torch\n"
        "def f(x):\n"
        "    x = x + 1\n"
        "    print('<script>alert(1)</script>', \"&\")\n"
        "    return x\n"
    )
    namespace: dict[str, Any] = {}
    exec(compile(file.read_text(), str(file), "exec"), namespace)
    with compilescope.capture() as run:
        torch.compile(namespace["f"], backend="eager")(torch.ones(2))
    html = run._repr_html_()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "<script" not in html
