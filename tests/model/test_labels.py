"""Tags and notes: bounded, written whole, and clear where the file is damaged."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import samples
from compilescope.base.errors import ToolError
from compilescope.record.home import list_runs
from compilescope.record.labels import (
    FILE_NAME,
    Labels,
    make_labels,
    read_labels,
    split_tags,
    write_labels,
)
from compilescope.report.sharing.archive import import_archive, write_archive


def test_they_are_read_as_they_were_written(tmp_path: Path) -> None:
    assert read_labels(tmp_path) == Labels()
    labels = make_labels(["base", "größe-2", "base"], "Two lines,\r\nand an é.\n")
    assert labels == Labels(("base", "größe-2"), "Two lines,\nand an é.")
    write_labels(tmp_path, labels)
    assert read_labels(tmp_path) == labels
    assert os.listdir(tmp_path) == [FILE_NAME]
    write_labels(tmp_path, Labels())
    assert os.listdir(tmp_path) == []
    write_labels(tmp_path, Labels())


def test_tags_are_typed_with_commas_or_spaces() -> None:
    assert split_tags(" a, b  c,,d\n") == ("a", "b", "c", "d")
    assert split_tags(" ,") == ()


@pytest.mark.parametrize(
    ("tags", "note", "said"),
    [
        (["a b"], "", "can't contain spaces"),
        ([""], "", "1 to 40 characters"),
        (["x" * 41], "", "1 to 40 characters"),
        (["a\x1b"], "", "control characters"),
        ([str(n) for n in range(21)], "", "at most 20 tags, not 21"),
        ([], "x" * 2001, "at most 2,000 characters, not 2,001"),
        ([], "a\x00b", "control characters"),
        ([], "a\u202eb", "control characters"),
    ],
)
def test_what_is_too_much_is_one_sentence(tags: list[str], note: str, said: str) -> None:
    with pytest.raises(ToolError) as caught:
        make_labels(tags, note)
    assert said in caught.value.message


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b'{"tags": "a"}',
        b'{"tags": ["a b"]}',
        b'{"note": 3}',
        b'{"note": "\xff"}',
        b"[" * 10_000,
        b'{"note": "' + b"x" * 70_000 + b'"}',
    ],
)
def test_a_damaged_file_is_one_sentence(data: bytes, tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_bytes(data)
    with pytest.raises(ToolError, match="is damaged") as caught:
        read_labels(tmp_path)
    assert "Delete the file" in caught.value.hint
    write_labels(tmp_path, Labels(("again",)))
    assert read_labels(tmp_path).tags == ("again",)


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="Cannot write"):
        write_labels(tmp_path / "absent", Labels(("a",)))


def test_they_travel_with_the_run(tmp_path: Path) -> None:
    folder = samples.store(samples.RUNS["full"], tmp_path / "home", "abc123-full")
    write_labels(folder, Labels(("a", "b"), "Why."))
    write_archive(folder, tmp_path / "run.zip")
    imported = import_archive(tmp_path / "run.zip", tmp_path / "other")
    assert read_labels(imported.path) == Labels(("a", "b"), "Why.")
    assert imported.files == 3


def test_folders_of_the_tools_own_are_no_runs(tmp_path: Path) -> None:
    (tmp_path / ".jobs").mkdir()
    (tmp_path / "odd").mkdir()
    samples.store(samples.RUNS["full"], tmp_path, "abc123-full")
    runs, unreadable = list_runs(tmp_path)
    assert [path.name for path, _ in runs] == ["abc123-full"]
    assert [path.name for path, _ in unreadable] == ["odd"]


def test_a_file_of_labels_is_plain_json(tmp_path: Path) -> None:
    write_labels(tmp_path, Labels(("a",), "n"))
    assert json.loads((tmp_path / FILE_NAME).read_text()) == {"tags": ["a"], "note": "n"}


def test_what_cannot_be_written_is_one_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).mkdir()
    with pytest.raises(ToolError, match="Cannot write"):
        write_labels(tmp_path, make_labels(["base"], ""))
    with pytest.raises(ToolError, match="Cannot write"):
        write_labels(tmp_path / "nowhere", make_labels(["base"], ""))
    assert os.listdir(tmp_path) == [FILE_NAME]
