"""Lines that would take a reader minutes or gigabytes, were it not bounded: each is simply read."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from compilescope.logs import run_writer
from compilescope.logs.reader import OUR_FAULT, read_logs
from compilescope.logs.text.mlir import Locs
from logs.traces import read_bytes, record

STAMP = b"V1115 00:00:01.000000 4242 torch/_dynamo/x.py:12] [0/0] "
TAGS = (b"[rank0]: ", b"[default0]: ", b"[1,2]<stdout>:", b"(W pid=1) ", b"(a b=c, pid=1) ")
STARTS = (
    STAMP + b"[__recompiles] ",
    STAMP + b"[__graph_breaks] Graph break in user code at ",
    STAMP + b"[__guards] TREE_GUARD_MANAGER:\n" + STAMP + b"[__guards] +- ",
    STAMP + b"[__graph_code] def forward(self",
    STAMP + b"Step 2: calling compiler function ",
    STAMP + b"skipping: f (reason: ",
    STAMP + b"COMPILING GRAPH due to GraphCompileReason(reason='a', user_stack=[",
    b"Compilation Analysis: ",
    b"pt-xla-profiler: ",
    b"loc(",
    b"#loc1 = loc(",
)
PARTS = (
    b" ",
    b"(",
    b"[a",
    b"a",
    b", file: a",
    b"<FrameSummary file a, line 1 in ",
    b"Graph break (",
)


def faults(data: bytes, folder: Path) -> list[str]:
    log = folder / "some.log"
    log.write_bytes(data)
    found = read_logs([str(log)], folder / "home").sources
    return [text for one in found for text in one.problems if OUR_FAULT in text]


@pytest.mark.parametrize("tag", TAGS)
def test_many_tags_before_a_line(tag: bytes, tmp_path: Path) -> None:
    """Two ways to read a tag are two to the power of their number for all of them."""
    lines = (tag * 60 + b"text\n", tag * 60 + STAMP + b"text\n")
    assert not faults(STAMP + b"x\n" + b"".join(lines) * 5, tmp_path)


def test_long_lines(tmp_path: Path) -> None:
    lines = [start + part * (15_000 // len(part)) for start in STARTS for part in PARTS]
    assert not faults(b"\n".join(lines), tmp_path)


def test_numbers_of_too_many_digits(tmp_path: Path) -> None:
    digits = b"9" * 5000
    module = (
        b"module @a {\n  func.func @main() {\n    %0 = a.b loc(#loc1)\n  }\n}\n"
        b'#loc1 = loc("f"("a.py":' + digits + b":1))\n"
    )
    text = "2026-01-01 00:00:00.000 (   1.000s) [        1A2B3C4]module_builder.cc:1     1| MLIR\n"
    assert not faults(text.encode() + module, tmp_path)


def test_more_processes_than_any_job_has(tmp_path: Path) -> None:
    data = b"".join(record("str", ["a", 0], pid=pid, frame=None) for pid in range(5000))
    _, source = read_bytes(data, tmp_path / "run")
    assert source.tally.records == 4096
    assert source.tally.unread == 5000 - 4096


def test_locations_that_lead_to_one_another_take_no_more_than_their_length() -> None:
    """Each has the one before it as its callee, or twice: their frames would be as many as the
    square of their number."""
    for form in (b"callsite(#loc%d at #loc0)", b"callsite(#loc%d at #loc%d)"):
        locs = Locs()
        locs.add(b'#loc0 = loc("f"("/u/a.py":8:0))')
        for number in range(1, 2000):
            inner = form % ((number - 1,) * form.count(b"%d"))
            locs.add(b"#loc%d = loc(%s)" % (number, inner))
        tracemalloc.start()
        for number in range(2000):
            assert 1 <= len(locs.stack(f"#loc{number}")) <= 400
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 20_000_000


def test_processes_of_one_id_are_told_apart_without_asking_for_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = 0
    taken = run_writer._is_taken

    def counted(folder: str, pid: int) -> bool:
        nonlocal asked
        asked += 1
        return taken(folder, pid)

    monkeypatch.setattr(run_writer, "_is_taken", counted)
    # Several writers: none knows what the others took.
    claimed = [run_writer._SharedFolder(str(tmp_path)).claim(0, 7) for _ in range(300)]
    assert [each.pid for each in claimed] == [7 + life * 10_000_000 for life in range(300)]
    assert len({each.path for each in claimed}) == 300
    assert asked < 300 * 20


def test_processes_of_one_writer_that_share_an_id(tmp_path: Path) -> None:
    first, second, third = (run_writer._SharedFolder(str(tmp_path)) for _ in range(3))
    first.claim(0, 7)
    claimed = [second.claim(0, 7) for _ in range(3)]
    pids = [each.pid for each in (*claimed, third.claim(0, 7), second.claim(0, 7))]
    assert pids == [7 + life * 10_000_000 for life in range(1, 6)]
