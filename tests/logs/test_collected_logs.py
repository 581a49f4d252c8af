"""Logs as CI, containers and services hand them out: with something before each line."""

from __future__ import annotations

import pytest

from logs.consoles import facts, golden, read

_ZULU = b"2026-08-21T09:00:00.1234567Z "


@pytest.mark.parametrize("name", ["ttlike.c03_dataif.head", "xla_lazy.c05_fallback"])
@pytest.mark.parametrize(
    "prefix",
    [
        _ZULU,
        b"2026-08-21T09:00:00+02:00 ",
        b"test (n150)\tRun the tests\t" + _ZULU,
        b"[pod/train-0/main] ",
        b"[pod/train-0/main] " + _ZULU,
        b"Aug  1 09:00:00 host1 python3[412]: ",
    ],
)
def test_what_a_collector_puts_before_each_line_is_no_part_of_it(name: str, prefix: bytes) -> None:
    plain, tally = read(golden(name))
    data = b"".join(prefix + line for line in golden(name).splitlines(keepends=True))
    found, collected = read(b"\xef\xbb\xbf" + data, block=1 << 16)
    assert facts(found) == facts(plain)
    assert collected.flags == tally.flags and collected.formats == tally.formats
