"""`compilescope runs list`: what is kept whole on a narrow terminal, and what runs hold."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from compilescope.apps.cli.main import main
from compilescope.apps.cli.streams import any_encoding
from compilescope.base.errors import ToolError
from compilescope.record.header import read_header, write_header
from compilescope.record.home import find_run
from compilescope.record.run_files import note_product, run_files
from samples import RUNS, store

LONG = ("train.py", "--dataset", "/very/long/path/to/a/dataset", "--out", "/another/long/path")
ID = "abc123-a-label-of-24-letters-xx"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for at, name in enumerate((ID, "abd456-other", "fff000-crash"), 1):
        folder = store(RUNS["full"], tmp_path, name)
        header = read_header(folder)
        more: dict[str, Any] = {"command": LONG, "started_ns": at}
        if "crash" in name:
            more |= {"exit_status": None, "signal": 11, "command": ("-c", "import x\nx.y()")}
        write_header(folder, msgspec.structs.replace(header, **more))
    return tmp_path


def called(home: Path, *words: str, stream: io.StringIO, width: int = 80) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(width))
        patch.setenv("NO_COLOR", "1")
        patch.setattr(sys, "argv", ["compilescope", *words, "--dir", str(home)])
        patch.setattr(sys, "stdout", stream)
        with pytest.raises(SystemExit) as ended:
            main()
    assert not ended.value.code
    return stream.getvalue()


@pytest.mark.parametrize("width", [80, 70, 40])
def test_a_narrow_terminal_keeps_id_time_and_status(home: Path, width: int) -> None:
    text = called(home, "list", stream=Terminal(), width=width)
    lines = text.splitlines()
    for name, status in ((ID, "ok"), ("abd456-other", "ok"), ("fff000-crash", "SIGSEGV")):
        [line] = [line for line in lines if name in line]
        assert status in line.split() and "ago" in line
    if width >= 70:
        assert max(map(len, lines)) <= width and "train.py" in text and "…" in text
    assert len([line for line in lines if "crash" in line]) == 1, "one line, whatever -c has"


def test_a_pipe_gets_everything(home: Path) -> None:
    text = called(home, "list", stream=io.StringIO())
    assert " ".join(LONG) in text and "…" not in text


def test_a_terminal_gets_two_screens(home: Path) -> None:
    for number in range(60):
        store(RUNS["full"], home, f"e{number:05}-full")
    text = called(home, "list", stream=Terminal())
    assert len(text.splitlines()) < 48
    assert text.splitlines()[-1].startswith("Everything: compilescope runs --all")
    assert called(home, "list", "--all", stream=Terminal()).count("-full") == 60


def test_what_a_run_holds(home: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = home / ID
    (folder / "repros").mkdir()
    (folder / "repros" / "gb.py").write_text("x = 1\n")
    outside = tmp_path_factory.mktemp("out") / "run.html"
    outside.write_text("<html>")
    for _ in range(2):
        note_product(folder, "report", outside)
    note_product(folder, "export", outside.with_name("gone.zip"))
    found = {(held.kind, held.path): held.bytes for held in run_files(folder)}
    assert found[("repro", "repros/gb.py")] == 6 and found[("report", str(outside))] == 6
    assert ("header", "run.json") in found and ("events", "events-0.jsonl") in found
    assert not [path for _, path in found if "gone" in path or "products" in path]
    seen = json.loads(called(home, "list", "--artifacts", "--json", stream=io.StringIO()))
    [run] = [run for run in seen["runs"] if run["run"] == ID]
    assert {"kind": "repro", "path": "repros/gb.py", "bytes": 6} in run["artifacts"]
    text = called(home, "list", "--artifacts", stream=io.StringIO())
    assert "repros/gb.py" in text and str(outside) in text
    assert "artifacts" not in json.loads(called(home, "list", "--json", stream=io.StringIO()))


def test_damaged_notes_of_products_are_passed_over(home: Path) -> None:
    folder = home / ID
    (folder / "products.jsonl").write_bytes(b'{"kind": 3}\n\xff\n[]\n{"kind": "report"}\n')
    assert all(held.kind != "report" for held in run_files(folder))


def test_ids_as_printed_are_found(home: Path) -> None:
    (home / "abd456-other").rename(home / "copied")
    assert find_run(home, "abd456-other") == home / "copied" == find_run(home, "copied")
    assert find_run(home, ID) == home / ID == find_run(home, "abc")
    with pytest.raises(ToolError, match=r"'ab' matches 2 runs: .*") as several:
        find_run(home, "ab")
    assert "more of the ID" in (several.value.hint or "")
    with pytest.raises(ToolError, match="ID is empty"):
        find_run(home, "")


def test_clean_takes_runs_by_name(home: Path) -> None:
    called(home, "clean", "abd", "--yes", stream=io.StringIO())
    assert sorted(path.name for path in home.iterdir()) == [ID, "fff000-crash"]


@pytest.mark.parametrize(
    "odd",
    [
        {"signal": 40, "exit_status": None},
        {"signal": -1, "exit_status": None},
        {"signal": 10**30, "exit_status": 10**300},
        {"command": ["\ud800.py"], "cwd": "\udcff", "host": "\ud800"},
        {"started_ns": 10**25, "ended_ns": 10**400},
        {"started_ns": -1},
        {"started_ns": float("nan")},
        {"ended_ns": float("inf")},
        {"launcher_pid": 10**30, "ended_ns": None, "exit_status": None},
        {"command": "train.py"},
        {"\ud800": 1, "host": {"\ud800": 1}},
    ],
)
@pytest.mark.parametrize("words", [("list",), ("list", "--json", "--artifacts")])
def test_one_odd_header_does_not_hide_the_others(
    home: Path,
    odd: dict[str, object],
    words: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = home / "abd456-other" / "run.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **odd}))
    monkeypatch.setattr(sys, "argv", ["compilescope", *words, "--dir", str(home)])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr()
    assert ended.value.code == 0 and ID in said.out and "abd456-other" in said.out + said.err


def test_a_stream_that_cannot_hold_a_character(monkeypatch: pytest.MonkeyPatch) -> None:
    text = '{"a": "é漢😀"}'
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), "ascii"))
    assert json.loads(any_encoding(text)) == json.loads(text)
    assert any_encoding(text).isascii()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), "UTF-8"))
    assert any_encoding(text) == text


def test_a_terminal_that_cannot_hold_a_character(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = home / ID
    write_header(folder, msgspec.structs.replace(read_header(folder), command=("é漢.py",)))
    out = io.TextIOWrapper(io.BytesIO(), "ascii")
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "argv", ["compilescope", "list", "--dir", str(home)])
    with pytest.raises(SystemExit) as ended:
        main()
    out.flush()
    assert ended.value.code == 0 and b"\\xe9\\u6f22.py" in out.buffer.getvalue()  # type: ignore[attr-defined]
