"""Small inputs that would cost much: without bounds each takes minutes, gigabytes, or a crash."""

from __future__ import annotations

import ast
from pathlib import Path

import msgspec
import pytest

from builders import event
from compilescope.base.errors import ToolError
from compilescope.record.bodies import CudagraphSkip
from compilescope.record.error_text import innermost_cause, user_place
from compilescope.record.event import encode
from compilescope.record.eventfile import LONGEST_LINE, EventReader
from compilescope.record.graph import decode_graph
from compilescope.record.guards import (
    WholeFiles,
    count_kinds,
    decode_guards,
    guard_place,
    read_guard_tree,
    without_comment,
)
from compilescope.record.header import FILE_NAME, read_header
from compilescope.record.python_text import LARGEST, parse_expression, parse_python, read_literal

MARKING = "DIMENSION_DYNAMIC_MARKING_GUARD"


def lines(*numbers: int) -> bytes:
    return b"".join(encode(event(CudagraphSkip("x"), number=n)) + b"\n" for n in numbers)


@pytest.mark.parametrize("ended", [True, False])
def test_a_line_that_is_too_long_is_skipped_and_counted(tmp_path: Path, ended: bool) -> None:
    """Nothing else is lost, and no more of it is held than a line may be."""
    path = tmp_path / "events-0.jsonl"
    with path.open("wb") as file:
        file.write(lines(1, 2) + b'{"id":"')
        file.seek(LONGEST_LINE * 3, 1)  # A hole: nothing is written.
        file.write(b'"}\n' + lines(3) if ended else b"x")
    reader = EventReader()
    found = [one.id for one in reader.read(path)]
    assert found == (["0.1", "0.2", "0.3"] if ended else ["0.1", "0.2"])
    assert reader.unread == 1
    assert reader.torn_files == ([] if ended else ["events-0.jsonl"])


def test_a_line_as_long_as_may_be(tmp_path: Path) -> None:
    path = tmp_path / "events-0.jsonl"
    one = encode(event(CudagraphSkip(""), number=1))
    long = encode(event(CudagraphSkip("x" * (LONGEST_LINE - len(one) - 1)), number=1)) + b"\n"
    assert len(long) == LONGEST_LINE
    path.write_bytes(long + lines(2))
    assert [found.id for found in EventReader().read(path)] == ["0.1", "0.2"]


def test_many_lines_that_are_no_events(tmp_path: Path) -> None:
    path = tmp_path / "events-0.jsonl"
    path.write_bytes(b"{}\n" * 30_000 + b"\n" * 1000 + lines(1))
    reader = EventReader()
    assert [found.id for found in reader.read(path)] == ["0.1"]
    assert reader.unread == 30_000


