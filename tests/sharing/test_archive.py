"""A run as a file: what goes in, what comes out, and what is refused with a sentence."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import socket
import stat
import struct
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import msgspec
import pytest

import samples
from compilescope.base.errors import ToolError
from compilescope.record.artifacts import artifact_name
from compilescope.record.header import read_header, write_header
from compilescope.record.home import list_runs
from compilescope.record.provenance import SEALS
from compilescope.record.run import Run, read_run
from compilescope.report.sharing.archive import (
    UnpackLimits,
    import_archive,
    write_archive,
    write_run,
)

NAME = "abc123-model"
TEXT = "x = 1\n"
ARTIFACT = f"artifacts/{artifact_name(TEXT, 'py')}"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run on disk with every kind of file, and some that are no part of it."""
    folder = samples.store(samples.hostile_run(), tmp_path / "home", NAME)
    (folder / "events-0.77.jsonl").write_bytes(b'{"id":"0:77.0","time_ns":1,"pid":77,"bo')
    (folder / "events-1.jsonl").write_bytes(b"garbled\n\n")
    (folder / "notes.txt").write_text("not a part of the run")
    (folder / "artifacts" / "core").write_text("nor this")
    (folder / "artifacts" / ("0" * 40 + ".py")).symlink_to("/etc/hostname")
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def members(**more: bytes | str) -> dict[str, bytes | str]:
    header = {"schema": 1, "run": NAME, "tool": "0.1.0"}
    return {"run.json": json.dumps(header), "events-0.jsonl": "", ARTIFACT: TEXT, **more}


def packed(path: Path, files: dict[str, bytes | str]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def refused(archive: Path, home: Path, **options: object) -> str:
    """The sentence with which an archive is refused; nothing is left behind."""
    before = sorted(home.rglob("*")) if home.exists() else None
    with pytest.raises(ToolError) as caught:
        import_archive(archive, home, **options)  # type: ignore[arg-type]
    assert caught.value.exit_code == 2
    assert (sorted(home.rglob("*")) if home.exists() else None) == before
    message = caught.value.message
    assert re.fullmatch(r"[^\n]+[.!]", message) and "Traceback" not in message
    assert ".import-" not in message
    return message


def test_there_and_back(run: Path, tmp_path: Path) -> None:
    archived = write_archive(run, tmp_path / "run.zip")
    assert archived.bytes == (tmp_path / "run.zip").stat().st_size
    imported = import_archive(tmp_path / "run.zip", tmp_path / "other")
    assert (imported.run, imported.path) == (NAME, tmp_path / "other" / NAME)
    assert (imported.already_there, imported.renamed_from) == (False, None)
    kept = contents(run)
    for stray in ("notes.txt", "artifacts/core", SEALS):
        del kept[stray]
    assert contents(imported.path) == kept
    assert imported.files == archived.files == len(kept)
    assert imported.unread == 2
    assert read_run(imported.path).events == read_run(run).events
    assert (tmp_path / "other" / ".gitignore").read_text() == "*\n"
    assert [path.name for path, _ in list_runs(tmp_path / "other")[0]] == [NAME]


def test_the_same_run_gives_the_same_bytes(run: Path, tmp_path: Path) -> None:
    write_archive(run, tmp_path / "one.zip")
    for path in run.rglob("*"):
        if not path.is_symlink():
            os.utime(path, (1, 1))
    write_archive(run, tmp_path / "two.zip")
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()


def test_every_sample_run_survives(tmp_path: Path) -> None:
    for name, sample in samples.RUNS.items():
        folder = samples.store(sample, tmp_path / "home", sample.header.run)
        write_archive(folder, tmp_path / f"{name}.zip")
        imported = import_archive(tmp_path / f"{name}.zip", tmp_path / "other")
        assert read_run(imported.path).events == read_run(folder).events


def test_progress_is_told(run: Path, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    write_archive(run, tmp_path / "run.zip", lambda done, total: told.append((done, total)))
    assert told[-1][0] == told[-1][1] > 0
    told.clear()
    import_archive(
        tmp_path / "run.zip",
        tmp_path / "other",
        progress=lambda done, total: told.append((done, total)),
    )
    assert told[-1][0] == told[-1][1] > 0


def test_a_run_that_cannot_be_packed(run: Path, tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="No such file"):
        write_archive(run, tmp_path / "missing" / "run.zip")
    with pytest.raises(ToolError, match="is not a run"):
        write_archive(tmp_path, tmp_path / "run.zip")
    assert not list(tmp_path.glob("*.zip")) and not list(tmp_path.glob(".*.part"))


def test_an_interrupted_export_leaves_nothing(run: Path, tmp_path: Path) -> None:
    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    (tmp_path / "run.zip").write_text("older")
    with pytest.raises(KeyboardInterrupt):
        write_archive(run, tmp_path / "run.zip", interrupt)
    assert (tmp_path / "run.zip").read_text() == "older"
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["run.zip"]


def test_an_interrupted_import_leaves_nothing(run: Path, tmp_path: Path) -> None:
    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    write_archive(run, tmp_path / "run.zip")
    with pytest.raises(KeyboardInterrupt):
        import_archive(tmp_path / "run.zip", tmp_path / "other", progress=interrupt)
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    "name",
    [
        "../evil.jsonl",
        "artifacts/../../evil",
        "/etc/passwd",
        "//server/share",
        "C:\\Windows\\evil.py",
        "artifacts\\" + "0" * 40 + ".py",
        "events-0.jsonl/../../evil",
        "run.json/evil",
        "RUN.JSON",
        "run.json\n",
        "events-0.jsonl ",
        "events-x.jsonl",
        "events-٣.jsonl",
        "artifacts/evil.py",
        "artifacts/" + "0" * 40 + ".PY",
        "artifacts/sub/" + "0" * 40 + ".py",
        "sub/",
        "evil" * 100,
    ],
)
def test_names_that_no_run_has(name: str, tmp_path: Path) -> None:
    archive = packed(tmp_path / "run.zip", members(**{name: "evil"}))
    assert "an unexpected file" in refused(archive, tmp_path / "home")
    assert not (tmp_path / "evil").exists()


def test_a_name_that_is_cut_at_a_null(tmp_path: Path) -> None:
    archive = packed(tmp_path / "run.zip", members())
    data = archive.read_bytes().replace(b"events-0.jsonl", b"events-0\x00jsonl")
    archive.write_bytes(data)
    assert "an unexpected file" in refused(archive, tmp_path / "home")


def test_a_folder_entry_is_harmless(tmp_path: Path) -> None:
    archive = packed(tmp_path / "run.zip", {"artifacts/": b"", **members()})
    assert import_archive(archive, tmp_path / "home").files == 3


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFDIR])
def test_what_is_no_file(kind: int, tmp_path: Path) -> None:
    path = tmp_path / "run.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("run.json", json.dumps({"schema": 1, "run": NAME, "tool": "0"}))
        info = zipfile.ZipInfo("events-0.jsonl")
        info.external_attr = (kind | 0o777) << 16
        archive.writestr(info, "/etc/passwd")
    assert "a link or a device" in refused(path, tmp_path / "home")


