"""Which torch brought which graph break, and what differs between two tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compilescope.base.errors import ToolError
from compilescope.knowledge.registry.history import (
    HISTORY,
    History,
    difference,
    load_history,
    release_of,
    with_table,
    wordings,
)
from compilescope.knowledge.registry.table import Registry, load_registry, parse_registry
from compilescope.knowledge.registry.taxonomy import load_taxonomy
from upkeep.compare import history_text


def table(torch: str | None = None, **entries: Any) -> Registry:
    """`GB0001="One"`, or a list of types for several wordings."""
    raw = {
        gb_id: [
            {"Gb_type": t, "Explanation": f"{t}!"} for t in (ts if isinstance(ts, list) else [ts])
        ]
        for gb_id, ts in entries.items()
    }
    return parse_registry(json.dumps(raw).encode(), "table.json", torch)


def test_the_history_on_record_agrees_with_the_installed_torch() -> None:
    history, installed = load_history(), load_registry()
    release = release_of(installed.torch)
    if release not in history.tables:
        pytest.skip(f"torch {installed.torch} is not on record")
    assert history.version_of(installed) == release
    assert all(history.since(entry.gb_id) for entry in installed)
    for entry in installed:
        assert all(history.worded_since(entry.gb_id, word) for word in wordings(entry))


def test_every_id_on_record_has_a_category() -> None:
    taxonomy = load_taxonomy()
    assert [
        g for g, title in load_history().titles.items() if not taxonomy.category_of(g, title)
    ] == []


def test_the_file_is_as_the_tool_writes_it() -> None:
    assert HISTORY.read_text(encoding="utf-8") == history_text(load_history())


def test_steps() -> None:
    history = History()
    history = with_table(history, table(GB0001="One", GB0002="Two"), "2.8.0")
    history = with_table(history, table(GB0001=["Uno", "One"], GB0003="Three"), "2.10.0")
    history = with_table(history, table(GB0001="One", GB0002="Two"), "2.9.0")  # Out of order.
    history = with_table(history, table(GB0001=["Uno", "One"], GB0003="Three"), "2.10.1")
    assert [step.torch for step in history.steps] == ["2.8.0", "2.10.0"]
    first, second = history.steps
    assert first.also == ("2.9.0",) and second.also == ("2.10.1",)
    assert list(second.came) == ["GB0003"] and second.went == ("GB0002",)
    assert list(second.reworded) == ["GB0001"]
    assert history.since("GB0001") == "2.8.0" and history.since("GB0003") == "2.10.0"
    assert history.since("GB0009") is None
    newest = table(GB0001=["Uno", "One"]).entries[0]
    assert [history.worded_since("GB0001", w) for w in wordings(newest)] == ["2.10.0", "2.8.0"]
    assert history.titles["GB0002"] == "Two"
    again = with_table(history, table(GB0001="One", GB0002="Two"), "2.9.0")
    assert history_text(again) == history_text(history)


def test_releases() -> None:
    assert release_of("2.13.0+cpu") == "2.13.0" and release_of("2.9.1") == "2.9.1"
    assert (
        release_of("2.16.0a0+git123") is None
        and release_of(None) is None
        and release_of("") is None
    )


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "not valid"),
        (b"[]", "not valid"),
        (b'{"steps": [{"torch": "../x"}]}', "not a release"),
        (b'{"steps": [{"torch": "2.9.0"}, {"torch": "2.8.0"}]}', "not in order"),
        (b'{"steps": [{"torch": "2.9.0", "went": ["../x"]}]}', "not a graph-break id"),
        (
            b'{"steps": [{"torch": "2.9.0", "came": {"x": {"title": "", "wordings": []}}}]}',
            "not a graph-break id",
        ),
    ],
)
def test_a_broken_history_is_one_sentence(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "history.json"
    path.write_bytes(content)
    with pytest.raises(ToolError, match=says):
        load_history(path)
    with pytest.raises(ToolError, match="could not be read"):
        load_history(tmp_path / "absent.json")


def test_difference() -> None:
    old = table("2.8.0", GB0001="One", GB0002="Two", GB0004=["B", "A"])
    new = table("2.9.0", GB0001="Uno", GB0003="Three", GB0004=["B"])
    found = difference(old, new)
    assert (found.before, found.after) == ("2.8.0", "2.9.0")
    assert [entry.gb_id for entry in found.came] == ["GB0003"]
    assert [entry.gb_id for entry in found.went] == ["GB0002"]
    one, four = found.reworded
    assert one.changes == {"type": ("One", "Uno"), "explanation": ("One!", "Uno!")}
    assert four.gb_id == "GB0004" and four.changes == {}
    assert found.same == 0
    same = difference(new, new)
    assert same.same == 3 and not (same.came or same.went or same.reworded)
