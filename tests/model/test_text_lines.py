"""Short texts of a recorded process: lines of its event file, whatever became of that file."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from builders import event
from compilescope.apps.cli.isolation import Copy
from compilescope.instrument.recorder.journal import DiskJournal
from compilescope.record import text_lines
from compilescope.record.artifacts import DiskArtifacts, RecordedArtifacts, artifact_name
from compilescope.record.bodies import CudagraphSkip, GraphCaptured, ProcessEnded, ProcessStarted
from compilescope.record.event import encode
from compilescope.record.eventfile import EventFile, EventTail, last_events
from compilescope.record.header import RunHeader, write_header
from compilescope.record.run import Run, read_run
from compilescope.record.text_lines import LONGEST_TEXT, text_line
from compilescope.report.sharing.archive import import_archive, write_archive
from compilescope.report.sharing.redaction.run import redact

STARTED = ProcessStarted(argv=("a.py",), python="3.11", torch="2.13.0", parent_pid=1)
TEXTS = ("x = 1\n", '"quoted" \\ and \u2028 \x00 é 𝄞', "", "y = 2\n" * 100)


def graph(text: str, number: int) -> bytes:
    body = GraphCaptured(stage="dynamo", text=artifact_name(text, "py"), ops=1)
    return encode(event(body, number=number))


def recorded(folder: Path, texts: tuple[str, ...] = TEXTS, rank: int = 0) -> Path:
    """A run in which each graph has a text; its folder comes back."""
    folder.mkdir(parents=True, exist_ok=True)
    write_header(folder, RunHeader(run=folder.name, tool="0", ended_ns=1))
    file, _ = EventFile.claim(folder, rank)
    artifacts = RecordedArtifacts(folder / "artifacts")
    artifacts.events = file
    file.write(encode(event(STARTED)))
    for number, text in enumerate(texts, 1):
        artifacts.put(text, "py")
        file.write(graph(text, number))
    file.write(encode(event(ProcessEnded(), number=len(texts) + 1)))
    return folder


def texts_of(run: Run) -> list[str | None]:
    return [run.artifacts.get(body.text or "") for _, body in run.of(GraphCaptured)]


def test_texts_read_back_and_are_no_events(tmp_path: Path) -> None:
    run = read_run(recorded(tmp_path / "run"))
    assert texts_of(run) == list(TEXTS)
    assert (len(run.events), run.unread, run.cut_short) == (len(TEXTS) + 2, 0, None)
    assert sorted(os.listdir(tmp_path / "run")) == ["events-0.jsonl", "run.json"]
    sizes = [run.artifacts.size(artifact_name(text, "py")) for text in TEXTS]
    assert all(size >= len(text) for size, text in zip(sizes, TEXTS, strict=True))
    assert run.artifacts.get(artifact_name("absent", "py")) is None
    assert run.artifacts.size(artifact_name("absent", "py")) == 0


def test_a_text_is_written_once_and_with_its_event(tmp_path: Path) -> None:
    journal = DiskJournal(tmp_path)
    journal.open(0)
    path = tmp_path / "events-0.jsonl"
    name = journal.artifacts.put("x = 1\n", "py")
    assert path.read_bytes() == b"", "it waits for the event that names it"
    journal.append(event(CudagraphSkip("cpu")))
    journal.artifacts.put("x = 1\n", "py")
    journal.append(event(CudagraphSkip("cpu"), number=1))
    lines = path.read_bytes().splitlines()
    assert lines[0] == text_line(name, "x = 1\n")
    assert len(lines) == 3


def test_a_text_can_be_read_while_it_waits(tmp_path: Path) -> None:
    journal = DiskJournal(tmp_path)
    journal.open(0)
    name = journal.artifacts.put("x = 1\n", "py")
    assert journal.artifacts.get(name) == "x = 1\n"
    other = journal.artifacts.put("y = 2\n", "py")
    assert journal.artifacts.size(other) > 0


@pytest.mark.parametrize("text", ["x" * (LONGEST_TEXT + 1), "half of a character: \ud800"])
def test_what_is_long_or_has_no_json_is_a_file(tmp_path: Path, text: str) -> None:
    run = read_run(recorded(tmp_path / "run", (text,)))
    assert texts_of(run) == [text]
    assert os.listdir(tmp_path / "run" / "artifacts") == [artifact_name(text, "py")]


def test_before_there_are_events_a_text_is_a_file(tmp_path: Path) -> None:
    journal = DiskJournal(tmp_path)
    name = journal.artifacts.put("x = 1\n", "py")
    assert (tmp_path / "artifacts" / name).read_text() == "x = 1\n"


def test_wherever_a_file_is_cut_only_what_is_cut_is_lost(tmp_path: Path) -> None:
    whole = (recorded(tmp_path / "run") / "events-0.jsonl").read_bytes()
    folder = recorded(tmp_path / "cut")
    for at in range(0, len(whole), 17):
        (folder / "events-0.jsonl").write_bytes(whole[:at])
        run = read_run(folder)
        assert texts_of(run) == list(TEXTS[: run.count(GraphCaptured)])
        ended = whole[:at].count(b"\n")
        kept = [DiskArtifacts(folder / "artifacts").get(artifact_name(t, "py")) for t in TEXTS]
        assert kept == [t if 1 + 2 * n < ended else None for n, t in enumerate(TEXTS)]


def test_what_is_written_later_is_found_later(tmp_path: Path) -> None:
    folder = recorded(tmp_path / "run", ("x = 1\n",))
    artifacts = read_run(folder).artifacts
    name = artifact_name("late", "py")
    assert artifacts.get(name) is None
    line = text_line(name, "late") + b"\n"
    for part in (line[:20], line[20:]):
        assert artifacts.get(name) is None
        with (folder / "events-0.jsonl").open("ab") as file:
            file.write(part)
    assert artifacts.get(name) == "late"
    recorded(folder, ("of another process",), rank=1)
    assert artifacts.get(artifact_name("of another process", "py")) == "of another process"


def test_a_file_that_was_replaced_gives_no_other_text(tmp_path: Path) -> None:
    folder = recorded(tmp_path / "run")
    artifacts = read_run(folder).artifacts
    names = [artifact_name(text, "py") for text in TEXTS]
    assert artifacts.get(names[0]) == TEXTS[0]
    (folder / "events-0.jsonl").write_bytes(b'{"artifact":"x","text":"another"}\n' * 20)
    assert set(map(artifacts.get, names)) <= {None, "another"}
    (folder / "events-0.jsonl").unlink()
    assert [artifacts.get(name) for name in names] == [None] * len(names)


NAME = artifact_name("x = 1\n", "py")


@pytest.mark.parametrize(
    "line",
    [
        b'{"artifact":"',
        b'{"artifact":"' + b"a" * 500_000,
        b'{"artifact":"../../etc/passwd","text":"x"}',
        b'{"artifact":"' + NAME.encode() + b'"}',
        b'{"artifact":"' + NAME.encode() + b'","text":7}',
        b'{"artifact":"' + NAME.encode() + b'","text":"\xff"}',
        b'{"artifact":"' + NAME.encode() + b'","text":"\\ud800"}',
        b'{"artifact":"' + NAME.encode() + b'","text":' + b"[" * 50_000,
        b'{"artifact":"' + NAME.encode() + b'","text":"' + b"x" * 20_000_000 + b'"}',
    ],
    ids=range(9),
)
def test_lines_of_a_stranger_harm_nobody(tmp_path: Path, line: bytes) -> None:
    folder = recorded(tmp_path / "run", ("good",))
    path = folder / "events-0.jsonl"
    path.write_bytes(line + b"\n" + path.read_bytes() + line)
    run = read_run(folder)
    assert run.artifacts.get(NAME) is None
    assert run.artifacts.get("../../etc/passwd") is None
    assert texts_of(run) == ["good"]
    assert [found.id for found in EventTail(path, 1 << 26).read()][:2] == ["0.0", "0.1"]


def test_names_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_lines, "_MOST_PLACES", 2)
    run = read_run(recorded(tmp_path / "run"))
    assert texts_of(run) == [*TEXTS[:2], None, None]


def test_whoever_follows_a_file_passes_over_texts(tmp_path: Path) -> None:
    folder = recorded(tmp_path / "run")
    ids = [f"0.{number}" for number in range(len(TEXTS) + 2)]
    path = folder / "events-0.jsonl"
    tail = EventTail(path)
    assert [found.id for found in tail.read()] == ids
    assert tail.unread == 0
    assert [found.id for found in last_events(path)] == ids


def test_after_a_line_that_is_too_long_the_next_one_counts(tmp_path: Path) -> None:
    """Though what is left of it looks like a text."""
    path = tmp_path / "events-0.jsonl"
    tail = EventTail(path, 300)
    line = encode(event(CudagraphSkip("cpu"))) + b"\n"
    path.write_bytes(b"x" * 300)
    assert tail.read() == []
    path.write_bytes(b"x" * 300 + text_line(NAME, "x") + b"\n" + line)
    found = [*tail.read(), *tail.read()]
    assert ([each.id for each in found], tail.unread) == (["0.0"], 1)


def test_a_run_with_texts_is_exported_imported_and_redacted(tmp_path: Path) -> None:
    folder = recorded(tmp_path / "home" / "abc123-model")
    write_archive(folder, tmp_path / "run.zip")
    imported = import_archive(tmp_path / "run.zip", tmp_path / "other")
    assert imported.unread == 0
    assert texts_of(read_run(imported.path)) == list(TEXTS)
    assert import_archive(tmp_path / "run.zip", tmp_path / "other").already_there
    redaction = redact(read_run(folder), DiskArtifacts(tmp_path / "redacted"))
    assert None not in texts_of(redaction.run)


def test_an_isolated_run_names_the_real_paths_in_texts_too(tmp_path: Path) -> None:
    text = "# File: /tmp/x/work/a.py:3"
    folder = recorded(tmp_path / "run", (text,))
    Copy('/home/m"e/wörk', "/tmp/x/work").rename_in(folder)
    assert texts_of(read_run(folder)) == ['# File: /home/m"e/wörk/a.py:3']


def test_a_text_that_was_dropped_is_written_when_it_comes_again(tmp_path: Path) -> None:
    artifacts = RecordedArtifacts(tmp_path / "artifacts")
    path = tmp_path / "absent" / "events-0.jsonl"
    artifacts.events = file = EventFile(path)
    file.write(b"x" * (4 << 20))
    name = artifacts.put("x = 1\n", "py")
    assert file.lost == 2
    path.parent.mkdir()
    file.flush()
    assert artifacts.put("x = 1\n", "py") == name
    file.flush()
    assert json.loads(path.read_bytes().splitlines()[-1]) == {"artifact": name, "text": "x = 1\n"}


LIMITED = """
import resource, signal, sys
from pathlib import Path
from compilescope.instrument.recorder.journal import DiskJournal
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
journal = DiskJournal(Path(sys.argv[1]))
journal.open(0)
sys.dont_write_bytecode = True  # Python would leave parts of files.
resource.setrlimit(resource.RLIMIT_FSIZE, (20, 1000))
name = journal.artifacts.put("a text", "py")
print(journal.lost, journal.artifacts.get(name))
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
print(journal.lost, journal.artifacts.get(name))
"""


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="no limits on the size of files")
def test_a_limit_on_the_size_of_files_stops_us_and_not_the_program(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines() == ["1 None", "0 a text"]
