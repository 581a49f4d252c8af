"""Events survive their JSON; garbage never raises anything but UnreadableLine."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import event, frame
from compilescope.record.bodies import (
    CacheEntryMiss,
    FailedGuard,
    GraphBreak,
    Recompile,
    Unknown,
)
from compilescope.record.event import Event, UnreadableLine, decode, encode
from compilescope.record.stack import CodeRef

CODE = CodeRef("/a/model.py", 6, "forward", resumed_at=9)


@pytest.mark.parametrize(
    "body",
    [
        GraphBreak(
            gb_type="Data-dependent branching", gb_id="GB0170", hints=("a", "b"), frame=CODE
        ),
        Recompile(
            CODE, (CacheEntryMiss("0/0", (FailedGuard("x == 1", "x", "1", "2"),), "x == 1"),)
        ),
    ],
)
def test_round_trip(body: object) -> None:
    before = event(body, stack=(frame(),), compile_id="0/0_1", test="tests/test_a.py::test_b")
    assert decode(encode(before)) == before


def test_unknown_kind_is_kept_whole() -> None:
    line = json.dumps(
        {"id": "0.1", "time_ns": 1, "pid": 2, "body": {"kind": "FromTheFuture", "x": [1, {"y": 2}]}}
    ).encode()
    read = decode(line)
    assert read.body == Unknown({"kind": "FromTheFuture", "x": [1, {"y": 2}]})
    assert json.loads(encode(read)) == json.loads(line)


def test_unknown_fields_of_a_known_kind_do_no_harm() -> None:
    body = b'{"kind":"CudagraphSkip","reason":"r","z":0}'
    line = b'{"id":"0.1","time_ns":1,"pid":2,"new":1,"body":' + body + b"}"
    assert decode(line).body.reason == "r"


@given(st.binary(max_size=200))
def test_garbage_is_unreadable(line: bytes) -> None:
    with pytest.raises(UnreadableLine):
        decode(line)


@given(st.integers(min_value=0, max_value=10_000))
def test_a_cut_line_is_unreadable(cut: int) -> None:
    line = encode(event(GraphBreak(gb_type="t"), stack=(frame(),)))
    with pytest.raises(UnreadableLine):
        decode(line[: cut % len(line)])


def test_the_site_is_the_innermost_frame_that_torch_did_not_write() -> None:
    inside = frame(
        3, file="/v/lib/python3.11/site-packages/torch/_dynamo/polyfills/a.py", origin="torch"
    )
    library = frame(5, file="/v/lib/python3.11/site-packages/timm/a.py", origin="library")
    stdlib = frame(7, file="/usr/lib/python3.11/contextlib.py", origin="stdlib")
    assert event(GraphBreak("t"), stack=(frame(), library, stdlib, inside)).site == library
    assert event(GraphBreak("t"), stack=(stdlib, inside)).site == stdlib
    assert event(GraphBreak("t"), stack=(inside,)).site == inside
    assert event(GraphBreak("t")).site is None


@pytest.mark.parametrize("number", ["9" * 20, "-" + "9" * 400, "1" + "0" * 30])
def test_a_number_that_nothing_can_be_reckoned_with(number: str) -> None:
    line = b'{"id":"0.1","time_ns":%s,"pid":1,"body":{"kind":"Nothing","n":[%s]}}'
    with pytest.raises(UnreadableLine):
        decode(line % (b"1", number.encode()))
    with pytest.raises(UnreadableLine):
        decode(line % (number.encode(), b"1"))


def test_digits_in_a_text_are_no_number() -> None:
    line = (
        b'{"id":"0.1","time_ns":1,"pid":1,"body":{"kind":"Nothing","n":": 999999999999999999999"}}'
    )
    assert decode(line).time_ns == 1


def test_text_that_is_not_utf8_is_recorded() -> None:
    odd = Event(id="0.1", time_ns=1, pid=1, test="\udcff.py", body=Unknown({"kind": "x"}))
    assert decode(encode(odd)).test == "\\xff.py"
