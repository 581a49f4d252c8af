"""`compilescope analyze` on a run made by hand and on a real one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from compilescope.apps.cli.commands.analyze import COMMAND
from compilescope.knowledge.analysis.guarded_graphs import (
    ExtraGuards,
    GuardDifference,
    GuardedGraph,
    guard_groups,
)
from compilescope.record.artifacts import DiskArtifacts
from compilescope.record.bodies import CompileTime, GraphBreak, GraphCaptured, Guard, GuardSet
from compilescope.record.event import Event, encode
from compilescope.record.header import RunHeader
from compilescope.record.home import create_run
from compilescope.record.stack import CodeRef, Frame

FORWARD = CodeRef("/project/model.py", 4, "forward")


def guard(kind: str, line: int | None, source: str = "L['x']") -> Guard:
    frames = (
        () if line is None else (Frame("/project/model.py", line, "forward", source="  y = x"),)
    )
    return Guard(source, kind, (f"check {kind}",), frames)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A run of two cache entries; torch measured the second one's guards."""
    folder = create_run(tmp_path, RunHeader(run="abc123-model", tool="0", root="/project"))
    artifacts = DiskArtifacts(folder / "artifacts")
    few = [guard("TENSOR_MATCH", 5)]
    many = [guard("TENSOR_MATCH", 8), guard("TYPE_MATCH", 8), guard("TYPE_MATCH", 9)]
    many.append(guard("GLOBAL_STATE", None, ""))
    bodies: list[tuple[Any, str]] = []
    for compile_id, guards in (("0/0", few), ("1/0", many)):
        name = artifacts.put(msgspec.json.encode(guards).decode(), "guards")
        kinds: dict[str, int] = {}
        for one in guards:
            kinds[one.kind] = kinds.get(one.kind, 0) + 1
        bodies += [
            (GraphCaptured(stage="dynamo", ops=7, frame=FORWARD, backend="eager"), compile_id),
            (GuardSet(len(guards), kinds, name, FORWARD), compile_id),
        ]
    bodies.append((CompileTime(5, {"guard_latency_us": 42}), "1/0"))
    events = [
        Event(id=f"0.{n}", time_ns=n, pid=1, compile_id=compile_id, body=body)
        for n, (body, compile_id) in enumerate(bodies)
    ]
    (folder / "events-0.jsonl").write_bytes(b"".join(encode(event) + b"\n" for event in events))
    return tmp_path


