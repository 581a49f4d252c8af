"""`minify --predicate violation`: the program's own constraints, each violation by its number."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

pytestmark = pytest.mark.torch

torch = pytest.importorskip("torch")

from compilescope import (  # noqa: E402
    Constraint,
    UnsupportedOpsConstraint,
    mock_backend,
)
from compilescope.base.errors import ToolError  # noqa: E402
from compilescope.base.settings import fresh_environment  # noqa: E402
from compilescope.change.minify.graph.record import RECORD, UNCHECKED, FailingGraph, read_record  # noqa: E402
from compilescope.change.minify.graph.search import Search, find_record  # noqa: E402
from compilescope.change.minify.sandbox import Sandbox  # noqa: E402
from compilescope.change.minify.violations.repros import ViolationCatcher  # noqa: E402
from compilescope.record.bodies import MinifyOutcome  # noqa: E402
from compilescope.record.run import read_run  # noqa: E402


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("MOCK_STRICT", "MOCK_ALIGNMENT", "MOCK_MAX_MEMORY", "MOCK_MAX_PEAK_MEMORY"):
        monkeypatch.delenv(name, raising=False)
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


class NoWideRows(Constraint):
    """Defined by the program."""

    def __init__(self, most: int) -> None:
        self.most = most

    def check_node(self, node: Any) -> Any:
        for tensor in node.outputs:
            if node.op == "call_function" and tensor.shape[-1] > self.most:
                return self.breach(node, found="wide rows", allowed=f"at most {self.most}")
        return None


def caught(folder: Path) -> list[FailingGraph]:
    return [read_record(path.parent) for path in sorted(folder.glob(f"*/{RECORD}"))]


def kinds(folder: Path) -> list[tuple[str, str]]:
    return [(each.shown.expected[0][0], each.shown.expected[0][2]) for each in caught(folder)]


def wave(x: Any) -> Any:
    return x.sin().cos() @ x


def test_constraints_in_code_are_the_programs_own(tmp_path: Path) -> None:
    constraints = [NoWideRows(4), UnsupportedOpsConstraint(["aten.cos"])]
    compiled = torch.compile(wave, backend=mock_backend(constraints=constraints))
    with ViolationCatcher(tmp_path).catching():
        # Strict, and yet the program runs to its end.
        assert compiled(torch.ones(8, 8)).shape == (8, 8)
    assert sorted(kinds(tmp_path)) == [
        ("NoWideRows", "aten.matmul"),
        ("operators", "aten.cos.default"),
    ]
    source = caught(tmp_path)[0].setting.backend
    assert "NoWideRows(4)" in source.expression
    assert any("NoWideRows" in text for text in (*source.imports, *source.definitions))


def test_variables_and_options_count_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOCK_ALIGNMENT", "16")
    with ViolationCatcher(tmp_path / "env").catching():
        torch.compile(wave, backend=mock_backend)(torch.ones(8, 8))
    assert {rule for rule, _ in kinds(tmp_path / "env")} == {"shape"}
    torch._dynamo.reset()
    options = {"constraints": [UnsupportedOpsConstraint(["aten.sin"])], "alignment": 1}
    with ViolationCatcher(tmp_path / "options").catching():
        torch.compile(wave, backend=mock_backend, options=options)(torch.ones(8, 8))
    assert ("operators", "aten.sin.default") in kinds(tmp_path / "options")


def test_each_kind_is_caught_once_and_can_be_asked_for(tmp_path: Path) -> None:
    backend = mock_backend(constraints=[UnsupportedOpsConstraint(["aten.sin", "aten.cos"])])
    with ViolationCatcher(tmp_path).catching():
        for size in (4, 6):
            torch._dynamo.reset()
            torch.compile(wave, backend=backend, dynamic=False)(torch.ones(size, size))
    assert [op for _, op in kinds(tmp_path)] == ["aten.sin.default", "aten.cos.default"]
    with Sandbox(1) as unused:
        second = find_record(tmp_path, Search("violation", number=2), 0, unused)
        assert read_record(second).shown.expected[0][2] == "aten.cos.default"
        with pytest.raises(ToolError, match="There is no violation 3: the program shows 2"):
            find_record(tmp_path, Search("violation", number=3), 0, unused)


def test_graphs_that_are_compared_with_nothing_are_named(tmp_path: Path) -> None:
    with ViolationCatcher(tmp_path).catching():
        torch.compile(wave, backend="eager")(torch.ones(4, 4))
    assert msgspec.json.decode((tmp_path / UNCHECKED).read_bytes()) == ["eager"]
    with Sandbox(1) as unused, pytest.raises(ToolError) as error:
        find_record(tmp_path, Search("violation"), 0, unused)
    assert "graphs compiled with eager were not checked" in error.value.message
    assert "--device" in error.value.hint


# Each about 1 min.
@pytest.mark.slow
@pytest.mark.parametrize("backend", ["mock_backend", "aot_mock_backend"])
def test_the_command_says_which_one_and_how_to_get_another(tmp_path: Path, backend: str) -> None:
    (tmp_path / "train.py").write_text(
        f"""
import torch
from compilescope import Constraint, UnsupportedOpsConstraint, {backend}

class NoCosine(Constraint):
    def check_node(self, node):
        if "cos" in node.target:
            return self.breach(node, found="a cosine", allowed="no cosine")

@torch.compile(backend={backend}(constraints=[NoCosine(), UnsupportedOpsConstraint(["aten.sin"])]))
def step(x):
    return x.exp().sin().tanh().cos() + 1

with torch.no_grad():
    step(torch.ones(4))
"""
    )
    words = ["minify", "--predicate", "violation", "--violation", "2", "--json", "train.py"]
    done = subprocess.run(
        [sys.executable, "-m", "compilescope", *words],
        cwd=tmp_path,
        env=fresh_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["size"] == 1
    assert said["violation"]["number"] == 2
    run = read_run(tmp_path / ".compilescope" / said["run"])
    [(event, kept)] = run.of(MinifyOutcome)
    assert (kept.predicate, kept.size, kept.path) == ("violation", 1, str(tmp_path / "repro.py"))
    assert run.artifacts.get(kept.script) == (tmp_path / "repro.py").read_text()
    assert event.site is not None and event.site.line == said["violation"]["line"]
    (other,) = said["others"]
    assert other["command"] == ("compilescope minify --predicate violation --violation 1 train.py")
    assert {said["violation"]["rule"], other["rule"]} == {"NoCosine", "operators"}
    alone = subprocess.run(
        [sys.executable, "repro.py"], cwd=tmp_path, env=fresh_environment(), check=False
    )
    assert alone.returncode == 1
