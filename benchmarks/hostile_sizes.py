"""Inputs of a few megabytes that could cost far more, each read within limits of time and memory.

    python benchmarks/hostile_sizes.py [--mb 10] [--only NAME...] [--list] [--what runs logs zips]
                                       [--commands NAME...] [--screen]

Run folders: every kind of event, thousands of times the same, or with other names each time, or few
with very long texts; one long line, a stack of 100,000 frames, a graph of 200,000 nodes, source
code nested as deep as it is long, an artifact that every event names. Logs: lines of one
character, one line, a line of each real log repeated, or the end of one repeated within it, whole
real logs repeated with other numbers. Zips: bombs, lists of files that lie. On each, the commands
that would read it run in forked children; PASS or MISSED: no exception, and no child above the
limits (10 s of CPU, 300 MB over the parent). With --screen a case is first run at a fifth of its
size, and at its full size only if it could miss a limit there were its cost to grow as the square.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import itertools
import json
import lzma
import random
import re
import shutil
import sys
import tempfile
import typing
import warnings
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, get_args, get_origin

import msgspec
from subjects.limited import MOST_MB, MOST_S, Outcome, run_commands, warm_up

from compilescope.record import bodies
from compilescope.record.artifacts import DiskArtifacts
from compilescope.record.event import Event, encode
from compilescope.record.eventfile import LONGEST_LINE
from compilescope.record.header import RunHeader, write_header
from compilescope.record.stack import CodeRef, Frame

ROOT = Path(__file__).resolve().parent.parent

GOLDEN = ROOT / "tests" / "logs" / "golden"
LARGEST_PAGE = 30_000_000
"""Bytes of HTML for 10 MB: a page is not to outgrow what it shows."""
COMMANDS = {
    "show": ["show", "run"],
    "show --all": ["show", "run", "--all"],
    "json": ["show", "run", "--json"],
    "explain": ["explain", "run"],
    "html": ["report", "run", "-o", "page.html"],
    "md": ["report", "run", "-o", "page.md"],
    "sarif": ["report", "run", "-o", "page.sarif"],
    "trace": ["report", "run", "--format", "trace", "-o", "page.trace"],
    "list": ["list", "--dir", "."],
    "export": ["export", "run", "-o", "run.zip"],
    "redact": ["export", "run", "--redact", "-o", "plain.zip"],
    "import": ["import", "run.zip", "--dir", "home"],
    "check": ["check", "--run", "run"],
    "junit": ["check", "--run", "run", "--junit", "page.xml", "--sarif", "gate.sarif", "--force"],
    "explain json": ["explain", "run", "--json"],
    "list files": ["list", "--dir", ".", "--artifacts", "--json"],
    "compare": ["compare", "run", "run"],
    "compare all": ["compare", "run", "run", "--all"],
    "sec guards": ["show", "run", "--section", "guards", "--all"],
    "sec graphs": ["show", "run", "--section", "graphs", "--json"],
    "sec breaks": ["show", "run", "--section", "breaks", "--json"],
}


class Texts:
    """What stands in the text fields of events."""

    def __init__(self, size: int, *, distinct: bool) -> None:
        self._size = size
        self._distinct = distinct
        self.number = 0

    def __call__(self) -> str:
        text = f"name{self.number}.py" if self._distinct else "name.py"
        return text + " abc(d)" * (self._size // 7)


def sample(kind: Any, text: Callable[[], str]) -> Any:
    """A value of a type of the model, every field filled in."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is typing.Literal:
        return inner[getattr(text, "number", 0) % len(inner)]
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        hints = typing.get_type_hints(kind)
        return kind(**{name: sample(hints[name], text) for name in kind.__struct_fields__})
    if origin is tuple and inner[-1] is not Ellipsis:
        return tuple(sample(each, text) for each in inner)
    if origin in (tuple, list):
        return origin((sample(inner[0], text),))
    if origin is dict:
        return {sample(inner[0], text): sample(inner[1], text)}
    if inner:
        return sample(next(each for each in inner if each is not type(None)), text)
    if kind is str:
        return text()
    number = getattr(text, "number", 0)
    return {int: number % 1000 + 1, float: 0.5, bool: True}.get(kind, {})


class HostileRun:
    """A run folder that is being written."""

    def __init__(self, folder: Path, size: int) -> None:
        self.size = size
        self.folder = folder / "run"
        self.folder.mkdir(parents=True)
        self.artifacts = DiskArtifacts(self.folder / "artifacts")
        self._file = (self.folder / "events-0.jsonl").open("wb")
        self._ids = itertools.count(1)
        self.header()
        start = bodies.ProcessStarted(argv=("a.py",), python="3.11", torch="2.13.0", parent_pid=1)
        self.event(start)

    def header(self, **fields: Any) -> None:
        told = {"run": "run", "tool": "1", "command": ("python", "a.py"), "root": "/u"}
        write_header(self.folder, RunHeader(**{**told, "exit_status": 0, "ended_ns": 1, **fields}))

    def event(self, body: Any, **fields: Any) -> int:
        number = next(self._ids)
        told = {"id": f"0.{number}", "time_ns": number * 1000, "pid": 100, **fields}
        return self.line(encode(Event(body=body, **told)))

    def line(self, line: bytes) -> int:
        return self._file.write(line + b"\n")

    def fill(self, make: Callable[[int], tuple[Any, dict[str, Any]]]) -> None:
        """Events until there are enough bytes."""
        done = number = 0
        while done < self.size:
            body, fields = make(number)
            done += self.event(body, **fields)
            number += 1

    def close(self) -> None:
        self.event(bodies.ProcessEnded())
        self._file.close()


def frame(line: int = 8, file: str = "/u/a.py", source: str = "    y = f(x)") -> Frame:
    return Frame(file=file, line=line, function="forward", source=source)


def graph_break(number: int = 0, **fields: Any) -> bodies.GraphBreak:
    told = {
        "gb_type": "Data-dependent branching",
        "frame": CodeRef("/u/a.py", 5, "forward"),
        "within": CodeRef("/u/a.py", 5, "forward"),
        "outcome": "resumed",
    }
    return bodies.GraphBreak(**{**told, **fields})


def of_kind(kind: type, *, size: int, distinct: bool) -> Callable[[HostileRun], None]:
    def make(run: HostileRun) -> None:
        text = Texts(size, distinct=distinct)

        def one(number: int) -> tuple[Any, dict[str, Any]]:
            text.number = number
            place = frame(number % 9999 + 1, f"/u/{number}.py") if distinct else frame()
            return sample(kind, text), {
                "compile_id": f"{number}/0" if distinct else "0/0",
                "stack": (place,),
            }

        run.fill(one)

    return make


