"""Damaged traces: nothing raises, and what could not be read is counted or said."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from compilescope.logs.format import LogSource
from compilescope.logs.reader import OUR_FAULT, read_logs
from compilescope.logs.trace.reader import TraceReader
from compilescope.record.event import Event, encode
from logs.traces import golden, read_bytes, record


class Discarding:
    """A writer that only holds every event to be one that can be written."""

    def event(self, body, *, time_ns, pid=0, rank=0, compile_id=None, stack=(), epoch=0, thread=0):  # type: ignore[no-untyped-def]
        encode(
            Event(
                id="0.1", time_ns=time_ns, pid=pid, rank=rank, compile_id=compile_id,
                stack=tuple(stack), epoch=epoch, thread=thread, body=body,
            )
        )  # fmt: skip
        return "0.1"

    def artifact(self, text, kind):  # type: ignore[no-untyped-def]
        return f"{'0' * 40}.{kind}"

    def started(self, **told: object) -> None: ...
    def cut(self, **process: object) -> None: ...
    def sources(self, frames: object) -> None: ...


def read(data: bytes) -> LogSource:
    source = LogSource("x.log", 1_800_000_000 * 10**9)
    reader = TraceReader(Discarding(), source)  # type: ignore[arg-type]
    reader.feed(data)
    reader.finish()
    return source


def small() -> bytes:
    """A few records of each kind that is looked into."""
    kept: dict[bytes, list[bytes]] = {}
    for part in re.split(rb"(?<=\n)(?!\t)", golden("eager")):
        found = re.search(rb'\] \{"(\w+)"(?:: \{"name": "(\w+)")?', part[:400])
        if found and len(part) < 3000:
            kept.setdefault(found[1] + (found[2] or b""), []).append(part)
    return b"".join(part for parts in kept.values() for part in parts[:2])


def test_cut_at_every_byte() -> None:
    data = small()
    assert len(data) > 10_000
    whole = read(data).tally
    assert (whole.unread, whole.cut_tail) == (0, False)
    for end in range(0, len(data), 1 if len(data) < 20_000 else 7):
        tally = read(data[:end]).tally
        assert tally.records <= whole.records
        if end and data[end - 1] != 10:
            assert tally.cut_tail or tally.records == 0


def test_beginning_cut_off_at_every_byte() -> None:
    data = small()
    for start in range(0, len(data), 11):
        tally = read(data[start:]).tally
        if data[start : start + 1] == b"\t":
            assert tally.cut_head
            assert tally.unread


@pytest.mark.parametrize("seed", range(20))
def test_flipped_bits(seed: int) -> None:
    chance = random.Random(seed)
    data = bytearray(small())
    for _ in range(chance.choice((1, 20, 400))):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    read(bytes(data))


@pytest.mark.parametrize("seed", range(10))
def test_shuffled_lines(seed: int) -> None:
    lines = small().splitlines(keepends=True)
    random.Random(seed).shuffle(lines)
    read(b"".join(lines))


@pytest.mark.parametrize("seed", range(20))
def test_other_values(seed: int) -> None:
    """Well-formed, and full of what no torch would write."""
    chance = random.Random(seed)
    odd = [
        b"1e999",
        b"-1",
        b"9" * 40,
        b"null",
        b'"x"',
        b"[]",
        b"{}",
        b"1e17",
        b"true",
        b'"\\ud800"',
    ]
    value = re.compile(rb'(?<=[: \[])(\d+(?:\.\d+)?|null|true|"[^"\n]{0,40}")(?=[,}\]])')

    def other(found: re.Match[bytes]) -> bytes:
        return chance.choice(odd) if chance.random() < 0.1 else found[0]

    read(value.sub(other, small()))


@pytest.mark.parametrize(
    "line",
    [
        b"V1115 00:00:01.000000 1 a.py:1] {\n",
        b'V1115 00:00:01.000000 1 a.py:1] {"x\n',
        b'V1115 00:00:01.000000 1 a.py:1] {"chromium_event": {}}\n\tnot json\n',
        b'V9999 99:99:99.999999 9999999999 a.py:1] {"str": ["a", 0]}\n',
        b'V1115 00:00:01.000000 1 a.py:1] {"str": ["\xff\xfe", 0]}\n',
        b'V1115 00:00:01.000000 1 a.py:1] {"a": ' + b"[" * 5000 + b"]" * 5000 + b"}\n",
        b'V1115 00:00:01.000000 1 a.py:1] {"x": 1}\n\t' + b"\x00" * 100 + b"\n",
    ],
)
def test_odd_lines(line: bytes) -> None:
    read(line)


def test_damage_is_counted(tmp_path: Path) -> None:
    good = record("artifact", {"name": "fine"}, "text")
    bad = good.replace(b'"artifact": {', b'"artifact": {{')
    _, source = read_bytes(good + bad + good, tmp_path / "run")
    assert source.tally.unread == 1
    assert source.tally.records == 2
    assert "fine" in source.tally.samples[0]


def test_a_whole_run_of_a_damaged_log(tmp_path: Path) -> None:
    """Through files: the run can be opened, and says that it was cut."""
    from compilescope.knowledge.analysis.digest import digest
    from compilescope.record.run import read_run

    log = tmp_path / "dedicated_log_torch_trace_rank_3_ab.log"
    log.write_bytes(golden("eager")[:200_000].replace(b"torch", b"to\x00ch"))
    read = read_logs([str(log)], tmp_path / "home")
    (one,) = read.sources
    assert not any(OUR_FAULT in problem for problem in one.problems)
    assert one.cut_tail
    seen = digest(read_run(read.path))
    assert seen.cut_short
    assert {process.rank for process in seen.processes} == {3}
