"""No disk, no room, no permission: the program comes first, and the record says what it lacks."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from compilescope.model.eventfile import EventFile, EventReader
from harness import run_both, run_captured, show

HELLO = ("-c", "print('the program ran')")


def test_event_file_on_a_full_device_counts_what_it_loses() -> None:
    file = EventFile(os.open("/dev/full", os.O_WRONLY))
    file.write(b"{}")
    file.write(b"{}")
    assert file.lost == 2
    file.close()
    file.close()


def test_event_after_a_torn_one_starts_on_its_own_line(tmp_path: Path) -> None:
    file, name = EventFile.claim(tmp_path, 3)
    assert name == "3"
    file._torn = True
    file.write(b"not an event")
    file.close()
    reader = EventReader()
    assert list(reader.read(tmp_path / "events-3.jsonl")) == []
    assert (tmp_path / "events-3.jsonl").read_bytes() == b"\nnot an event\n"
    assert (reader.unread, reader.torn_files) == (1, [])


def test_second_process_of_a_rank_gets_a_file_of_its_own(tmp_path: Path) -> None:
    first, _ = EventFile.claim(tmp_path, 0)
    second, name = EventFile.claim(tmp_path, 0)
    assert name == f"0:{os.getpid()}"
    first.close()
    second.close()


def test_dir_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for home in (tmp_path / "file", tmp_path / "file" / "below"):
        assert_refused(home)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_dir_without_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert_refused(tmp_path)


def test_dir_on_a_read_only_file_system(tmp_path: Path) -> None:
    # Root may write where others may not, yet nobody may write here.
    assert_refused(Path("/proc/compilescope"))


def assert_refused(home: Path) -> None:
    ended = run_captured(home, *HELLO)
    assert (ended.status, ended.stdout) == (2, b"")
    sentence, _, hint = ended.stderr.decode().partition("\n")
    assert sentence.startswith("compilescope: error: Cannot write the run under ")
    assert sentence.endswith(".")
    assert hint.strip().count("\n") == 0
    assert "Traceback" not in hint


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 48 KiB."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small file system")
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=48k", "tmpfs", str(place)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no file system can be mounted here: {error}")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.slow
@pytest.mark.torch
def test_disk_that_fills_up(small_disk: Path) -> None:
    plain, captured = run_both(small_disk, "steady.py", stdin=b"")
    assert (captured.status, captured.stdout) == (plain.status, plain.stdout)
    assert captured.stderr.startswith(plain.stderr)
    # We may add that the record could not be finished, and nothing else.
    assert captured.stderr.count(b"\n") - plain.stderr.count(b"\n") <= 2
    seen = show(small_disk)
    assert seen["cut_short"], seen
    assert seen["events"] > 0


@pytest.mark.torch
def test_summary_on_a_full_disk_does_not_call_the_program_alive(small_disk: Path) -> None:
    code = "import torch; torch.compile(torch.sin, backend='eager')(torch.ones(2))"
    (small_disk / "ballast").write_bytes(b"x" * (48 - 12) * 1024)
    ended = run_captured(small_disk, "-c", code)
    assert ended.status == 0
    assert b"could not be written" in ended.stderr
    # The header on disk has no end, but we saw the program end.
    assert b"running" not in ended.stderr.lower()
    # No room for the graph's text is no reason to deny the graph.
    assert b"never called a compiled function" not in ended.stderr


@pytest.mark.torch
def test_disk_that_is_full_from_the_start(small_disk: Path) -> None:
    (small_disk / "ballast").write_bytes(b"x" * (48 - 8) * 1024)
    code = "import torch; torch.compile(torch.sin, backend='eager')(torch.ones(2)); print('done')"
    ended = run_captured(small_disk, "-q", "-c", code)
    assert (ended.status, ended.stdout) == (0, b"done\n")
    assert show(small_disk)["cut_short"]
