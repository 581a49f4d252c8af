"""The engine: whatever surrounds and damages lines, and who wrote them."""

# Lines of logs are as long as they are.
# ruff: noqa: E501

from __future__ import annotations

import pytest

from compilescope.record.bodies import CompileFailed, GraphBreak, GraphCompiled, LogLine
from compilescope.record.run import Run
from logs.consoles import facts, golden, of, read
from logs.test_text_tt import graph

BREAK = golden("t213.c02_item")


def same(run: Run, other: Run) -> None:
    assert facts(run) == facts(other)
    assert [b.gb_id for b in of(run, GraphBreak)] == [b.gb_id for b in of(other, GraphBreak)]


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data.replace(b"\n", b"\r\n"),
        lambda data: data.replace(b"[0/0]", b"\x1b[33m[0/0]\x1b[0m"),
        lambda data: data.replace(b"\n", b"\n\0\0\0"),
        lambda data: b"\xff\xfe" + data.replace(b"RESULT", b"\xc3\x28 RESULT"),
        lambda data: data.replace(b"\n", b"\n\r  5%|###      | 1/20\r", 3),
        lambda data: b"\n".join([b"my own line %d" % n for n in range(500)]) + b"\n" + data,
    ],
    ids=["crlf", "ansi", "nul", "utf8", "progress-bar", "own-lines"],
)
def test_damage_changes_nothing(damage) -> None:  # type: ignore[no-untyped-def]
    run, tally = read(damage(BREAK))
    same(run, read(BREAK)[0])
    assert tally.unread == 0


@pytest.mark.parametrize(
    ("tag", "rank"),
    [
        (b"[rank3]:", 3),
        (b"[1,2]<stderr>:", 2),
        (b"[default5]:", 5),
        (b"(EngineCore pid=4) ", 0),
        (b"(EngineCore_DP0 pid=4) ", 0),
        (b"(VllmWorker rank=7 pid=4) ", 7),
        (b"(RayWorkerWrapper pid=4, ip=10.0.0.1) ", 0),
        (b"[1,2]<stderr>:[rank2]:", 2),
        (b"3: ", 3),
    ],
)
def test_tags(tag: bytes, rank: int) -> None:
    run, _ = read(b"".join(tag + line for line in BREAK.splitlines(keepends=True)))
    same(run, read(BREAK)[0])
    assert {event.rank for event, _ in run.of(GraphBreak)} == {rank}


def test_two_processes_line_by_line() -> None:
    other = BREAK.replace(b" 6949 ", b" 6950 ")
    lines = zip(BREAK.splitlines(keepends=True), other.splitlines(keepends=True), strict=True)
    run, tally = read(b"".join(part for pair in lines for part in pair))
    assert {event.pid for event, _ in run.of(GraphBreak)} == {6949, 6950}
    assert tally.interleaved == "tagged"
    assert tally.unread == 0


def test_no_end_of_processes() -> None:
    line = b"V1115 00:19:43.591000 %d torch/_dynamo/x.py:1] [0/0] [__recompiles] Recompiling function f in /m.py:6\n"
    run, tally = read(b"".join(line % pid for pid in range(1, 9000)))
    assert facts(run)["Recompile"] == 8999
    assert tally.interleaved == "tagged"


def test_unnamed_lines_among_several_processes_are_ambiguous() -> None:
    other = BREAK.replace(b" 6949 ", b" 6950 ")
    _, tally = read(BREAK + graph() + other + graph())
    assert tally.interleaved == "ambiguous"


def test_line_behind_what_was_printed_without_newline() -> None:
    at = BREAK.index(b"V1115 00:19:43.591000")
    run, _ = read(BREAK[:at] + b"loss 0.25 " + BREAK[at:])
    same(run, read(BREAK)[0])


def test_endless_line() -> None:
    run, _ = read(b"x" * 30_000_000 + b"\n" + BREAK)
    same(run, read(BREAK)[0])


def test_cut_in_the_middle_of_a_line() -> None:
    at = BREAK.index(b"Step 2: calling")
    _, tally = read(BREAK[: at + 9])
    assert tally.cut_tail
    assert not read(b"loss 0.3")[1].cut_tail


def test_program_that_never_ended_is_a_cut() -> None:
    at = BREAK.index(b"I1115 00:19:43.854000")
    assert read(BREAK[:at])[1].cut_tail
    assert not read(BREAK)[1].cut_tail


def test_cut_head_by_compile_ids() -> None:
    at = BREAK.index(b"V1115 00:19:43.743000")
    run, tally = read(BREAK[at:])
    assert tally.cut_head
    assert facts(run)["GraphCaptured"] == 1


def test_year_of_lines_without_one() -> None:
    december = BREAK.replace(b"1115 ", b"1231 ")
    january = BREAK.replace(b"1115 ", b"0101 ").replace(b"[0/", b"[7/").replace(b"[1/", b"[8/")
    run, _ = read(december + january)
    times = [event.time_ns for event, _ in run.of(GraphBreak)]
    assert 0 < times[1] - times[0] < 2 * 86_400 * 10**9


def test_exception_of_the_compiler() -> None:
    text = b"""Traceback (most recent call last):
  File "/home/me/m.py", line 20, in <module>
    f(x)
  File "/venv/lib/python3.11/site-packages/torch/_dynamo/exc.py", line 700, in unimplemented
    raise Unsupported(msg)
torch._dynamo.exc.Unsupported: Data-dependent branching
  Explanation: Detected data-dependent branching.
  Hint: Use `torch.cond`.

  Developer debug context: attempted to jump with TensorVariable()

 For more details about this graph break, please visit: https://x/gb/gb0170.html

from user code:
   File "/home/me/m.py", line 8, in f
    if x.sum() > 0:

Set TORCHDYNAMO_VERBOSE=1 for the internal stack trace
"""
    run, _ = read(BREAK + text + b"done\n")
    (failed,) = of(run, CompileFailed)
    assert (failed.error, failed.gb_id, failed.hints) == (
        "Unsupported",
        "GB0170",
        ("Use `torch.cond`.",),
    )
    ((event, _),) = list(run.of(CompileFailed))
    assert event.site is not None and event.site.line == 8


def test_exception_of_the_program() -> None:
    text = b'Traceback (most recent call last):\n  File "m.py", line 2, in f\n    g()\nValueError: Error code: 13\n'
    run, _ = read(b"hello\n" + text + b"bye\n")
    assert [(n.system, n.level, n.text) for n in of(run, LogLine)] == [
        ("program", "error", "ValueError: Error code: 13")
    ]


def test_everything_in_one_file() -> None:
    parts = [BREAK, golden("xla_lazy.c02_item"), graph(), golden("flags.c07_t213_recompiles")]
    run, tally = read(b"\n".join(parts))
    assert tally.formats == {"torch-logs", "torch-xla", "tt-xla"}
    assert len(of(run, GraphCompiled)) == 3
    assert facts(run)["Recompile"] == 1


def test_nothing_at_all() -> None:
    for data in (b"", b"\n", b"\0\0\0", b"hello", b"\r\n\r\n"):
        run, tally = read(data)
        assert run.events == []
        assert tally.unread == 0