def test_a_file_twice(tmp_path: Path) -> None:
    path = packed(tmp_path / "run.zip", members())
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning):
        archive.writestr("events-0.jsonl", "again")
    assert "twice" in refused(path, tmp_path / "home")


def test_an_encrypted_file(tmp_path: Path) -> None:
    path = packed(tmp_path / "run.zip", members())
    data = bytearray(path.read_bytes())
    for found in re.finditer(rb"PK\x01\x02", bytes(data)):
        data[found.start() + 8] |= 1
    path.write_bytes(data)
    assert "encrypted" in refused(path, tmp_path / "home")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_another_compression(method: int, tmp_path: Path) -> None:
    path = tmp_path / "run.zip"
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members().items():
            archive.writestr(name, content)
    assert "unsupported compression" in refused(path, tmp_path / "home")


def test_too_many_files(tmp_path: Path) -> None:
    more = {f"events-{n}.jsonl": "" for n in range(1, 30)}
    path = packed(tmp_path / "run.zip", members(**more))
    assert "more than 20 files" in refused(path, tmp_path / "home", limits=UnpackLimits(members=20))
    assert import_archive(path, tmp_path / "home").files == 32


def test_bombs(tmp_path: Path) -> None:
    zeros = b"\0" * 40_000_000
    path = packed(tmp_path / "bomb.zip", members(**{"events-1.jsonl": zeros}))
    assert path.stat().st_size < 100_000
    assert "too much data" in refused(path, tmp_path / "home")
    lines = b"".join(b"%d\n" % random.randrange(10**9) for _ in range(40_000))
    path = packed(tmp_path / "large.zip", members(**{"events-1.jsonl": lines}))
    for limits in (UnpackLimits(member_bytes=100_000), UnpackLimits(total_bytes=100_000)):
        assert "too much data" in refused(path, tmp_path / "home", limits=limits)
    assert "larger than" in refused(
        path, tmp_path / "home", limits=UnpackLimits(archive_bytes=1000)
    )
    assert import_archive(path, tmp_path / "home").unread == 40_000


