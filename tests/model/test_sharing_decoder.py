"""Lines read with what is equal in them shared: the events are those that `decode` gives."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import event, frame
from compilescope.record.bodies import (
    CacheEntryMiss,
    CompileTime,
    FailedGuard,
    GraphBreak,
    Recompile,
)
from compilescope.record.equal_values import SharingDecoder
from compilescope.record.event import UnreadableLine, decode, encode
from compilescope.record.run import read_run
from compilescope.record.stack import CodeRef
from compilescope.record.values import ValueFact
from samples import RUNS, full_run, store


@pytest.mark.parametrize("name", RUNS)
def test_every_kind_of_event_reads_as_before(name: str) -> None:
    decoder = SharingDecoder()
    lines = [encode(each) for each in RUNS[name].events]
    for line in [*lines, *lines]:
        assert decoder.decode(line) == decode(line)


def test_equal_stacks_and_bodies_are_one_object() -> None:
    decoder, body = SharingDecoder(), full_run().events[2].body
    one, other = (
        decoder.decode(encode(event(body, number=number, stack=(frame(), frame(9)))))
        for number in (1, 2)
    )
    assert one.id != other.id
    assert one.stack is other.stack and one.body is other.body


def test_recompiles_of_one_function_share_the_guards_that_failed() -> None:
    code = CodeRef("model.py", 3, "forward")
    failed = FailedGuard("x.size()[0] == 2", "x.size()[0]", "2", "3", frame=frame(line=4))
    lines = [
        encode(
            event(Recompile(code, (CacheEntryMiss(f"0/{n}", (failed,), "x", n, "0/9"),), "limit"))
        )
        for n in range(2)
    ]
    decoder = SharingDecoder()
    first, second = (decoder.decode(line).body for line in lines)
    assert [first, second] == [decode(line).body for line in lines]
    assert isinstance(first, Recompile) and isinstance(second, Recompile)
    assert type(first) is Recompile and type(first.entries[0]) is CacheEntryMiss
    assert first.entries[0].failed is second.entries[0].failed


def test_guards_that_no_version_writes_are_kept_as_an_unknown_event() -> None:
    line = encode(event(Recompile(CodeRef("model.py", 3, "forward"), (CacheEntryMiss("0/0"),))))
    broken = line.replace(b'"compile_id":"0/0"', b'"compile_id":"0/0","failed":[{"guard":1}]')
    assert broken != line
    assert SharingDecoder().decode(broken) == decode(broken)


def test_breaks_on_different_lines_share_the_values_that_they_saw() -> None:
    decoder = SharingDecoder()
    values = {
        "x": ValueFact("tensor", "torch.Tensor", shape=(2, 3)),
        "n": ValueFact("number", "int"),
    }
    breaks = [
        GraphBreak("Tensor.item", "GB0170", "why", frame=CodeRef("a.py", line, "f"), values=values)
        for line in (1, 2)
    ]
    one, other = (
        decoder.decode(encode(event(body, number=n))).body for n, body in enumerate(breaks)
    )
    assert [one, other] == breaks and type(one) is GraphBreak
    assert isinstance(one, GraphBreak) and isinstance(other, GraphBreak)
    assert one.values is other.values and one.explanation is other.explanation


@given(st.binary(max_size=200))
def test_garbage_is_unreadable_here_too(line: bytes) -> None:
    with pytest.raises(UnreadableLine):
        SharingDecoder().decode(line)


@pytest.mark.parametrize("space", ["", " ", "\t"])
@pytest.mark.parametrize("field", ['"pid":', '"line":', '"duration_ns":'])
def test_numbers_that_only_python_holds_are_unreadable_here_too(field: str, space: str) -> None:
    """Whatever field they are in: rules divide and multiply them."""
    body = CompileTime(5, frame=CodeRef("a.py", 1, "f"))
    line = encode(event(body, stack=(frame(),))).decode()
    assert field in line
    number = re.search(f"{field}-?\\d+", line)
    assert number is not None
    long = line.replace(number[0], f"{field}{space}{10**30}").encode()
    for read in (decode, SharingDecoder().decode):
        with pytest.raises(UnreadableLine, match="too large"):
            read(long)


def test_events_are_found_by_their_ids_in_order_of_time(tmp_path: Path) -> None:
    run = read_run(store(full_run(), tmp_path, "abc123-full"))
    wanted = [each.id for each in run.events[3:6]]
    assert [each.id for each in run.events_with([*reversed(wanted), "9.9"])] == wanted


def test_bodies_that_never_come_again_are_read_with_their_lines() -> None:
    code = CodeRef("model.py", 3, "forward")
    values = {"x": ValueFact("tensor", "torch.Tensor", shape=(2, 3))}
    batches = [
        [
            encode(event(CompileTime(batch * 100 + n, frame=code), number=n, stack=(frame(),)))
            for n in range(20)
        ]
        + [encode(event(GraphBreak("Tensor.item", "GB0170", "why", frame=code, values=values)))]
        for batch in range(20)
    ]
    decoder = SharingDecoder()
    read = [decoder.decode_lines(b"".join(line + b"\n" for line in lines)) for lines in batches]
    assert read == [[decode(line) for line in lines] for lines in batches]
    breaks = [each.body for events in read for each in events if isinstance(each.body, GraphBreak)]
    assert all(type(each) is GraphBreak and each.values == values for each in breaks)
    assert read[3][0].stack is read[19][5].stack
    large = batches[1][0].replace(b'"duration_ns":100', b'"duration_ns":' + b"9" * 30)
    assert large != batches[1][0]
    for _ in range(20):
        with pytest.raises(UnreadableLine):
            decoder.decode_lines(large + b"\n")