def analyze(home: Path, *words: str) -> str:
    done = CliRunner().invoke(COMMAND, ["--dir", str(home), *words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_guards_most_numerous_first(home: Path) -> None:
    text = analyze(home, "--type", "guards")
    assert "5 guards of 2 compilations" in text
    assert "TYPE_MATCH 2, TENSOR_MATCH 1, GLOBAL_STATE 1" in text
    assert "model.py:8" in text and "1 without a line of yours" in text
    assert "a check takes 42 us" in text
    assert max(map(len, text.splitlines())) <= 100


def test_compilations_of_one_function_are_shown_once(home: Path) -> None:
    """What they share is counted, what differs is shown."""
    text = " ".join(analyze(home, "--type", "guards").split())
    assert "forward 2 compilations, 1 guard in common" in text
    assert "only in 1/0: L['x']" in text


def test_what_differs_between_compilations() -> None:
    def entry(compile_id: str, *guards: Guard) -> GuardedGraph:
        return GuardedGraph(
            compile_id=compile_id, file="m.py", line=4, function="forward", resumed_at=None, ops=1,
            guards=len(guards), kinds={}, lines=(), elsewhere=0, latency_us=None, rank=0,
            all=guards,
        )  # fmt: skip

    def tensor(size: str) -> Guard:
        return Guard("L['x']", "TENSOR_MATCH", (f"check_tensor(L['x'], float32, size={size})",))

    numbered = [
        Guard(f"G['__builtins_dict___{n}']['len']", "ID_MATCH", (f"id __builtins_dict___{n}",))
        for n in range(3)
    ]
    entries = [
        entry("0/0", tensor("[8]"), numbered[0]),
        entry("0/1", tensor("[9]"), numbered[1]),
        entry("0/2", tensor("[9]"), numbered[2], Guard("", "SHAPE", ("2 <= x",))),
    ]
    [group] = guard_groups(entries)
    assert group.same == 1
    assert group.differences == (
        GuardDifference(
            "L['x']", "TENSOR_MATCH", {"size=[8]": ("0/0",), "size=[9]": ("0/1", "0/2")}
        ),
    )
    assert group.extras == (ExtraGuards(("0/2",), ("",)),)
    [equal] = guard_groups(entries[:1] * 8)
    assert (len(equal.graphs), equal.differences, equal.extras) == (8, (), ())


def test_guards_come_with_the_graph_breaks(home: Path) -> None:
    frame = Frame("/project/model.py", 7, "forward", source="  print(x)")
    body = GraphBreak(
        gb_type="Unsupported function call",
        gb_id="GB0059",
        explanation="Dynamo can't trace print.",
        frame=FORWARD,
    )
    event = Event(id="0.9", time_ns=9, pid=1, compile_id="0/0", body=body, stack=(frame,))
    with (home / "abc123-model" / "events-0.jsonl").open("ab") as file:
        file.write(encode(event) + b"\n")
    text = " ".join(analyze(home, "--type", "guards").split())
    assert "5 guards of 2 compilations; 2 graphs, 1 graph break" in text
    assert "model.py:7 print(x) GB0059 Unsupported function call: Dynamo can't trace print." in text
    seen = json.loads(analyze(home, "--type", "guards", "--json"))
    assert (seen["graph_count"], seen["graph_break_count"]) == (2, 1)
    [reason] = seen["break_reasons"]
    assert (reason["gb_id"], reason["line"], reason["count"]) == ("GB0059", 7, 1)


def test_guards_as_json(home: Path) -> None:
    seen = json.loads(analyze(home, "--type", "guards", "--json"))
    assert (seen["run"], seen["type"]) == ("abc123-model", "guards")
    first, second = seen["graphs"]
    assert (first["compile_id"], first["guards"], first["latency_us"]) == ("1/0", 4, 42)
    assert second["latency_us"] is None
    assert (first["file"], first["line"], first["function"]) == ("/project/model.py", 4, "forward")
    assert [(line["line"], line["guards"]) for line in first["lines"]] == [(8, 2), (9, 1)]
    assert first["elsewhere"] == 1 and len(first["all"]) == 4
    assert first["all"][0]["checks"] == ["check TENSOR_MATCH"]


def test_graphs(home: Path) -> None:
    text = analyze(home, "--type", "graphs")
    assert "2 graphs, 14 ops" in text and "backend eager" in text
    seen = json.loads(analyze(home, "abc", "--type", "graphs", "--json"))
    assert [graph["ops"] for graph in seen["graphs"]] == [7, 7]


def test_summary_is_the_report(home: Path) -> None:
    assert "compilescope abc123-model" in analyze(home)
    assert json.loads(analyze(home, "--json"))["graphs"] == 2


def test_a_run_without_guards(tmp_path: Path) -> None:
    create_run(tmp_path, RunHeader(run="abc123-model", tool="0"))
    assert "No guards were recorded" in analyze(tmp_path, "--type", "guards")
    assert "No graph was captured" in analyze(tmp_path, "--type", "graphs")


@pytest.mark.torch
def test_a_real_run(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    import compilescope

    torch._dynamo.reset()
    with compilescope.capture(dir=tmp_path):
        torch.compile(lambda x: x + 1, backend="eager")(torch.ones(3))
    [graph] = json.loads(analyze(tmp_path, "--type", "guards", "--json"))["graphs"]
    assert graph["kinds"]["TENSOR_MATCH"] == 1
    assert graph["latency_us"] is not None
    assert graph["lines"][0]["file"] == __file__