def test_a_header_that_is_too_large(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text('{"schema": 1, "run": "' + "x" * 5_000_000 + '"}')
    with pytest.raises(ToolError, match="too large"):
        read_header(tmp_path)


def test_bars_without_an_end() -> None:
    bars = b"| " * 100_000
    text = b"TREE_GUARD_MANAGER:\n+- %s: x\n%s" % (MARKING.encode(), bars)
    assert count_kinds(text) == {MARKING: 1}
    assert count_kinds(text.replace(b"| ", b"|")) == {MARKING: 1}


def test_guards_in_parts_are_counted_as_before() -> None:
    part = f"| +- {MARKING}: a\n"
    text = "TREE_GUARD_MANAGER:\n" + part * 3 + "| +- TYPE_MATCH: b\n" + part * 3
    assert count_kinds(text.encode()) == {MARKING: 2, "TYPE_MATCH": 1}
    assert [len(guard.checks) for guard in read_guard_tree(text)] == [3, 1, 3]


def test_a_guard_of_many_parts() -> None:
    found = read_guard_tree("+- LAMBDA_GUARD: a\n" * 20_000)
    assert [len(guard.checks) for guard in found] == [20_000]


def test_tensors_that_are_not_to_alias() -> None:
    """Each is guarded; all of their names stand with the first alone."""
    names = ", ".join(f"L['x{n}']" for n in range(5_000))
    text = f"+- GuardManager: source=L['x0'], accessed_by=a\n| +- NO: check_no_aliasing({names})\n"
    found = read_guard_tree(text)
    assert len(found) == 5_000
    assert sum(len(check) for guard in found for check in guard.checks) < 5_000_000
    assert count_kinds(text.encode())["NO_TENSOR_ALIASING"] == 5_000
    assert count_kinds(b"check_no_aliasing(a" * 50_000)


@pytest.mark.parametrize("part", [" ", "  # a", "  # a.py:1 in ", "  # a  # b.py:1 in f", "#"])
def test_comments_behind_checks(part: str) -> None:
    text = part * (30_000 // len(part))
    without_comment(text)
    guard_place(text, WholeFiles())


def test_the_line_in_a_comment() -> None:
    place = guard_place("x == 1  # if x:  # pack/a.py:12 in f (more)", WholeFiles(["/u/pack/a.py"]))
    assert place is not None
    assert (place.file, place.line, place.function) == ("/u/pack/a.py", 12, "f")
    assert place.source == "if x:"
    assert guard_place("x == 1  # pack/a.py:12 in f", WholeFiles()) is None


def test_a_file_that_has_the_root_alone_in_common_with_torch_is_found() -> None:
    """Torch takes one letter too many off it: `/srv/a.py` is `rv/a.py` there."""
    files = WholeFiles(["/srv/job/a.py", "/opt/x/rv/job/a.py", "/tmp/b.py"])
    assert files.find("mp/b.py") == "/tmp/b.py"
    assert (
        files.find("rv/job/a.py") == "/opt/x/rv/job/a.py"
    )  # The end of a name, so far as we know.
    assert WholeFiles(["/srv/job/a.py"]).find("rv/job/a.py") == "/srv/job/a.py"
    assert files.find("p/b.py") == "p/b.py"


def test_files_are_found_by_their_ends() -> None:
    known = {"/u/a.py": None, "/v/a.py": None}
    files = WholeFiles(known)
    assert files.find("v/a.py") == "/v/a.py"
    assert files.find("w/a.py") == "w/a.py"
    known["/u/w/b.py"] = None
    assert files.find("w/b.py") == "/u/w/b.py"
    many = WholeFiles([f"/u/{n}.py" for n in range(10_000)])
    assert [many.find(f"{n}.py") for n in (3, 9_999)] == ["/u/3.py", "/u/9999.py"]


@pytest.mark.parametrize("part", ["Error", "\n", " ", "a: got AError(a", "https://a", '  File "a'])
def test_messages(part: str) -> None:
    text = part * (30_000 // len(part))
    innermost_cause(text)
    user_place(f"from user code:\n{text}")


NESTED = {
    "parens": "(" * 100_000,
    "minus": "-" * 20_000 + "1",
    "attributes": "x" + ".y" * 20_000,
    "sums": "x + " * 20_000 + "x",
    "calls": "f(" * 190 + ")" * 190,
    "elif": "if x:\n  y\n" + "elif x:\n  y\n" * 2000,
    "blocks": "".join(" " * n + "if x:\n" for n in range(200)),
    "null": "x = '\0'",
    "surrogate": "x = '\ud800'",
    "digits": "x = " + "9" * 5000,
    "large": "x\n" * LARGEST,
}


@pytest.mark.parametrize("name", NESTED)
def test_python_that_is_too_deep_or_too_large(name: str) -> None:
    with pytest.raises(SyntaxError):
        parse_python(NESTED[name])
    with pytest.raises(ValueError):
        read_literal(NESTED[name])


def test_python_that_is_neither() -> None:
    text = "x = " + "f(" * 40 + ")" * 40 + "\n" + "y = 1\n" * 5000
    assert len(parse_python(text).body) == 5001
    assert isinstance(parse_expression(" + ".join("x" * 100)), ast.BinOp)
    assert read_literal(" {'a': (1, None)} ") == {"a": (1, None)}


def test_deep_json() -> None:
    deep = '{"nodes":[{"name":"x","op":"o","target":"t","graphs":[' * 3000
    for text in (deep, "[" * 100_000, '{"nodes":' + "[" * 100_000):
        with pytest.raises(msgspec.DecodeError):
            decode_graph(text)
    with pytest.raises(msgspec.DecodeError):
        decode_guards("[" * 100_000)
