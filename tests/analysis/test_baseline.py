"""The baseline is read back whole, reads well in a diff, and is never half written."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from analysis.gate_runs import HOSTILE, LIBRARY, a_break, a_failure, a_library_break, a_recompile
from builders import ROOT, run_of
from compilescope.base.errors import ToolError
from compilescope.knowledge.analysis.digest import digest
from compilescope.knowledge.analysis.findings import findings
from compilescope.knowledge.analysis.gate.baseline import (
    Baseline,
    baseline_of,
    encoded,
    read_baseline,
    write_baseline,
)
from compilescope.knowledge.analysis.gate.verdict import AcceptedFinding
from compilescope.record.event import Event

EVENTS = (a_break(), a_break(20, "    print(h)"), a_library_break(), a_recompile(), a_failure())


def baseline(*events: Event, before: tuple[AcceptedFinding, ...] = ()) -> Baseline:
    found = findings(digest(run_of(*events)))
    return baseline_of(found, root=ROOT, torch="2.13.0", before=before)


def test_it_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    written = baseline(*EVENTS)
    write_baseline(path, written)
    assert read_baseline(path) == written
    assert [entry.name for entry in tmp_path.iterdir()] == ["b.json"]


def test_it_reads_well_in_a_diff() -> None:
    data = json.loads(encoded(baseline(*EVENTS)))
    assert (data["schema"], data["torch"]) == (1, "2.13.0")
    entry = next(e for e in data["findings"] if e["rule"] == "GB0170" and "mean" in e["source"])
    assert entry["file"] == "model.py"
    assert (entry["function"], entry["source"]) == ("forward", "if h.mean() > 0:")
    assert entry["title"] == "Data-dependent branching"
    assert {e["file"] for e in data["findings"]} == {"model.py", "faux/ops.py"}
    text = encoded(baseline(*EVENTS)).decode()
    assert ROOT not in text and LIBRARY not in text
    assert max(map(len, text.splitlines())) < 100


def test_the_order_of_events_does_not_show() -> None:
    assert encoded(baseline(*EVENTS)) == encoded(baseline(*reversed(EVENTS)))


def test_one_more_cause_adds_lines_and_changes_none() -> None:
    before = encoded(baseline(*EVENTS[:-1])).decode().splitlines()
    after = encoded(baseline(*EVENTS)).decode().splitlines()
    assert [line for line in before if line.strip("},") and line not in after] == []
    assert len(after) - len(before) == 9


def test_an_accepted_cause_keeps_its_entry() -> None:
    [old] = baseline(a_break()).findings
    words = AcceptedFinding(kind=old.kind, fingerprint=old.fingerprint, title="as we call it")
    assert words in baseline(*EVENTS, before=(words,)).findings


def test_hostile_text_is_spelt_out(tmp_path: Path) -> None:
    known = AcceptedFinding(kind="break", fingerprint="f", title=HOSTILE, file=f"{HOSTILE}\ud800")
    path = tmp_path / "b.json"
    write_baseline(path, Baseline(findings=(known,)))
    text = path.read_text()
    assert not [c for c in text if not (c.isprintable() or c == "\n")]
    assert "é" in text
    assert read_baseline(path).findings == (known,)


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.json").write_text("{}")
    link = tmp_path / "b.json"
    link.symlink_to("real.json")
    write_baseline(link, baseline(a_break()))
    assert link.is_symlink()
    assert len(read_baseline(tmp_path / "real.json").findings) == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "damaged: it is not JSON"),
        ("<<<<<<< HEAD\n{}", "damaged: it is not JSON (line 1)"),
        ('{"schema": 1,\n"findings": [}', "(line 2)"),
        ("\xff\xfe", "damaged: it is not JSON"),
        ("[" * 100_000, "damaged: it is nested too deeply"),
        ("[]", "has no schema"),
        ('{"findings": []}', "has no schema"),
        ('{"schema": true}', "has no schema"),
        ('{"schema": 2}', "is from a newer compilescope (schema 2; this one reads 1)"),
        ('{"schema": 1, "findings": 3}', "damaged: Expected `array`"),
        ('{"schema": 1, "findings": [{"kind": "break"}]}', "missing required field"),
        ('{"schema": 1, "torch": 3}', "damaged"),
        ('{"schema": 1, "\\ud800": 3}', "damaged: it is not UTF-8"),
    ],
)
def test_what_is_no_baseline_is_one_sentence(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "b.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ToolError) as caught:
        read_baseline(path)
    assert words in caught.value.message
    assert str(path) in caught.value.message and "\n" not in caught.value.message
    assert caught.value.hint


def test_places_that_cannot_be_read_or_written(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="There is no baseline"):
        read_baseline(tmp_path / "b.json")
    with pytest.raises(ToolError, match=r"Cannot read the baseline .*: Is a directory"):
        read_baseline(tmp_path)
    with pytest.raises(ToolError, match=r"Cannot write the baseline .*No such file"):
        write_baseline(tmp_path / "no" / "b.json", Baseline())
    with pytest.raises(ToolError, match="Cannot write the baseline"):
        write_baseline(tmp_path, Baseline())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_no_permission(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    write_baseline(path, baseline(a_break()))
    before = path.read_bytes()
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(ToolError, match="Permission denied"):
            write_baseline(path, Baseline())
        assert path.read_bytes() == before
    finally:
        tmp_path.chmod(0o700)


def test_unknown_fields_of_this_schema_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    entry = {"kind": "break", "fingerprint": "f", "note": "ask Ada"}
    path.write_text(json.dumps({"schema": 1, "team": "x", "findings": [entry, entry]}))
    assert len(read_baseline(path).findings) == 2


def test_a_pipe_that_nobody_writes_to_is_one_sentence(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ToolError, match=r"Cannot read the baseline .*nobody writes to"):
        read_baseline(tmp_path / "pipe")
    with pytest.raises(ToolError, match=r"Cannot read the baseline .*directory"):
        read_baseline(tmp_path)
