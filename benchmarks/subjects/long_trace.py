"""Long TORCH_TRACE files, made of real ones as a long job would have written them; short ones too.

A copy of a trace stands for a later stretch of the job: frames and times go on counting, sizes and
the names made from them differ as they do from one recompile to the next, hashes are right again.
What a real job repeats to the letter (configurations, interned strings) is repeated here too.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

_RECORD = re.compile(rb"\n(?!\t)")
_HEAD = re.compile(rb"^([VIWEC]\d{4} )(\d\d):(\d\d):(\d\d)(\.\d+ )\d+( [^\]]+\] )(.*)$", re.S)
_FRAME = re.compile(rb'"frame_id": (\d+)')
_FILE = re.compile(rb'"filename": (\d+)')
_INTERNED = re.compile(rb", (\d+)\]\}$")
_COMPILE_ID = re.compile(rb'"compile_id": "(\d+)/(\d+)"')
_HASH = re.compile(rb'"has_payload": "[0-9a-f]{32}"')
_TIME = re.compile(rb'"ts": ([\d.]+)')
_SIZE = re.compile(rb"(?<=[\[ (])(8|16|32|64|100|128|192|256)(?=[\],)])")
_ADDRESS = re.compile(rb"0x7f[0-9a-f]{10}")
_HEX = re.compile(rb"\b[a-z0-9]{52}\b")


def stretch(traces: list[bytes], size: int, target: Path) -> int:
    """Write at least `size` bytes; as many came out."""
    # One process wrote them all: its strings are numbered through.
    parts = [
        [_interned(record, 1000 * number) for record in _records(trace)]
        for number, trace in enumerate(traces)
    ]
    frames = [1 + max((int(n) for r in p for n in _FRAME.findall(r)), default=0) for p in parts]
    written = round_ = base = 0
    with target.open("wb") as file:
        while written < size:
            for records, count in zip(parts, frames, strict=True):
                for record in records:
                    if round_ and b'] {"str": ' in record[:400]:
                        continue
                    line = _later(record, round_, base)
                    written += file.write(line)
                base += count
                if written >= size:
                    break
            round_ += 1
    return written


def shorten(trace: bytes, size: int, target: Path) -> int:
    """Write a trace's first records, at least `size` bytes of them: a job that ended early."""
    written = 0
    with target.open("wb") as file:
        for record in _records(trace):
            written += file.write(record + b"\n")
            if written >= size:
                break
    return written


def _records(trace: bytes) -> list[bytes]:
    return [record for record in _RECORD.split(trace) if record.strip()]


def _interned(record: bytes, base: int) -> bytes:
    head, tab, payload = record.partition(b"\n\t")
    if b'] {"str": ' in head[:400]:
        head = _INTERNED.sub(lambda m: b", %d]}" % (int(m[1]) + base), head)
    else:
        head = _FILE.sub(lambda m: b'"filename": %d' % (int(m[1]) + base), head)
    return head + tab + payload


def _later(record: bytes, round_: int, base: int) -> bytes:
    head, tab, payload = record.partition(b"\n\t")
    found = _HEAD.match(head)
    if found is None:
        return record + b"\n"
    seconds = (int(found[2]) * 3600 + int(found[3]) * 60 + int(found[4]) + round_ * 7) % 86400
    clock = b"%02d:%02d:%02d" % (seconds // 3600, seconds // 60 % 60, seconds % 60)
    json = _FRAME.sub(lambda m: b'"frame_id": %d' % (int(m[1]) + base), found[7])
    json = _renumbered(json, round_, base)
    if tab:
        payload = _renumbered(payload, round_, base)
        payload = _TIME.sub(lambda m: b'"ts": %.1f' % (float(m[1]) + round_ * 7e6), payload)
        if round_:
            payload = _varied(payload, round_)
        digest = hashlib.md5(payload.replace(b"\n\t", b"\n")).hexdigest().encode()
        json = _HASH.sub(b'"has_payload": "%s"' % digest, json)
    return b"".join((found[1], clock, found[5], b"4242", found[6], json, tab, payload, b"\n"))


def _renumbered(text: bytes, round_: int, base: int) -> bytes:
    return _COMPILE_ID.sub(lambda m: b'"compile_id": "%d/%s"' % (int(m[1]) + base, m[2]), text)


def _varied(payload: bytes, round_: int) -> bytes:
    grown = round_ % 61
    payload = _SIZE.sub(lambda m: b"%d" % (int(m[1]) + 8 * grown), payload)
    payload = _ADDRESS.sub(lambda m: b"0x%012x" % (int(m[0], 16) + 4096 * round_), payload)
    return _HEX.sub(
        lambda m: hashlib.sha256(m[0] + b"%d" % round_).hexdigest()[:52].encode(), payload
    )


def read_all(folder: Path) -> Iterator[bytes]:
    for path in sorted(folder.rglob("*.log")):
        yield path.read_bytes()