def huge_of_kind(kind: type) -> Callable[[HostileRun], None]:
    """A single event, as long as a line may be, shared out among its texts."""

    def make(run: HostileRun) -> None:
        asked = 0

        def counted() -> str:
            nonlocal asked
            asked += 1
            return "x"

        sample(kind, counted)
        most = min(run.size, LONGEST_LINE) // 2 // max(asked, 1)
        for part in ("abc(d). ", "x", "\n"):
            text = (part * (most // len(part) + 1))[: most // (2 if part == "\n" else 1)]
            run.event(sample(kind, partial(str, text)), compile_id="0/0", stack=(frame(),))

    return make


def one_long_line(run: HostileRun) -> None:
    run.event(graph_break(context="x" * run.size), stack=(frame(),))
    run.event(graph_break(), stack=(frame(),))


def one_endless_line(run: HostileRun) -> None:
    """40 times as long as the rest of the cases."""
    run.event(graph_break(), stack=(frame(),))
    run.line(b'{"id":"' + b"x" * (40 * run.size))
    run.event(graph_break(), stack=(frame(9),))


def empty_objects(run: HostileRun) -> None:
    run.line(b"{}\n" * (run.size // 3))


def short_lines(run: HostileRun) -> None:
    run.line(b"x\n" * (run.size // 2))


def empty_lines(run: HostileRun) -> None:
    run.line(b"\n" * run.size)


def deep_json(run: HostileRun) -> None:
    start = b'{"id":"0.9","time_ns":1,"pid":1,"body":{"kind":"New","a":'
    for depth in (900, 5000, run.size // 2):
        run.line(start + b"[" * depth + b"]" * depth + b"}}")
        run.line(start + b'{"a":' * depth + b"1" + b"}" * depth + b"}}")


def huge_numbers(run: HostileRun) -> None:
    for digits in (20, 400, 5000, 1_000_000):
        many = b"9" * digits
        for field in (b'"time_ns":%s,"pid":1', b'"time_ns":1,"pid":%s', b'"time_ns":1,"pid":-%s'):
            run.line(b'{"id":"0.9",' + field % many + b',"body":{"kind":"New","n":%s}}' % many)
    run.line(b'{"id":"0.9","time_ns":-9223372036854775808,"pid":1,"body":{"kind":"ProcessEnded"}}')
    run.line(b'{"id":"0.9","time_ns":9223372036854775807,"pid":1,"body":{"kind":"ProcessEnded"}}')


def many_keys(run: HostileRun) -> None:
    keys = ",".join(f'"{number}":{number}' for number in range(run.size // 16))
    run.line(b'{"id":"0.9","time_ns":1,"pid":1,"body":{"kind":"New",%s}}' % keys.encode())
    values = ",".join(f'"k{number}":1' for number in range(run.size // 32))
    line = '{"id":"0.8","time_ns":1,"pid":1,"body":{"kind":"GuardSet","count":1,"artifact":"x",'
    run.line(f'{line}"kinds":{{{values}}}}}}}'.encode())


def same_break(run: HostileRun) -> None:
    run.fill(lambda number: (graph_break(), {"compile_id": "0/0", "stack": (frame(),)}))


def distinct_breaks(run: HostileRun) -> None:
    def one(number: int) -> tuple[Any, dict[str, Any]]:
        file = f"/u/m{number}.py"
        code = CodeRef(file, 5, f"forward{number}")
        body = graph_break(gb_type=f"Reason {number}", frame=code, within=code)
        return body, {"compile_id": f"{number}/0", "stack": (frame(number, file),)}

    run.fill(one)


def deep_stack(run: HostileRun) -> None:
    stack = tuple(frame(n + 1, f"/u/m{n}.py") for n in range(run.size // 160))
    run.event(graph_break(), compile_id="0/0", stack=stack)
    run.event(
        sample(bodies.Recompile, Texts(0, distinct=True)), compile_id="0/1", stack=stack[:50_000]
    )


def same_stack_deep(run: HostileRun) -> None:
    stack = (frame(),) * 1000
    run.fill(lambda number: (graph_break(), {"compile_id": f"{number}/0", "stack": stack}))


def recompile_entries(run: HostileRun) -> None:
    """One recompile with very many entries, and then very many guards in one entry."""
    code = CodeRef("/u/a.py", 5, "forward")
    guard = {"guard": "x.size()[0] == 2", "subject": "x.size()[0]", "expected": "2"}
    failed = [
        bodies.FailedGuard(**guard, actual=str(n), kind="TENSOR_MATCH", frame=frame())
        for n in range(run.size // 600)
    ]
    entries = tuple(
        bodies.CacheEntryMiss(f"0/{n}", (one,), "reason") for n, one in enumerate(failed)
    )
    run.event(bodies.Recompile(code, entries), compile_id="0/9999999", stack=(frame(),))
    whole = bodies.CacheEntryMiss("0/0", tuple(failed), "reason")
    run.event(bodies.Recompile(code, (whole,)), compile_id="0/99999999", stack=(frame(),))


def recompile_storm(run: HostileRun) -> None:
    code = CodeRef("/u/a.py", 5, "forward")

    def one(number: int) -> tuple[Any, dict[str, Any]]:
        failed = bodies.FailedGuard(
            f"x.size()[0] == {number}", "x.size()[0]", str(number), str(number + 1), "SHAPE"
        )
        body = bodies.Recompile(code, (bodies.CacheEntryMiss(f"0/{number}", (failed,)),))
        return body, {"compile_id": f"0/{number + 1}", "stack": (frame(),)}

    run.fill(one)


def _guards(run: HostileRun, text: str) -> None:
    name = run.artifacts.put(text, "guardtree" if not text.startswith("[") else "json")
    code = CodeRef("/u/a.py", 5, "forward")
    run.event(bodies.GuardSet(100_000, {"SHAPE": 1}, name, code), compile_id="0/0")


def guard_list(run: HostileRun) -> None:
    guards = [
        bodies.Guard(f"L['x{n}']", "TENSOR_MATCH", ("check(x)",), (frame(),))
        for n in range(100_000)
    ]
    _guards(run, msgspec.json.encode(guards).decode()[: run.size * 2])


def guard_tree(run: HostileRun) -> None:
    line = "| +- GuardManager: source=L['x'], accessed_by=Dict('x'), type=<class 'int'>\n"
    line += "| | +- TYPE_MATCH: ___check(L['x'], 1)  # y = f(x)  # a.py:3 in forward\n"
    _guards(run, "\nTREE_GUARD_MANAGER:\n+- RootGuardManager\n" + line * (run.size // len(line)))


def guard_bars(run: HostileRun) -> None:
    _guards(run, "TREE_GUARD_MANAGER:\n" + "| " * (run.size // 2) + "+- A: b\n")


def guard_parts(run: HostileRun) -> None:
    _guards(run, "TREE_GUARD_MANAGER:\n+- DIMENSION_DYNAMIC_MARKING_GUARD: x\n" + "| " * 20_000)


def guard_one_source(run: HostileRun) -> None:
    text = "+- RootGuardManager\n+- LAMBDA_GUARD: " + "x and " * (run.size // 12) + "\n"
    text += (
        "| +- NO_ALIAS: check_no_aliasing(" + ", ".join("L['x']" for _ in range(200_000)) + ")\n"
    )
    _guards(run, text + "+- LAMBDA_GUARD: a\n" * 200_000)


def guard_columns(run: HostileRun) -> None:
    _guards(run, "+- A: " + "  # a  # b" * (run.size // 10) + "\n")


def _captured(run: HostileRun, **fields: Any) -> bodies.GraphCaptured:
    code = CodeRef("/u/a.py", 5, "forward")
    return bodies.GraphCaptured(
        **{"stage": "dynamo", "nodes": 5, "ops": 3, "frame": code, **fields}
    )


def shared_artifact(run: HostileRun) -> None:
    text = "class GraphModule(torch.nn.Module):\n" + "    x: f32[2] = a + b\n" * 50_000
    name = run.artifacts.put(text, "txt")
    node = {"name": "a", "op": "call_function", "target": "aten.add"}
    graph = run.artifacts.put(json.dumps({"nodes": [node] * 20_000}), "json")

    def one(number: int) -> tuple[Any, dict[str, Any]]:
        return _captured(run, text=name, graph=graph), {"compile_id": f"{number}/0"}

    run.fill(one)


def graph_text(run: HostileRun) -> None:
    lines = "".join(
        f'        x{n}: "f32[2, 3][3, 1]cpu" = torch.add(x{n - 1}, 1);  x{n - 1} = None\n'
        for n in range(run.size // 75 // 3)
    )
    text = f'class GraphModule(torch.nn.Module):\n    def forward(self, x0: "f32[2]"):\n{lines}'
    for stage in ("dynamo", "aot_forward", "post_grad"):
        name = run.artifacts.put(text + f"# {stage}", "txt")
        run.event(_captured(run, stage=stage, text=name), compile_id="0/0", stack=(frame(),))


def graph_nodes(run: HostileRun) -> None:
    tensor = {"shape": [2, 3], "dtype": "float32"}
    nodes = [
        {
            "name": f"x{n}",
            "op": "call_function",
            "target": "aten.add.Tensor",
            "inputs": [f"x{n - 1}"],
            "outputs": [tensor],
        }
        for n in range(min(200_000, run.size // 110))
    ]
    name = run.artifacts.put(json.dumps({"nodes": nodes}), "json")
    run.event(_captured(run, graph=name), compile_id="0/0", stack=(frame(),))
    wide = [
        {"name": "a", "op": "placeholder", "target": "a", "outputs": [tensor]},
        {"name": "b", "op": "output", "target": "o", "inputs": ["a"] * (run.size // 8)},
    ]
    name = run.artifacts.put(json.dumps({"nodes": wide}), "json")
    run.event(_captured(run, graph=name), compile_id="1/0", stack=(frame(),))


def graph_nested(run: HostileRun) -> None:
    node: dict[str, Any] = {"name": "x", "op": "call_function", "target": "cond"}
    text = "[]"
    for _ in range(3000):
        text = f'[{{"nodes":[{{"name":"x","op":"call_function","target":"c","graphs":{text}}}]}}]'
    node_text = json.dumps(node)[:-1] + f',"graphs":{text}}}'
    name = run.artifacts.put(f'{{"nodes":[{node_text}]}}', "json")
    run.event(_captured(run, graph=name), compile_id="0/0", stack=(frame(),))


def graph_long_line(run: HostileRun) -> None:
    for number, part in enumerate(("(", "[", ' = "', " # ", "a: ", "x, ", '"', "f32[", "\t", " ")):
        line = part * (run.size // 10 // len(part))
        text = f"class G:\n    def forward(self, x):\n        y = {line}"
        name = run.artifacts.put(text, "txt")
        run.event(_captured(run, text=name), compile_id=f"{number}/0", stack=(frame(),))


def kernel_code(run: HostileRun) -> None:
    line = "        triton_poi_fused_add_0.run(buf0, arg0_1, 6, stream=stream0)\n"
    starts = ("", "'''\n", "async_compile.triton('k', '''\n", "# Topologically Sorted", "def call(")
    for number, start in enumerate(starts):
        text = start + line * (run.size // 5 // len(line))
        name = run.artifacts.put(text, "py")
        body = bodies.KernelEmitted(name, f"/t/{number}.py", ("k",) * 1000)
        run.event(body, compile_id=f"{number}/0")


_NESTED = {
    "parens": ("(", "x", ")"),
    "brackets": ("[", "x", "]"),
    "minus": ("-", "x", ""),
    "not": ("not ", "x", ""),
    "attributes": ("x", ".y", ""),
    "calls": ("f", "(x)", ""),
    "sums": ("x + ", "x", ""),
    "lambdas": ("lambda: ", "x", ""),
    "ternaries": ("x if x else ", "x", ""),
    "awaits": ("f(a=", "x", ")"),
    "strings": ("'a' ", "'b'", ""),
    "compares": ("x < ", "x", ""),
    "subscripts": ("x", "[0]", ""),
    "fstrings": ("f'{", "x", "}'"),
}


def nested_source(name: str) -> Callable[[HostileRun], None]:
    before, middle, after = _NESTED[name]

    def make(run: HostileRun) -> None:
        for depth in (90, 150, 1000, 20_000, run.size // 4):
            text = before * depth + middle + after * depth
            if name in ("attributes", "calls", "subscripts"):
                text = before + middle * depth
            file = f"/u/a{depth}.py"
            whole = f"import torch\n\ndef forward(x):\n    y = {text}\n    return y\n"
            run.event(bodies.SourceSeen(file, run.artifacts.put(whole, "py")))
            code = CodeRef(file, 3, "forward")
            run.event(
                graph_break(frame=code, within=code),
                compile_id=f"{depth}/0",
                stack=(frame(4, file, f"    y = {text}"[:100_000]),),
            )

    return make


def nested_blocks(run: HostileRun) -> None:
    """`if` in `if`: Python itself takes 100 levels of indentation."""
    for depth in (90, 1500):
        text = "import torch\n\ndef forward(x):\n"
        text += "".join(f"{' ' * n}if x:\n" for n in range(1, depth)) + " " * depth + "y = x\n"
        text += "if x:\n    pass\n" + "elif x:\n    pass\n" * 50_000
        file = f"/u/a{depth}.py"
        run.event(bodies.SourceSeen(file, run.artifacts.put(text, "py")))
        code = CodeRef(file, 3, "forward")
        run.event(graph_break(frame=code, within=code), stack=(frame(depth + 3, file),))


def long_source(run: HostileRun) -> None:
    """A file of short lines, with a break in many of them."""
    line = "    y = f(x)\n"
    text = "import torch\n\ndef forward(x):\n" + line * (run.size // 2 // len(line))
    run.event(bodies.SourceSeen("/u/a.py", run.artifacts.put(text, "py")))
    for number in range(2000):
        body = graph_break(frame=CodeRef("/u/a.py", 3, "forward"))
        run.event(body, compile_id=f"{number}/0", stack=(frame(4 + number * 50),))


def wide_source(run: HostileRun) -> None:
    text = "def forward(x):\n    y = [" + "x, " * (run.size // 3) + "]\n"
    run.event(bodies.SourceSeen("/u/a.py", run.artifacts.put(text, "py")))
    run.event(graph_break(), compile_id="0/0", stack=(frame(2),))


def many_sources(run: HostileRun) -> None:
    def one(number: int) -> tuple[Any, dict[str, Any]]:
        file = f"/u/m{number // 2}.py"
        if number % 2:
            code = CodeRef(file, 1, "forward")
            return graph_break(frame=code, within=code), {"stack": (frame(2, file),)}
        text = run.artifacts.put("def forward(x):\n    y = f(x)\n", "py")
        return bodies.SourceSeen(file, text), {}

    run.fill(one)


def long_frame_lines(run: HostileRun) -> None:
    for part in (" ", "(", "x.", "'", "x, ", "\\", "`", "|", "<", "&", "\u202e", "*", "_"):
        line = frame(8, source=part * (run.size // 13 // len(part)))
        body = graph_break(context=line.source[: run.size // 100], explanation=line.source[:50_000])
        run.event(body, compile_id="0/0", stack=(line,))


def long_header(run: HostileRun) -> None:
    many = ("--flag=x",) * (run.size // 40)
    run.header(command=("python", "a.py", "x" * (run.size // 4), *many), cwd="/c" * 100_000)
    run.event(graph_break(), stack=(frame(),))


def many_processes(run: HostileRun) -> None:
    def one(number: int) -> tuple[Any, dict[str, Any]]:
        body = bodies.ProcessStarted(argv=("a.py",), python="3", torch="2.13", parent_pid=number)
        return body, {"pid": number, "rank": number}

    run.fill(one)


def many_event_files(run: HostileRun) -> None:
    for number in range(1, 5000):
        event = Event(
            id=f"{number}.1",
            time_ns=number,
            pid=number,
            rank=number,
            stack=(frame(),),
            body=graph_break(),
        )
        line = encode(event)
        (run.folder / f"events-{number}.jsonl").write_bytes(line + b"\n")


def deep_phases(run: HostileRun) -> None:
    phases = tuple(bodies.Phase(f"phase{n}", n, 10**9 - n, depth=n) for n in range(run.size // 80))
    run.event(bodies.CompilePhases(phases), compile_id="0/0")
    code = CodeRef("/u/a.py", 5, "forward")
    run.event(bodies.CompileTime(10**9, frame=code), compile_id="0/0")


def nested_compilations(run: HostileRun) -> None:
    """Each compilation within the time of the one before it."""

    def one(number: int) -> tuple[Any, dict[str, Any]]:
        code = CodeRef("/u/a.py", 5, f"forward{number}")
        took = 10**12 + number * 10**4
        return bodies.CompileTime(took, {"a": 5}, frame=code), {"compile_id": f"{number}/0"}

    run.fill(one)


def because_chain(run: HostileRun) -> None:
    """Each event led to by the one before it; the last leads to the first."""

    def one(number: int) -> tuple[Any, dict[str, Any]]:
        code = CodeRef("/u/a.py", 5, "forward")
        body = bodies.FrameSkipped(code, "graph-break", because=f"0.{number + 1}")
        return body, {"compile_id": f"{number}/0", "stack": (frame(),)}

    run.fill(one)


def one_frame_many_regions(run: HostileRun) -> None:
    def one(number: int) -> tuple[Any, dict[str, Any]]:
        code = CodeRef("/u/a.py", 5, "forward", resumed_at=number % 5000 + 6)
        region = CodeRef("/u/a.py", number, f"top{number}")
        return _captured(run, frame=code, region=region, ended_by_break=True), {
            "compile_id": f"{number}/0",
            "stack": (frame(number % 5000),),
        }

    run.fill(one)


_NUMBERED = (
    "{}",
    "-{}",
    "0/{}",
    "{}/{}_{}",
    "L['x'].size()[{}]",
    "x.size()[{}] == {}",
    "len(L['x']) == {}",
    "torch_dynamo_resume_in_forward_at_{}",
    '  File "/u/a.py", line {}, in forward\n    y = x',
    'from user code:\n  File "/u/a.py", line {}, in f',
    "f32[{}, {}]",
    "int{}",
    "/u/a.py:{}",
    "G['f'].__defaults__[{}]",
    "lr={}e{}",
)


def numbers(run: HostileRun) -> None:
    """Numbers of too many digits, and digits that are no numbers, where texts hold one."""
    most = max(run.size // (len(_NUMBERED) * len(get_args(bodies.Body)) * 10), 25)
    for number in ("9" * min(most, 5000), "\u00b2", "\u0663", "9" * 25):
        for form in _NUMBERED:
            text = form.format(*[number] * 3)
            for kind in get_args(bodies.Body):
                body = sample(kind, partial(str, text))
                place = frame(source=text)
                run.event(body, compile_id=text, stack=(place,))


def charged_breaks(run: HostileRun) -> None:
    """Breaks that may each share the time of every other."""
    rest = [CodeRef("/u/a.py", 5, "forward", resumed_at=line) for line in range(9000)]

    def one(number: int) -> tuple[Any, dict[str, Any]]:
        half, odd = number // 2 % 9000, number % 2
        broken = graph_break(gb_type=f"Reason {number}", frame=rest[half])
        if odd:
            return broken, {"compile_id": f"{number}/0", "stack": (frame(half + 1),)}
        return bodies.GraphTime(f"{number}/0", 2, 5, 5), {"compile_id": f"{number - 3}/0"}

    code = CodeRef("/u/a.py", 5, "forward")
    run.event(bodies.RegionTime(code, 2, 100, 50, 10, 1, 9))
    run.fill(one)


def eager_breaks(run: HostileRun) -> None:
    """Functions that run eagerly, each because of a break of its own."""

    def one(number: int) -> tuple[Any, dict[str, Any]]:
        code = CodeRef(f"/u/m{number}.py", 5, "forward")
        body = graph_break(frame=code, within=code, outcome="frame-eager")
        return body, {"compile_id": f"{number}/0", "stack": (frame(6, code.file),)}

    run.fill(one)


def breaks_of_one_function(run: HostileRun) -> None:
    """In one compilation, each at a line of its own; and what is compiled at each of them."""

    def one(number: int) -> tuple[Any, dict[str, Any]]:
        line = number // 2
        if number % 2:
            code = CodeRef("/u/a.py", 5, "forward", resumed_at=line)
            told = bodies.CompileTime(5000, frame=code)
            return told, {"compile_id": f"{number}/0", "stack": (frame(line),)}
        return graph_break(gb_type=f"Reason {line}"), {
            "compile_id": "0/0",
            "stack": (frame(line),),
        }

    run.fill(one)


def rest_after_rest(run: HostileRun) -> None:
    """A tree as deep as there are breaks: each rest of a function breaks again."""

    def one(number: int) -> tuple[Any, dict[str, Any]]:
        part, odd = divmod(number, 2)
        code = CodeRef("/u/a.py", 1, "forward", resumed_at=part * 3 if part else None)
        fields = {"compile_id": f"{part}/0", "stack": (frame(part * 3 + 3),)}
        if odd:
            return bodies.CompileTime(5000, frame=code), fields
        return graph_break(frame=code, within=code), fields

    run.fill(one)


def recompiles_of_one_id(run: HostileRun) -> None:
    """Compile ids are not to be trusted: all of these have the same."""
    code = CodeRef("/u/a.py", 5, "forward")

    def one(number: int) -> tuple[Any, dict[str, Any]]:
        start = number // 3 * 3000 + 5000
        phases = bodies.CompilePhases((bodies.Phase("dynamo", start, 900),))
        failed = bodies.FailedGuard(f"x == {number}", "x", str(number), str(number + 1), "EQUALS")
        body = (
            phases,
            bodies.Recompile(code, (bodies.CacheEntryMiss("0/0", (failed,)),)),
            bodies.CompileTime(100, frame=code),
        )[number % 3]
        return body, {"compile_id": "0/1", "stack": (frame(),)}

    run.fill(one)


def eager_reasons(run: HostileRun) -> None:
    """One function, and each time another reason."""
    code = CodeRef("/u/a.py", 5, "forward")

    def one(number: int) -> tuple[Any, dict[str, Any]]:
        return bodies.FrameSkipped(code, "disabled", f"reason {number}"), {"stack": (frame(),)}

    run.fill(one)


def eager_functions(run: HostileRun) -> None:
    def one(number: int) -> tuple[Any, dict[str, Any]]:
        code = CodeRef(f"/u/m{number % 700}.py", number, f"forward{number}")
        return bodies.FrameSkipped(code, "disabled", f"reason {number}"), {"stack": (frame(),)}

    run.fill(one)


def alike_entry_points(run: HostileRun) -> None:
    """The same after every reset."""
    code = CodeRef("/u/a.py", 5, "forward")

    def one(number: int) -> tuple[Any, dict[str, Any]]:
        body = (graph_break(), bodies.CompileTime(5000, frame=code))[number % 2]
        return body, {"compile_id": f"{number // 2}/0", "stack": (frame(),), "epoch": number // 2}

    run.fill(one)


def phases_in_phases(run: HostileRun) -> None:
    """Of many compilations, each within the one before."""
    names = ("dynamo", "backend_compile", "inductor_compile")

    def one(number: int) -> tuple[Any, dict[str, Any]]:
        phases = tuple(
            bodies.Phase(name, number * 30 + n, 10**12 - number * 60 - n, depth=n)
            for n, name in enumerate(names)
        )
        return bodies.CompilePhases(phases), {"compile_id": f"{number}/0"}

    run.fill(one)


def causes_in_sources(run: HostileRun) -> None:
    """Files as people write them, a graph break in every function: the fixes have much to read."""
    lines = (
        "    if x.sum() > {0}:\n        x = x * {0}\n    print(x, {0})\n    return x.item()\n\n\n"
    )
    text = "import torch\n\n\n" + "".join(
        f"@torch.compile\ndef forward{n}(x):\n{lines.format(n)}" for n in range(200)
    )
    for number in range(run.size // 2 // len(text)):
        file = f"/u/m{number}.py"
        kept = run.artifacts.put(f"{text}# {number}\n", "py")
        run.event(bodies.SourceSeen(file, kept))
        for n in range(0, 200, 20):
            code = CodeRef(file, 4 + n * 8, f"forward{n}")
            source = f"    print(x, {n})"
            place = Frame(
                file=file,
                line=8 + n * 8,
                function=code.function,
                source=source,
                column=4,
                end_column=len(source),
            )
            broken = graph_break(
                gb_type="Failed to trace builtin operator", frame=code, within=code
            )
            run.event(broken, compile_id=f"{number * 200 + n}/0", stack=(place,))


def tiny_files(run: HostileRun) -> None:
    """Hardly a byte in each: what a file costs beside what it holds."""
    for number in range(run.size // 100):
        (run.folder / f"events-{number + 1}.jsonl").write_bytes(b"{}\n")


def tiny_artifacts(run: HostileRun) -> None:
    def one(number: int) -> tuple[Any, dict[str, Any]]:
        text = run.artifacts.put(f"x = {number}\n", "py")
        return bodies.SourceSeen(f"/u/m{number}.py", text), {}

    run.fill(one)


def many_threads(run: HostileRun) -> None:
    """Each event of another thread, rank and epoch."""

    def one(number: int) -> tuple[Any, dict[str, Any]]:
        fields = {"thread": number, "rank": number % 997, "epoch": number % 991}
        return graph_break(), {"compile_id": f"{number}/0", "stack": (frame(),), **fields}

    run.fill(one)


def many_tests(run: HostileRun) -> None:
    def one(number: int) -> tuple[Any, dict[str, Any]]:
        return graph_break(), {"test": f"tests/test_{number}.py::test_it", "stack": (frame(),)}

    run.fill(one)


def known_paths(run: HostileRun) -> None:
    """As many paths as there are texts that may name them."""

    def one(number: int) -> tuple[Any, dict[str, Any]]:
        file = f"/u/my models/m{number}.py"
        code = CodeRef(file, 5, "forward")
        said = f"called from {file} and /u/my models/m{number * 7}.py /u/x"
        body = graph_break(frame=code, within=code, explanation=said)
        return body, {"compile_id": f"{number}/0", "stack": (frame(number + 1, file),)}

    run.fill(one)


def said_strings(run: HostileRun) -> None:
    """Strings in the code, and messages that may say them."""

    def one(number: int) -> tuple[Any, dict[str, Any]]:
        place = frame(number + 1, source=f"    say('a long text of theirs {number}')")
        body = bodies.CompileFailed("RuntimeError", f"the shape of the input is {number} {number}")
        return body, {"compile_id": f"{number}/0", "stack": (place,)}

    run.fill(one)


def distinct_words(run: HostileRun) -> None:
    """Every name, string and number another: none is replaced twice."""

    def one(number: int) -> tuple[Any, dict[str, Any]]:
        some = range(number * 40, number * 40 + 40)
        said = " ".join(f"'a b{n}' `x{n}.y{n}` {n}" for n in some)
        place = frame(number + 1, source="    " + "; ".join(f"v{n} = g(u{n}, {n}.5)" for n in some))
        body = graph_break(context=said[:500], explanation=said)
        return body, {"compile_id": f"{number}/0", "stack": (place,)}

    run.fill(one)


def long_paths(run: HostileRun) -> None:
    """Files in folders in folders."""
    deep = "/u" + "/very_long_folder_name" * 200

    def one(number: int) -> tuple[Any, dict[str, Any]]:
        code = CodeRef(f"{deep}/m{number}.py", 5, "forward")
        return graph_break(frame=code, within=code), {"stack": (frame(6, code.file),)}

    run.fill(one)


def long_functions(run: HostileRun) -> None:
    def one(number: int) -> tuple[Any, dict[str, Any]]:
        code = CodeRef("/u/a.py", number, "torch_dynamo_resume_in_" * 300 + f"f_at_{number}")
        return graph_break(frame=code, within=code), {"stack": (frame(number),)}

    run.fill(one)


def long_guards(run: HostileRun) -> None:
    """Conditions as long as a line may be, of each form that is taken apart."""
    code = CodeRef("/u/a.py", 5, "forward")
    for number, part in enumerate(_CONDITIONS):
        text = part * (run.size // len(_CONDITIONS) // 4 // len(part))
        failed = bodies.FailedGuard(text, text[:200_000], text, text, "SHAPE")
        missed = bodies.CacheEntryMiss("0/0", (failed,), f"{text[:500_000]}  # a  # a.py:3 in f")
        run.event(bodies.Recompile(code, (missed,)), compile_id=f"0/{number}", stack=(frame(),))


_CONDITIONS = (
    "x and ",
    "(",
    "L['x'][",
    "not ",
    "x.size()[0] == ",
    "'",
    "f(",
    "a.b",
    "  # ",
    "L['",
    "1",
    " ",
    "Eq(s0, ",
    "___check_obj_id(",
)


def many_hints(run: HostileRun) -> None:
    hints = tuple(f"Do this: {number}." for number in range(run.size // 60))
    run.event(graph_break(hints=hints), stack=(frame(),))
    run.event(graph_break(hints=(hints[0],) * (run.size // 60)), stack=(frame(9),))


def one_file_seen_often(run: HostileRun) -> None:
    def one(number: int) -> tuple[Any, dict[str, Any]]:
        text = run.artifacts.put(f"def f(x):\n    return x + {number % 50}\n", "py")
        return bodies.SourceSeen("/u/a.py", text), {}

    run.event(graph_break(), stack=(frame(2),))
    run.fill(one)


def own_graphs(run: HostileRun) -> None:
    """Each compilation with texts of its own: a graph, guards, code."""

    def one(number: int) -> tuple[Any, dict[str, Any]]:
        text = f"class G:\n    def forward(self, x{number}):\n        return x{number} + 1\n"
        name = run.artifacts.put(text, "txt")
        guards = run.artifacts.put(f"+- GuardManager: source=L['x{number}']\n", "guardtree")
        fields = {"compile_id": f"{number // 2}/0", "stack": (frame(number % 9000 + 1),)}
        if number % 2:
            return bodies.GuardSet(1, {"SHAPE": 1}, guards, CodeRef("/u/a.py", 5, "f")), fields
        return _captured(run, text=name), fields

    run.size //= 2  # The texts are as long again.
    run.fill(one)


def small_files_beside(run: HostileRun) -> None:
    """The files of a run that are not its events."""
    many = range(run.size // 30)
    lines = "".join(f"{n} failed reason {n}\n{n} start\n" for n in many)
    (run.folder / "processes").write_text(lines)
    tags = json.dumps({"tags": [f"t{n}" for n in many], "note": "x" * run.size})
    (run.folder / "labels.json").write_text(tags)
    made = "".join(json.dumps({"kind": "report", "path": f"/u/{n}.html"}) + "\n" for n in many)
    (run.folder / "products.jsonl").write_text(made)
    run.event(graph_break(), stack=(frame(),))


def times_apart(run: HostileRun) -> None:
    """As far apart as numbers allow, and of lengths that overflow."""
    code = CodeRef("/u/a.py", 5, "forward")

    def one(number: int) -> tuple[Any, dict[str, Any]]:
        at = (number * 7919 % 10007) * (2**63 // 10007) * (-1) ** number
        body = (
            bodies.CompileTime(2**62, {"a": 2**62}, frame=code),
            bodies.CompilePhases((bodies.Phase("dynamo", at, 2**62),)),
        )[number % 2]
        return body, {"compile_id": f"{number}/0", "time_ns": at}

    run.fill(one)


def odd_letters(run: HostileRun) -> None:
    """Of which pages and terminals make several, or none."""
    texts = (
        "\u202e",
        "\ufffe",
        "\U0001f469\u200d",
        "\x1b[2J",
        "&",
        "<script>",
        "]]>",
        "\x00",
        "e\u0301",
    )

    def one(number: int) -> tuple[Any, dict[str, Any]]:
        text = texts[number % len(texts)] * 1000
        code = CodeRef(f"/u/{text[:40]}{number}.py", 5, text[:100])
        return graph_break(context=text, explanation=text, frame=code, within=code), {
            "stack": (frame(number, code.file, text),)
        }

    run.fill(one)


def names_of_names(run: HostileRun) -> None:
    """Names as torch makes them of others, of others, of others."""
    for depth in (5, 100, run.size // 60):
        for name in (
            "torch_dynamo_resume_in_" * depth + "f" + "_at_1" * depth,
            "__import_" * depth + "f",
            "__import_" + "a_dot_" * depth + "f",
            "triton_poi_fused_" + "add_" * depth + "0",
        ):
            code = CodeRef("/u/a.py", 5, name)
            body = graph_break(frame=code, within=code, context=name, explanation=name)
            run.event(body, compile_id=f"{depth}/0", stack=(frame(source=f"    y = {name}(x)"),))


def formats_in_formats(run: HostileRun) -> None:
    """f-strings, their values, the formats of those, and quotes that never close."""
    many = run.size // 200
    for number, line in enumerate(
        (
            "f'{" + "x:{" * many,
            "f'{" + "f'{x}' " * many,
            "f'{" * many,
            'f"{' + '"a"' * many + '}"',
            'f"{' + '"a' * many + '}"',
        )
    ):
        run.event(
            graph_break(context=line, explanation=line),
            compile_id=f"{number}/0",
            stack=(frame(number + 1, source=line),),
        )


def combining_marks(run: HostileRun) -> None:
    """Thousands of marks on one letter: a name, a file, a line of it."""

    def one(number: int) -> tuple[Any, dict[str, Any]]:
        text = f"e{number}" + "\u0301\u0323\u20dd" * 500
        code = CodeRef(f"/u/{text[:200]}.py", 5, text)
        return graph_break(context=text, explanation=text, frame=code, within=code), {
            "compile_id": f"{number}/0",
            "stack": (frame(number + 1, code.file, f"    {text} = x"),),
        }

    run.fill(one)


def long_file_names(run: HostileRun) -> None:
    """Each a single name, longer than any file system takes."""

    def one(number: int) -> tuple[Any, dict[str, Any]]:
        code = CodeRef(f"/u/{'x' * 20_000}{number}.py", 5, "forward")
        body = graph_break(frame=code, within=code, explanation=f"called from {code.file}")
        return body, {"compile_id": f"{number}/0", "stack": (frame(6, code.file),)}

    run.fill(one)


def deep_arguments(run: HostileRun) -> None:
    """Operators' constants: lists in lists in lists, whole numbers without end."""
    for number, deep in enumerate(("[" * 900 + "]" * 900, "9" * 4000, "[" * 5000 + "]" * 5000)):
        call = f'{{"op":"aten.add","inputs":[],"outputs":[],"constants":{{"alpha":{deep}}}}}'
        node = f'{{"name":"a","op":"call_function","target":"aten.add","call":{call}}}'
        many = ",".join([node] * max(run.size // 3 // len(node), 1))
        name = run.artifacts.put(f'{{"nodes":[{many}]}}', "json")
        run.event(_captured(run, graph=name), compile_id=f"{number}/0", stack=(frame(),))


def ranks_and_resets(run: HostileRun) -> None:
    """Hardly an event in each of very many processes, ranks and epochs."""

    def one(number: int) -> tuple[Any, dict[str, Any]]:
        code = CodeRef("/u/a.py", 5, f"forward{number % 7}")
        body = (graph_break(frame=code, within=code), bodies.CompileTime(5000, frame=code))
        fields = {"pid": number + 1, "rank": number, "epoch": number % 3}
        return body[number % 2], {"compile_id": "0/0", "stack": (frame(number % 9 + 1),), **fields}

    run.fill(one)


RUNS: dict[str, Callable[[HostileRun], None]] = {
    make.__name__: make
    for make in (
        one_long_line,
        one_endless_line,
        empty_objects,
        short_lines,
        empty_lines,
        deep_json,
        huge_numbers,
        many_keys,
        same_break,
        distinct_breaks,
        deep_stack,
        same_stack_deep,
        recompile_entries,
        recompile_storm,
        guard_list,
        guard_tree,
        guard_bars,
        guard_parts,
        guard_one_source,
        guard_columns,
        shared_artifact,
        graph_text,
        graph_nodes,
        graph_nested,
        graph_long_line,
        kernel_code,
        nested_blocks,
        long_source,
        wide_source,
        many_sources,
        long_frame_lines,
        long_header,
        many_processes,
        many_event_files,
        deep_phases,
        nested_compilations,
        because_chain,
        one_frame_many_regions,
        numbers,
        charged_breaks,
        eager_breaks,
        breaks_of_one_function,
        rest_after_rest,
        recompiles_of_one_id,
        eager_reasons,
        eager_functions,
        alike_entry_points,
        phases_in_phases,
        causes_in_sources,
        tiny_files,
        tiny_artifacts,
        many_threads,
        many_tests,
        known_paths,
        said_strings,
        distinct_words,
        long_paths,
        long_functions,
        long_guards,
        many_hints,
        one_file_seen_often,
        own_graphs,
        small_files_beside,
        times_apart,
        odd_letters,
        names_of_names,
        formats_in_formats,
        combining_marks,
        long_file_names,
        deep_arguments,
        ranks_and_resets,
    )
}
RUNS |= {f"nested_{name}": nested_source(name) for name in _NESTED}
for _kind in get_args(bodies.Body):
    RUNS[f"same_{_kind.__name__}"] = of_kind(_kind, size=0, distinct=False)
    RUNS[f"other_{_kind.__name__}"] = of_kind(_kind, size=0, distinct=True)
    RUNS[f"long_{_kind.__name__}"] = of_kind(_kind, size=100_000, distinct=True)
    RUNS[f"huge_{_kind.__name__}"] = huge_of_kind(_kind)


def golden_lines(seed: int) -> Iterator[tuple[str, bytes]]:
    """A few lines of every real log."""
    rng = random.Random(seed)
    for path in sorted(GOLDEN.rglob("*.xz")):
        lines = lzma.decompress(path.read_bytes()).splitlines()
        for line in rng.sample(lines, min(3, len(lines))):
            yield path.name.removesuffix(".log.xz"), line


def _stamp(number: int) -> bytes:
    return b"V1115 00:00:%02d.%06d 4242 torch/_dynamo/x.py:12] " % (number // 10**6 % 60, number)


def trace_log(
    size: int,
    kind: str,
    fields: Callable[[int], Any],
    payload: Callable[[int], bytes] | None = None,
) -> bytes:
    parts: list[bytes] = []
    done = 0
    number = 0
    while done < size:
        line = {kind: fields(number), "frame_id": number, "frame_compile_id": 0, "attempt": 0}
        text = b""
        if payload is not None:
            line["has_payload"] = f"{number:032x}"
            text = b"".join(b"\t" + row + b"\n" for row in payload(number).split(b"\n"))
        parts.append(_stamp(number) + json.dumps(line).encode() + b"\n" + text)
        done += len(parts[-1])
        number += 1
    return b"".join(parts)


def _break_payload(number: int) -> bytes:
    return (
        b"Graph break in user code at /u/m%d.py:%d\nGraph Break Reason: Reason %d\n  Explanation: a"
        b'\nUser code traceback:\n  File "/u/m%d.py", line %d, in forward\n    y = f(x)\n'
    ) % ((number,) * 5)


def _start(number: int) -> dict[str, Any]:
    return {"stack": [{"line": number, "name": f"f{number}", "filename": f"/u/{number}.py"}] * 3}


LOGS: dict[str, Callable[[int], bytes]] = {
    "short_lines": lambda size: b"x\n" * (size // 2),
    "empty_lines": lambda size: b"\n" * size,
    "returns": lambda size: b"\r" * size,
    "empty_objects": lambda size: b"{}\n" * (size // 3),
    "one_line": lambda size: b"x" * size,
    "one_stamped_line": lambda size: _stamp(1) + b"x" * size,
    "one_record": lambda size: _stamp(1) + b'{"str": ["' + b"x" * size + b'", 0]}\n',
    "one_payload": lambda size: trace_log(
        size, "artifact", lambda n: {"name": "a", "encoding": "string"}, lambda n: b"x\n" * size
    )[: 2 * size],
    "nulls": lambda size: b"\0" * size,
    "bytes": lambda size: bytes(range(256)) * (size // 256),
    "escapes": lambda size: b"\x1b[" * (size // 2),
    "escape_titles": lambda size: b"\x1b]" * (size // 2),
    "tabs": lambda size: b"\t\n" * (size // 2),
    "deep_record": lambda size: _stamp(1) + b'{"a": ' + b"[" * size + b"\n",
    "interned": lambda size: trace_log(size, "str", lambda n: [f"/u/{n}.py", n]),
    "starts": lambda size: trace_log(size, "dynamo_start", _start),
    "long_start": lambda size: trace_log(
        size, "dynamo_start", lambda n: {"stack": _start(n)["stack"] * 30_000}
    ),
    "metrics": lambda size: trace_log(
        size, "compilation_metrics", lambda n: {"co_name": f"f{n}", "co_filename": f"/u/{n}.py"}
    ),
    "trace_breaks": lambda size: trace_log(
        size, "artifact", lambda n: {"name": "dynamo_graph_break_reason"}, _break_payload
    ),
    "trace_recompiles": lambda size: trace_log(
        size,
        "artifact",
        lambda n: {"name": "recompile_reasons", "encoding": "json"},
        lambda n: json.dumps([f"{n}/0: L['x'].size()[0] == {n}"] * 5).encode(),
    ),
    "trace_guards": lambda size: trace_log(
        size,
        "dynamo_cpp_guards_str",
        lambda n: {},
        lambda n: b"TREE_GUARD_MANAGER:\n+- DIMENSION_DYNAMIC_MARKING_GUARD: " + b"| " * 20_000,
    ),
    "unknown_kinds": lambda size: trace_log(size, "new_kind", lambda n: {"a": n}, lambda n: b"x"),
    "kinds": lambda size: b"".join(
        _stamp(n) + b'{"kind%d": {}, "frame_id": %d}\n' % (n, n) for n in range(size // 80)
    ),
    "processes": lambda size: b"".join(
        b"V1115 00:00:01.000000 %d torch/x.py:1] [0/0] [__graph_breaks] x\n" % n
        for n in range(size // 65)
    ),
    "trace_processes": lambda size: b"".join(
        b'V1115 00:00:01.000000 %d torch/x.py:1] {"str": ["a", 0]}\n' % n for n in range(size // 58)
    ),
    "ranks": lambda size: b"".join(
        b"[rank%d]:V1115 00:00:01.000000 1 torch/x.py:1] [0/0] [__recompiles] x\n" % n
        for n in range(size // 72)
    ),
    "compile_ids": lambda size: b"".join(
        b"V1115 00:00:01.000000 1 torch/x.py:1] [%d/0] [__graph_breaks] Graph break in user code at"
        b" /u/%d.py:%d\n" % (n, n, n)
        for n in range(size // 111)
    ),
    "open_parens": lambda size: _stamp(1) + b"[0/0] [__recompiles] - 0/0: " + b"(" * size,
}


def _module(locs: Callable[[int], str], used: Callable[[int], int]) -> Callable[[int], bytes]:
    """An MLIR module whose operations name its locations."""

    def make(size: int) -> bytes:
        head = lzma.decompress(
            (GOLDEN / "console" / "ttlike.c02_item.head.log.xz").read_bytes()
        ).splitlines(keepends=True)
        start = next(n for n, line in enumerate(head) if line.startswith(b"#loc"))
        many = size // 120
        lines = [f"#loc{n} = loc({locs(n)})\n" for n in range(many)]
        lines += ["module @SyncTensorsGraph.12 {\n"]
        lines += [
            f"    %{n} = stablehlo.add %1, %2 : f32 loc(#loc{used(n)})\n" for n in range(many)
        ]
        return b"".join(head[:start]) + "".join(lines).encode() + b"}\n"

    return make


def _place_or(text: str) -> Callable[[int], str]:
    return lambda n: text.format(n, n - 1) if n else '"f"("/u/a.py":8:0)'


LOGS |= {
    "locs_callers": _module(_place_or("callsite(#loc0 at #loc{1})"), lambda n: n),
    "locs_callees": _module(_place_or("callsite(#loc{1} at #loc0)"), lambda n: n),
    "locs_doubled": _module(_place_or("callsite(#loc{1} at #loc{1})"), lambda n: n),
    "locs_backwards": _module(_place_or("callsite(#loc{1} at #loc0)"), lambda n: 20_000 - n),
    "locs_names": _module(_place_or('"f{0}"(#loc{1})'), lambda n: n),
    "locs_fused": _module(_place_or("fused[#loc{1}, #loc{1}, #loc0]"), lambda n: n),
    "locs_circle": _module(lambda n: f"callsite(#loc{n + 1} at #loc{n // 2})", lambda n: n),
    "chromium_nested": lambda size: trace_log(
        size,
        "chromium_event",
        lambda n: {},
        lambda n: json.dumps(
            {
                "name": "dynamo",
                "ts": n,
                "ph": "B" if n < size // 500 else "E",
                "pid": 0,
                "args": {"compile_id": f"{n}/0"},
            }
        ).encode(),
    ),
    "chromium_open": lambda size: trace_log(
        size,
        "chromium_event",
        lambda n: {},
        lambda n: b'{"name": "n%d", "ts": %d, "ph": "B", "pid": 0, "args": {}}' % (n, n),
    ),
    "output_graphs": lambda size: trace_log(
        size,
        "dynamo_output_graph",
        lambda n: {"sizes": {"a": [n]}},
        lambda n: (
            b"class GraphModule(torch.nn.Module):\n    def forward(self, x):\n"
            b"        y = x + %d\n        return (y,)" % n
        ),
    ),
    "symbols": lambda size: trace_log(
        size, "create_symbol", lambda n: {"symbol": f"s{n}", "val": str(n), "sources": [f"L{n}"]}
    ),
    "guards_added": lambda size: trace_log(
        size, "guard_added_fast", lambda n: {"expr": "s0 + " * 40 + str(n), "stack": [{"line": n}]}
    ),
    "huge_numbers_in_records": lambda size: trace_log(
        size,
        "dynamo_start",
        lambda n: {"stack": [{"line": 10**300, "name": -n, "filename": 9**99}]},
    ),
    "long_names": lambda size: trace_log(
        size,
        "dynamo_start",
        lambda n: {"stack": [{"line": 1, "name": "f" * 9000, "filename": "/u" * 9000}]},
    ),
    "text_guards": lambda size: (
        _stamp(1)
        + b"[0/0] [__guards] TREE_GUARD_MANAGER:\n"
        + b"".join(
            _stamp(n) + b"[0/0] [__guards] +- LAMBDA_GUARD: L['x'].size()[0] == %d  # y = x\n" % n
            for n in range(size // 120)
        )
    ),
    "text_recompiles": lambda size: b"".join(
        _stamp(n)
        + b"[0/%d] [__recompiles] Recompiling function f in /u/a.py:%d\n" % (n, n % 9)
        + _stamp(n)
        + b"[0/%d] [__recompiles]     triggered by the following guard failure(s):\n" % n
        + _stamp(n)
        + b"[0/%d] [__recompiles]     - 0/0: x.size()[0] == %d\n" % (n, n)
        for n in range(size // 330)
    ),
    "text_stack": lambda size: (
        _stamp(1)
        + b"[0/0] [__graph_breaks] Graph break in user code at /u/a.py:1\n"
        + b"".join(
            _stamp(1) + b'[0/0] [__graph_breaks]   File "/u/%d.py", line %d, in f\n' % (n, n)
            for n in range(size // 110)
        )
    ),
    "traceback_frames": lambda size: (
        b"Traceback (most recent call last):\n"
        + b"".join(
            b'  File "/u/%d.py", line %d, in f\n    y = x\n' % (n, n) for n in range(size // 45)
        )
        + b"RuntimeError: no\n"
    ),
    "tracebacks": lambda size: (
        b'Traceback (most recent call last):\n  File "/u/a.py", line 3, in f\n'
        b"    y = x\nRuntimeError: no\n" * (size // 90)
    ),
    "carriage_lines": lambda size: b"10%|#| 1/10\r" * (size // 12),
}

_STARTS = {
    "only": b"",
    "torch_logs": _stamp(1) + b"[0/0] [__graph_breaks] Graph break in user code at ",
    "recompiles": _stamp(1) + b"[0/0] [__recompiles]     - 0/0: ",
    "guards": _stamp(1)
    + b"[0/0] [__guards] TREE_GUARD_MANAGER:\n"
    + _stamp(2)
    + b"[0/0] [__guards] ",
    "trace": _stamp(1) + b'{"dynamo_start": {"stack": [',
    "payload": trace_log(1, "dynamo_output_graph", lambda n: {"sizes": {}}, lambda n: b"x"),
    "torch_xla": b"Compilation Analysis:   sync (",
    "tt_xla": b'#loc14 = loc("',
    "traceback": b'Traceback (most recent call last):\n  File "',
}
"""How a line begins that a reader of some format takes for its own."""
_PIECES = {
    "parens": b"(",
    "closing": b")",
    "brackets": b"[",
    "braces": b"{",
    "quotes": b'"',
    "apostrophes": b"'",
    "backslashes": b"\\",
    "bars": b"| ",
    "hashes": b"  # ",
    "colons": b"a: ",
    "slashes": b"/u",
    "dots": b"a.",
    "digits": b"9",
    "colours": b"\x1b[31m",
    "halves": b"\x1b[",
    "files": b'File "a", line 1, in f, ',
    "letters": "\u00e9".encode(),
    "broken": b"\xc3",
}
"""What the rest of it is, many times."""


def one_endless(start: bytes, piece: bytes) -> Callable[[int], bytes]:
    return lambda size: start + piece * (size // len(piece))


LOGS |= {
    f"endless_{start}_{piece}": one_endless(_STARTS[start], _PIECES[piece])
    for start, piece in itertools.product(_STARTS, _PIECES)
}


def near_matches(line: bytes, seed: int, size: int) -> bytes:
    """A line again and again, each time with a letter too few."""
    rng = random.Random(seed)
    gone = [rng.randrange(len(line)) for _ in range(200)] if line else [0]
    some = b"".join(line[:at] + line[at + 1 :] + b"\n" for at in gone)
    return some * (size // len(some))


_NUMBER = re.compile(rb"(?<=[\s/\[@])\d{1,2}(?=[\s/\]:,])")


def again(data: bytes, size: int, *, numbered: bool = False) -> bytes:
    """Again and again; `numbered`: with other numbers each time."""
    if not numbered:
        return data * (size // max(len(data), 1) + 1)
    parts: list[bytes] = []
    while sum(map(len, parts)) < size:
        parts.append(_NUMBER.sub(partial(_higher, len(parts)), data))
    return b"".join(parts)


def _higher(more: int, found: re.Match[bytes]) -> bytes:
    return b"%d" % (int(found[0]) + more)


def packed_logs(opener: Callable[..., Any], log: Path, size: int) -> None:
    """Logs that unpack to a thousand times their size."""
    with opener(log, "wb") as file:
        for _ in range(300):
            file.write(b"\n" * size)


def zip_bomb(target: Path, size: int) -> None:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("run.json", '{"schema":1,"run":"r","tool":"1"}')
        for number in range(3):
            with archive.open(f"events-{number}.jsonl", "w") as file:
                for _ in range(100):
                    file.write(b"\n" * size)


def zip_of_small_bombs(target: Path, size: int) -> None:
    """Each below what is free."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("run.json", '{"schema":1,"run":"r","tool":"1"}')
        for number in range(200):
            archive.writestr(f"events-{number}.jsonl", b"{}\n" * 5_000_000)


def zip_many_files(target: Path, size: int) -> None:
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("run.json", '{"schema":1,"run":"r","tool":"1"}')
        for number in range(size // 120):
            archive.writestr(f"events-{number}.jsonl", b"")


def zip_shared_data(target: Path, size: int) -> None:
    """Many entries of the list, one piece of data."""
    zip_small = target.with_suffix(".small")
    with zipfile.ZipFile(zip_small, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("run.json", '{"schema":1,"run":"r","tool":"1"}')
        archive.writestr("events-0.jsonl", b"{}\n" * 5_000_000)
        first = archive.getinfo("events-0.jsonl")
        for number in range(1, 400):
            info = zipfile.ZipInfo(f"events-{number}.jsonl")
            for name in ("compress_type", "CRC", "compress_size", "file_size", "header_offset"):
                setattr(info, name, getattr(first, name))
            archive.filelist.append(info)
    zip_small.rename(target)


def zip_many_artifacts(target: Path, size: int) -> None:
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("run.json", '{"schema":1,"run":"r","tool":"1"}')
        archive.writestr("events-0.jsonl", b"")
        for number in range(size // 190):
            archive.writestr(f"artifacts/{number:040x}.txt", b"")


def zip_same_name(target: Path, size: int) -> None:
    with warnings.catch_warnings(), zipfile.ZipFile(target, "w") as archive:
        warnings.simplefilter("ignore")
        archive.writestr("run.json", '{"schema":1,"run":"r","tool":"1"}')
        for _ in range(size // 120):
            archive.writestr("events-0.jsonl", b"")


def zip_long_names(target: Path, size: int) -> None:
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("run.json", '{"schema":1,"run":"r","tool":"1"}')
        for number in range(size // 120_000):
            archive.writestr("x/" * 30_000 + str(number), b"")


def zip_long_comment(target: Path, size: int) -> None:
    """The mark of a list's end, again and again."""
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("run.json", '{"schema":1,"run":"r","tool":"1"}')
        archive.comment = b"PK\5\6" * 16_000
    with target.open("ab") as file:
        file.write(b"PK\5\6" * (size // 4))


def zip_long_header(target: Path, size: int) -> None:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        words = json.dumps(["x"] * (size * 20 // 4))
        text = f'{{"schema":1,"run":"r","tool":"1","command":{words}}}'
        archive.writestr("run.json", text)
        archive.writestr("events-0.jsonl", b"")


ZIPS = {
    make.__name__: make
    for make in (
        zip_bomb,
        zip_of_small_bombs,
        zip_many_files,
        zip_shared_data,
        zip_many_artifacts,
        zip_same_name,
        zip_long_names,
        zip_long_comment,
        zip_long_header,
    )
}


class Report:
    """What was found so far."""

    def __init__(self) -> None:
        self.ran = 0
        self.missed: list[str] = []

    def run(self, case: str, name: str, command: list[str], folder: Path) -> Outcome:
        outcome = run_commands([command], folder)
        self.ran += 1
        problems = outcome.problems()
        page = folder / "page.html"
        if name == "html" and page.exists() and page.stat().st_size > LARGEST_PAGE:
            problems.append(f"a page of {page.stat().st_size / 1e6:.0f} MB")
        line = f"{case:28} {name:12} {outcome.seconds:6.1f} s {outcome.megabytes:6.0f} MB"
        verdict = "MISSED" if problems else "PASS"
        print(
            f"{line}  {verdict:6}  status {outcome.status}", *problems, sep="\n      ", flush=True
        )
        if problems:
            self.missed.append(f"{line}  {problems[0].splitlines()[-1]}")
        return outcome


_SCREEN = 5
"""How much smaller a case is at first."""


def may_miss(small: Outcome) -> bool:
    """Could it miss a limit at its full size? Time may grow as the square; memory that does so
    takes its time to fill."""
    return bool(
        small.problems()
        or small.seconds * _SCREEN**2 > MOST_S
        or small.megabytes * _SCREEN > MOST_MB / 2
    )


def check_runs(
    report: Report, size: int, chosen: Callable[[str], bool], only: list[str], *, screen: bool
) -> None:
    for name, make in RUNS.items():
        if not chosen(name):
            continue
        commands = [each for each in COMMANDS if not only or each in only]
        if screen:
            with hostile_run(make, size // _SCREEN) as folder:
                small = {each: run_commands([COMMANDS[each]], folder) for each in commands}
            commands = _worth_running(report, name, small)
            if not commands:
                continue
        with hostile_run(make, size) as folder:
            if "import" in commands and "export" not in commands:
                run_commands([COMMANDS["export"]], folder)
            for each in commands:
                report.run(name, each, COMMANDS[each], folder)


def _worth_running(report: Report, case: str, small: dict[str, Outcome]) -> list[str]:
    """Of the commands that were run at a fifth of the size, those to run at the full size."""
    found = [name for name, outcome in small.items() if may_miss(outcome)]
    report.ran += len(small) - len(found)
    most = max((one.seconds for one in small.values()), default=0)
    told = ", ".join(found) or "none, PASS"
    print(f"{case:28} at a fifth: at most {most:.1f} s; to run in full: {told}", flush=True)
    return found


@contextlib.contextmanager
def hostile_run(make: Callable[[HostileRun], None], size: int) -> Iterator[Path]:
    """The folder in which the run is."""
    with tempfile.TemporaryDirectory() as scratch:
        run = HostileRun(Path(scratch), size)
        make(run)
        run.close()
        yield Path(scratch)


def log_cases(seed: int) -> Iterator[tuple[str, Callable[[Path, int], object]]]:
    """A name, and what writes the log or the folder of logs."""

    def written(make: Callable[[int], bytes]) -> Callable[[Path, int], object]:
        return lambda log, size: log.write_bytes(make(size))

    for name, make in LOGS.items():
        yield name, written(make)
    yield "gz", partial(packed_logs, gzip.open)
    yield "xz", partial(packed_logs, lzma.open)
    yield "log_folder", log_folder
    for path in sorted(GOLDEN.rglob("*.xz")):
        name = path.name.removesuffix(".log.xz")
        data = lzma.decompress(path.read_bytes())
        yield f"again.{name}", written(partial(again, data))
        yield f"other.{name}", written(partial(again, data, numbered=True))
    for number, (name, line) in enumerate(golden_lines(seed)):
        near = partial(near_matches, line, seed + number)
        end = line[len(line) // 2 :] or b" "
        yield f"lines{number}.{name}", written(partial(again, line + b"\n"))
        yield f"long{number}.{name}", written(one_endless(line[: len(line) // 2], end))
        yield f"near{number}.{name}", written(near)
        yield f"packed{number}.{name}", written(partial(_packed, near))


def _packed(make: Callable[[int], bytes], size: int) -> bytes:
    return gzip.compress(make(size), 1)


_LOG_COMMANDS = {
    "logs": ["logs", "some.log", "-o", "run"],
    "logs --json": ["logs", "some.log", "--json", "-o", "2"],
    "html": COMMANDS["html"],
    "redact": COMMANDS["redact"],
}


def check_logs(
    report: Report,
    size: int,
    chosen: Callable[[str], bool],
    only: list[str],
    *,
    seed: int,
    screen: bool,
) -> None:
    for name, write in log_cases(seed):
        if not chosen(name):
            continue
        commands = [each for each in _LOG_COMMANDS if not only or each in only]
        if screen:
            small = {}
            with tempfile.TemporaryDirectory() as scratch:
                write(Path(scratch, "some.log"), size // _SCREEN)
                for each in commands:
                    if each.startswith("logs") or Path(scratch, "run").exists():
                        small[each] = run_commands([_LOG_COMMANDS[each]], Path(scratch))
            commands = _worth_running(report, name, small)
        if commands:
            with tempfile.TemporaryDirectory() as scratch:
                write(Path(scratch, "some.log"), size)
                if "logs" not in commands:
                    run_commands([_LOG_COMMANDS["logs"]], Path(scratch))
                for each in commands:
                    if each.startswith("logs") or Path(scratch, "run").exists():
                        report.run(name, each, _LOG_COMMANDS[each], Path(scratch))


def log_folder(folder: Path, size: int) -> None:
    """Hardly a line in each of very many."""
    folder.mkdir()
    for number in range(size // 500):
        text = _stamp(number) + b"[0/0] [__graph_breaks] Graph break in user code at /u/a.py:1\n"
        (folder / f"rank{number}.log").write_bytes(text)


def check_zips(report: Report, size: int, chosen: Callable[[str], bool]) -> None:
    for name, make in ZIPS.items():
        if chosen(name):
            with tempfile.TemporaryDirectory() as scratch:
                make(Path(scratch) / "run.zip", size)
                report.run(name, "import", COMMANDS["import"], Path(scratch))
                held = sum(
                    f.stat().st_size for f in Path(scratch, "home").rglob("*") if f.is_file()
                )
                print(f"      {held / 1e6:.0f} MB on disk")
                shutil.rmtree(Path(scratch) / "home", ignore_errors=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mb", type=float, default=10.0)
    parser.add_argument("--only", nargs="*", default=[], help="Cases that begin like this.")
    parser.add_argument("--commands", nargs="*", default=[], help="Only these, of a run folder.")
    parser.add_argument("--what", nargs="*", default=["runs", "logs", "zips"])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--screen", action="store_true", help="Small first; see above.")
    parser.add_argument("--list", action="store_true")
    asked = parser.parse_args()
    if asked.list:
        print(*RUNS, *LOGS, *ZIPS, sep="\n")
        return 0
    size = int(asked.mb * 1e6)
    warm_up()
    report = Report()

    def chosen(name: str) -> bool:
        return not asked.only or name.startswith(tuple(asked.only))

    if "runs" in asked.what:
        check_runs(report, size, chosen, asked.commands, screen=asked.screen)
    if "logs" in asked.what:
        check_logs(report, size, chosen, asked.commands, seed=asked.seed, screen=asked.screen)
    if "zips" in asked.what:
        check_zips(report, size, chosen)
    limits = f"{MOST_S} s or {MOST_MB} MB"
    print(f"\n{report.ran} commands, {len(report.missed)} above {limits}, or failed:")
    print(*report.missed, sep="\n")
    return 1 if report.missed else 0


if __name__ == "__main__":
    sys.exit(main())
