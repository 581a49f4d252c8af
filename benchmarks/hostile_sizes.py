"""Inputs of a few megabytes that could cost far more, each read within limits of time and memory.

    python benchmarks/hostile_sizes.py [--mb 10] [--only NAME...] [--list] [--what runs logs zips]
                                       [--commands NAME...]

Run folders: every kind of event, thousands of times the same, or with other names each time, or few
with very long texts; one long line, a very deep stack, a graph of 200,000 nodes, source code nested
as deep as it is long, an artifact that every event names. Logs: lines of one character, one line, a
line of each real log repeated, or the end of one repeated within it, whole real logs repeated with
other numbers. Zips: bombs, lists of files that lie. On each, the commands that would read it run in
forked children; PASS or MISSED: no exception, and no child above the limits (10 s of CPU, 300 MB
over the parent).
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


def deep_stack(run: HostileRun) -> None:
    stack = tuple(frame(n + 1, f"/u/m{n}.py") for n in range(run.size // 160))
    run.event(graph_break(), compile_id="0/0", stack=stack)
    run.event(
        sample(bodies.Recompile, Texts(0, distinct=True)), compile_id="0/1", stack=stack[:50_000]
    )


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


def long_source(run: HostileRun) -> None:
    """A file of short lines, with a break in many of them."""
    line = "    y = f(x)\n"
    text = "import torch\n\ndef forward(x):\n" + line * (run.size // 2 // len(line))
    run.event(bodies.SourceSeen("/u/a.py", run.artifacts.put(text, "py")))
    for number in range(2000):
        body = graph_break(frame=CodeRef("/u/a.py", 3, "forward"))
        run.event(body, compile_id=f"{number}/0", stack=(frame(4 + number * 50),))


def many_sources(run: HostileRun) -> None:
    def one(number: int) -> tuple[Any, dict[str, Any]]:
        file = f"/u/m{number // 2}.py"
        if number % 2:
            code = CodeRef(file, 1, "forward")
            return graph_break(frame=code, within=code), {"stack": (frame(2, file),)}
        text = run.artifacts.put("def forward(x):\n    y = f(x)\n", "py")
        return bodies.SourceSeen(file, text), {}

    run.fill(one)


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


def tiny_files(run: HostileRun) -> None:
    """Hardly a byte in each: what a file costs beside what it holds."""
    for number in range(run.size // 100):
        (run.folder / f"events-{number + 1}.jsonl").write_bytes(b"{}\n")


def many_threads(run: HostileRun) -> None:
    """Each event of another thread, rank and epoch."""

    def one(number: int) -> tuple[Any, dict[str, Any]]:
        fields = {"thread": number, "rank": number % 997, "epoch": number % 991}
        return graph_break(), {"compile_id": f"{number}/0", "stack": (frame(),), **fields}

    run.fill(one)


RUNS: dict[str, Callable[[HostileRun], None]] = {
    make.__name__: make
    for make in (
        one_long_line,
        one_endless_line,
        deep_json,
        huge_numbers,
        many_keys,
        deep_stack,
        guard_list,
        guard_tree,
        shared_artifact,
        graph_text,
        graph_nodes,
        long_source,
        many_sources,
        long_header,
        many_processes,
        many_event_files,
        nested_compilations,
        because_chain,
        tiny_files,
        many_threads,
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
    "unknown_kinds": lambda size: trace_log(size, "new_kind", lambda n: {"a": n}, lambda n: b"x"),
    "processes": lambda size: b"".join(
        b"V1115 00:00:01.000000 %d torch/x.py:1] [0/0] [__graph_breaks] x\n" % n
        for n in range(size // 65)
    ),
    "open_parens": lambda size: _stamp(1) + b"[0/0] [__recompiles] - 0/0: " + b"(" * size,
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


def check_runs(report: Report, size: int, chosen: Callable[[str], bool], only: list[str]) -> None:
    for name, make in RUNS.items():
        if not chosen(name):
            continue
        commands = [each for each in COMMANDS if not only or each in only]
        with hostile_run(make, size) as folder:
            if "import" in commands and "export" not in commands:
                run_commands([COMMANDS["export"]], folder)
            for each in commands:
                report.run(name, each, COMMANDS[each], folder)


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
) -> None:
    for name, write in log_cases(seed):
        if not chosen(name):
            continue
        commands = [each for each in _LOG_COMMANDS if not only or each in only]
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
        check_runs(report, size, chosen, asked.commands)
    if "logs" in asked.what:
        check_logs(report, size, chosen, asked.commands, seed=asked.seed)
    if "zips" in asked.what:
        check_zips(report, size, chosen)
    limits = f"{MOST_S} s or {MOST_MB} MB"
    print(f"\n{report.ran} commands, {len(report.missed)} above {limits}, or failed:")
    print(*report.missed, sep="\n")
    return 1 if report.missed else 0


if __name__ == "__main__":
    sys.exit(main())