def test_a_size_that_lies(tmp_path: Path) -> None:
    """The directory says that a file is small; what counts is what comes out."""
    content = os.urandom(300_000)
    path = packed(tmp_path / "run.zip", members(**{"events-1.jsonl": content}))
    data = path.read_bytes().replace(struct.pack("<L", len(content)), struct.pack("<L", 1000))
    path.write_bytes(data)
    assert "damaged" in refused(path, tmp_path / "home")


def test_an_artifact_that_is_another(tmp_path: Path) -> None:
    path = packed(tmp_path / "run.zip", members(**{ARTIFACT: "y = 2\n"}))
    message = refused(path, tmp_path / "home")
    assert ARTIFACT in message and "does not match its name" in message


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("{", "not JSON"),
        ("[1]", "has no schema"),
        ("{}", "has no schema"),
        ('{"schema": 1}', "damaged"),
        ('{"schema": 99, "run": "a", "tool": "0"}', "newer compilescope"),
        ('{"schema": 0, "run": "a", "tool": "0"}', "older compilescope"),
        ('{"schema": 1, "run": "../evil", "tool": "0"}', "is not a run id"),
        ('{"schema": 1, "run": "", "tool": "0"}', "is not a run id"),
        ('{"schema": 1, "run": ".", "tool": "0"}', "is not a run id"),
        ('{"schema": 1, "run": "/tmp/evil", "tool": "0"}', "is not a run id"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_headers(header: str, words: str, tmp_path: Path) -> None:
    path = packed(tmp_path / "run.zip", members(**{"run.json": header}))
    message = refused(path, tmp_path / "home")
    assert words in message and str(path) in message


def test_no_header(tmp_path: Path) -> None:
    path = packed(tmp_path / "run.zip", {"events-0.jsonl": ""})
    assert "no run.json" in refused(path, tmp_path / "home")


def test_what_is_no_archive(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert "There is no file" in refused(tmp_path / "missing.zip", home)
    os.mkfifo(tmp_path / "pipe.zip")  # Nobody writes to it: who waits for that waits forever.
    assert "Not a plain file" in refused(tmp_path / "pipe.zip", home)
    (tmp_path / "empty.zip").touch()
    assert "is empty" in refused(tmp_path / "empty.zip", home)
    (tmp_path / "text.zip").write_text("hello")
    assert "not a zip file" in refused(tmp_path / "text.zip", home)
    (tmp_path / "folder.zip").mkdir()
    assert "is a folder" in refused(tmp_path / "folder.zip", home)
    assert "no run.json" in refused(packed(tmp_path / "nothing.zip", {}), home)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")
def test_without_permission(run: Path, tmp_path: Path) -> None:
    write_archive(run, tmp_path / "run.zip")
    (tmp_path / "home2").mkdir(mode=0o500)
    assert "Permission denied" in refused(tmp_path / "run.zip", tmp_path / "home2")
    (tmp_path / "run.zip").chmod(0)
    assert "Permission denied" in refused(tmp_path / "run.zip", tmp_path / "other")


def test_a_home_that_is_a_file(run: Path, tmp_path: Path) -> None:
    write_archive(run, tmp_path / "run.zip")
    (tmp_path / "file").touch()
    assert "Cannot write the run" in refused(tmp_path / "run.zip", tmp_path / "file")


def test_damaged_copies_never_raise_anything_else(run: Path, tmp_path: Path) -> None:
    """Cut anywhere, or with bits flipped: a sentence, or a run that is whole."""
    write_archive(run, tmp_path / "run.zip")
    good = (tmp_path / "run.zip").read_bytes()
    chance = random.Random(7)
    bad = tmp_path / "bad.zip"
    for number in range(300):
        data = bytearray(good)
        if number % 3 == 0:
            data = data[: chance.randrange(len(data))]
        else:
            for _ in range(chance.randrange(1, 6)):
                tail = chance.random() < 0.6
                at = chance.randrange(len(data) - 1200, len(data)) if tail else 0
                data[at or chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        bad.write_bytes(data)
        home = tmp_path / "homes" / str(number)
        try:
            imported = import_archive(bad, home)
        except ToolError as error:
            assert error.message.endswith(".") and not home.exists()
        else:
            assert [path.name for path in home.iterdir() if path.is_dir()] == [imported.run]


def test_the_same_run_twice(run: Path, tmp_path: Path) -> None:
    write_archive(run, tmp_path / "run.zip")
    again = import_archive(tmp_path / "run.zip", run.parent)
    assert (again.run, again.already_there) == (NAME, True)
    assert [path.name for path in run.parent.iterdir() if path.is_dir()] == [NAME]


def changed(run: Path, target: Path) -> Path:
    """An archive of another run with the same id."""
    write_archive(run, target)
    with (run / "events-0.jsonl").open("ab") as file:
        file.write(b"one more\n")
    return target


def test_another_run_with_the_same_id(run: Path, tmp_path: Path) -> None:
    archive = changed(run, tmp_path / "run.zip")
    before = contents(run)
    imported = import_archive(archive, run.parent)
    assert imported.run != NAME and imported.renamed_from == NAME
    assert imported.run.endswith("-model") and imported.path.name == imported.run
    assert read_header(imported.path).run == imported.run
    assert contents(run) == before
    again = import_archive(archive, run.parent)
    assert (again.run, again.already_there) == (imported.run, True)


def test_force_replaces_it(run: Path, tmp_path: Path) -> None:
    before = contents(run)["events-0.jsonl"]
    archive = changed(run, tmp_path / "run.zip")
    imported = import_archive(archive, run.parent, force=True)
    assert (imported.run, imported.renamed_from) == (NAME, None)
    assert contents(run)["events-0.jsonl"] == before
    assert [path.name for path in run.parent.iterdir() if path.is_dir()] == [NAME]


def test_force_leaves_a_live_run_alone(run: Path, tmp_path: Path) -> None:
    archive = changed(run, tmp_path / "run.zip")
    header = msgspec.structs.replace(
        read_header(run),
        launcher_pid=os.getpid(),
        host=socket.gethostname(),
        started_ns=time.time_ns(),
        ended_ns=None,
    )
    write_header(run, header)
    with pytest.raises(ToolError, match="still in progress"):
        import_archive(archive, run.parent, force=True)
    assert run.is_dir() and not list(run.parent.glob(".*-*"))


def test_force_does_not_follow_a_link(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").touch()
    home = tmp_path / "home"
    home.mkdir()
    (home / NAME).symlink_to(tmp_path / "precious")
    archive = packed(tmp_path / "run.zip", members())
    assert import_archive(archive, home, force=True).run == NAME
    assert (tmp_path / "precious" / "file").exists() and not (home / NAME).is_symlink()


def test_a_run_is_written_as_it_was_read(run: Path, tmp_path: Path) -> None:
    """Lines that could not be read, and an end in the middle of one, are still told."""
    read = read_run(run)
    (tmp_path / "copy").mkdir()
    write_run(tmp_path / "copy", read)
    copy = read_run(tmp_path / "copy")
    assert copy.events == read.events
    assert (copy.unread, copy.torn) == (read.unread, read.torn) == (2, True)
    assert copy.header == read.header


def test_an_end_in_the_middle_of_a_line_is_told_without_other_damage(tmp_path: Path) -> None:
    sample = samples.ranks_run()
    write_run(tmp_path, Run(sample.header, sample.events, sample.artifacts, torn=True))
    copy = read_run(tmp_path)
    assert copy.torn and not copy.unread and len(copy.events) == len(sample.events)


def test_processes_keep_their_files(tmp_path: Path) -> None:
    sample = samples.ranks_run()
    write_run(tmp_path, Run(sample.header, sample.events, sample.artifacts))
    assert {path.name for path in tmp_path.iterdir()} == {
        "events-0.jsonl",
        "events-1.jsonl",
        "run.json",
    }


def test_a_growing_file_is_cut_where_it_was(run: Path, tmp_path: Path) -> None:
    """A live run appends while it is packed."""
    grown: list[bool] = []

    def grow(done: int, total: int) -> None:
        if not grown:
            grown.append(True)
            with (run / "events-0.jsonl").open("ab") as file:
                file.write(b"late\n")

    write_archive(run, tmp_path / "run.zip", grow)
    with zipfile.ZipFile(tmp_path / "run.zip") as archive:
        assert not archive.read("events-0.jsonl").endswith(b"late\n")


def test_a_signal_leaves_nothing(run: Path, tmp_path: Path) -> None:
    """Ctrl-C while it unpacks."""
    write_archive(run, tmp_path / "run.zip")
    code = (
        "import sys, time; from pathlib import Path\n"
        "from compilescope.report.sharing.archive import import_archive\n"
        "def wait(done, total): print('busy', flush=True); time.sleep(60)\n"
        f"import_archive(Path({str(tmp_path / 'run.zip')!r}), Path({str(tmp_path / 'other')!r}),"
        " progress=wait)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"busy\n"
        process.send_signal(signal.SIGINT)
        process.wait(600)
    assert not (tmp_path / "other").exists()
