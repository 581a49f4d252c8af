"""Packs: what is put in comes out, whatever else lies in the folder."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from compilescope.record import packs
from compilescope.record.artifacts import DiskArtifacts, PackedArtifacts, artifact_name
from compilescope.record.packs import Pack, PackWriter


def write(folder: Path, *texts: str) -> Path:
    writer = PackWriter(folder)
    for text in texts:
        writer.put(text.encode())
    path = writer.close()
    assert path is not None
    return path


def test_artifacts_are_found_in_packs_and_files(tmp_path: Path) -> None:
    texts = [f"text {n} " * (n + 1) for n in range(2000)]
    write(tmp_path, *texts)
    artifacts = DiskArtifacts(tmp_path)
    alone = artifacts.put("in a file of its own", "py")
    assert artifacts.get(alone) == "in a file of its own"
    for text in (texts[0], texts[-1], texts[777]):
        name = artifact_name(text, "py")
        assert artifacts.get(name) == text
        assert artifacts.size(name) == len(text)
    assert artifacts.get(artifact_name("absent", "py")) is None
    assert artifacts.size(artifact_name("absent", "py")) == 0


def test_equal_texts_are_kept_once(tmp_path: Path) -> None:
    size = write(tmp_path, "a" * 1000).stat().st_size
    again = write(tmp_path / "again", *(["a" * 1000] * 500)).stat().st_size
    assert again == size


def test_name_is_like_an_artifacts_and_never_read_as_one(tmp_path: Path) -> None:
    path = write(tmp_path, "x")
    assert DiskArtifacts(tmp_path).get(path.name) is None


def test_an_empty_pack_is_not_kept(tmp_path: Path) -> None:
    assert PackWriter(tmp_path).close() is None
    assert list(tmp_path.iterdir()) == []


def test_joined_packs_keep_each_text_once(tmp_path: Path) -> None:
    chance = random.Random(1)
    common = [f"{chance.random()}" * 40 for _ in range(3000)]
    first = write(tmp_path / "a", *common, *(f"only first {n}" for n in range(500)))
    second = write(tmp_path / "b", *(f"only second {n}" for n in range(500)), *common)
    joined = PackWriter(tmp_path / "c")
    joined.put(b"already here")
    joined.take(Pack(first))
    joined.take(Pack(second))
    path = joined.close()
    assert path is not None
    artifacts = DiskArtifacts(tmp_path / "c")
    for text in (*common, "only first 7", "only second 499", "already here"):
        assert artifacts.get(artifact_name(text, "txt")) == text
    assert path.stat().st_size < first.stat().st_size + second.stat().st_size - 100_000


@pytest.mark.parametrize("seed", range(30))
def test_a_damaged_pack_gives_texts_or_nothing(tmp_path: Path, seed: int) -> None:
    path = write(tmp_path, *(f"text {n}" for n in range(50)))
    data = bytearray(path.read_bytes())
    chance = random.Random(seed)
    for _ in range(chance.choice((1, 10, 100))):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(data[: chance.randrange(1, len(data) + 1)] if seed % 3 == 0 else data)
    artifacts = DiskArtifacts(tmp_path)
    for number in range(50):
        name = artifact_name(f"text {number}", "txt")
        assert isinstance(artifacts.get(name), (str, type(None)))
        artifacts.size(name)


def test_exported_imported_and_redacted_like_any_run(tmp_path: Path) -> None:
    from compilescope.knowledge.analysis.digest import digest
    from compilescope.logs.reader import read_logs
    from compilescope.record.run import read_run
    from compilescope.report.sharing.archive import import_archive, write_archive
    from compilescope.report.sharing.redaction.run import redact
    from logs.traces import GOLDEN

    log = str(GOLDEN / "torch_trace_eager.log.xz")
    read = read_logs([log], tmp_path / "home")
    write_archive(read.path, tmp_path / "run.zip")
    imported = import_archive(tmp_path / "run.zip", tmp_path / "other")
    run = read_run(imported.path)
    assert digest(run) == digest(read_run(read.path))
    body = next(event.body for event in run.events if getattr(event.body, "text", None))
    assert "class GraphModule" in (run.artifacts.get(body.text) or "")
    redaction = redact(run, DiskArtifacts(tmp_path / "redacted"))
    assert len(digest(redaction.run).sites) == 3
    assert all("ada" not in event.stack[-1].file for event in redaction.run.events if event.stack)


class _CountingPack(Pack):
    """Knows how often a block was read."""

    reads = 0

    def stored_block(self, block: int) -> tuple[bytes, int]:
        self.reads += 1
        return super().stored_block(block)


def test_a_large_block_is_unpacked_once_for_all_its_texts(tmp_path: Path) -> None:
    short = [f"short {n}" for n in range(20)]
    pack = _CountingPack(write(tmp_path, *short, "large " * 500_000))
    digests = [bytes.fromhex(artifact_name(text, "py").partition(".")[0]) for text in short]
    assert [pack.get(digest) for digest in digests] == [text.encode() for text in short]
    assert pack.reads == 1


def test_what_a_pack_unpacks_to_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "_MOST_UNPACKED", 10_000_000)
    monkeypatch.setattr(packs, "_MOST_TIMES", 0)
    texts = [f"{n}" * 3_000_000 for n in range(5)]
    pack = Pack(write(tmp_path, *texts, "short"))
    found = [pack.get(bytes.fromhex(artifact_name(text, "py").partition(".")[0])) for text in texts]
    assert [text and text[:1] for text in found] == [b"0", b"1", b"2", None, None]
    digest = bytes.fromhex(artifact_name("short", "py").partition(".")[0])
    assert pack.get(digest) == b"short"


def test_packed_artifacts_are_read_as_others_are(tmp_path: Path) -> None:
    texts = ["a", "\udc80", "b" * 1_000_000, "a"]
    packed = PackedArtifacts(tmp_path, files=1)
    names = [packed.put(text, "txt") for text in texts]
    path = packed.close()
    assert path is not None
    assert [DiskArtifacts(tmp_path).get(name) for name in names] == texts
    known = [text.decode("utf-8", "surrogatepass") for text in Pack(path).texts()]
    assert sorted(known) == sorted(texts[1:3])
    assert (tmp_path / names[0]).read_text() == "a"
