"""Notes of people, and their import from the pages of the original site."""

from __future__ import annotations

from pathlib import Path

import pytest

from compilescope.base.errors import ToolError
from compilescope.knowledge.registry.history import load_history
from compilescope.knowledge.registry.notes import NOTES, read_notes
from upkeep.lint import misnamed
from upkeep.old_site import added_words, import_pages

START = "<!-- ADDITIONAL INFORMATION START - Add custom information below this line -->"
END = "<!-- ADDITIONAL INFORMATION END -->"
KNOWN = frozenset({"GB0001", "GB0002", "GB0003", "GB0124"})


def page(words: str, start: str = START, end: str = END) -> bytes:
    return (
        "---\nlayout: default\n---\n# GB0124\n\n## Hints\n- <!-- a comment -->\n\n"
        f"## Additional Information\n\n{start}\n{words}{end}\n\n[Back](../index.html)\n"
    ).encode()


def test_the_notes_that_come_with_it_belong_to_ids() -> None:
    ids = set(load_history().titles)
    notes = read_notes()
    assert set(notes) <= ids and misnamed(NOTES) == []
    for note in notes.values():
        assert note.path.name == f"{note.gb_id.lower()}.md" and note.text.strip()


def test_reading(tmp_path: Path) -> None:
    (tmp_path / "gb0124.md").write_text("Words.")
    (tmp_path / "gb0125.md").write_text(" \n")
    (tmp_path / "README.md").write_text("Not a note.")
    (tmp_path / "gb7.md").write_text("Named shortly.")
    assert set(read_notes(tmp_path)) == {"GB0124", "GB0007"}
    assert [path.name for path in misnamed(tmp_path)] == ["gb7.md"]
    (tmp_path / "gb0001.md").write_bytes(b"\xff\xfe")
    with pytest.raises(ToolError, match="UTF-8"):
        read_notes(tmp_path)
    (tmp_path / "gb0001.md").write_text("x" * 300_000)
    with pytest.raises(ToolError, match="larger than"):
        read_notes(tmp_path)
    with pytest.raises(ToolError, match="no folder"):
        read_notes(tmp_path / "absent")


@pytest.mark.parametrize(
    "words",
    [
        "Plain.\n",
        "```python\ndef f(x):\n    return x.item()\n```\n\nAfter  \n",
        "\u00fc \u4f60\u597d \t\ttabs  \n\n\n",
        "CRLF\r\nlines\r\n",
        "<!-- a comment of a person -->\n# Title\n",
    ],
)
def test_words_are_kept_byte_for_byte(words: str) -> None:
    assert added_words(page(words)) == words.encode()


@pytest.mark.parametrize(
    ("start", "end"),
    [
        (START, END),
        ("<!-- additional information start -->", "<!-- additional information end -->"),
        ("<!-- START -->", "<!-- END -->"),
        ("<!--ADDITIONAL INFORMATION START\n more words -->", "<!--ADDITIONAL INFORMATION END-->"),
    ],
)
def test_markers(start: str, end: str) -> None:
    assert added_words(page("Words.\n", start, end)) == b"Words.\n"


def test_pages_without_markers() -> None:
    assert added_words(b"# GB0124\n\nno markers") is None
    assert added_words(page("", end="")) is None
    assert added_words(page("x", start="<!-- GENERATED PART START HERE -->")) is None


def test_import(tmp_path: Path) -> None:
    pages, notes = tmp_path / "site" / "docs" / "gb", tmp_path / "notes"
    pages.mkdir(parents=True)
    (pages / "gb0001.md").write_bytes(page("One.\n"))
    (pages / "gb0002.md").write_bytes(page("\n"))
    (pages / "gb0003.md").write_bytes(b"no markers")
    (pages / "gb0124.md").write_bytes(page("Theirs.\n"))
    (pages / "gb8888.md").write_bytes(page("Of no id.\n"))
    (pages / "gb0009.md").write_bytes(page("").replace(END.encode(), b"\xff\xfe" + END.encode()))
    notes.mkdir()
    (notes / "gb0124.md").write_text("Ours.\n")

    def fates(**kwargs: bool) -> dict[str, str]:
        return {p.gb_id: p.fate for p in import_pages(tmp_path / "site", notes, KNOWN, **kwargs)}

    assert fates() == {
        "GB0001": "imported",
        "GB0002": "empty",
        "GB0003": "unmarked",
        "GB0009": "unreadable",
        "GB0124": "kept",
        "GB8888": "unknown",
    }
    assert (notes / "gb0001.md").read_bytes() == b"One.\n"
    assert (notes / "gb0124.md").read_text() == "Ours.\n"
    assert fates()["GB0001"] == "same"
    assert fates(force=True)["GB0124"] == "replaced"
    assert (notes / "gb0124.md").read_text() == "Theirs.\n"
    names = [".imported.json", "gb0001.md", "gb0124.md"]
    assert sorted(path.name for path in notes.iterdir()) == names and misnamed(notes) == []


def test_an_unedited_import_follows_its_page(tmp_path: Path) -> None:
    pages, notes = tmp_path / "docs" / "gb", tmp_path / "notes"
    pages.mkdir(parents=True)

    def fate(words: str) -> str:
        (pages / "gb0124.md").write_bytes(page(words))
        return import_pages(tmp_path, notes, KNOWN)[0].fate

    assert [fate("One.\n"), fate("Two.\n"), fate("Two.\n")] == ["imported", "updated", "same"]
    (notes / "gb0124.md").write_text("Mine.\n")
    assert fate("Three.\n") == "kept" and (notes / "gb0124.md").read_text() == "Mine.\n"
    (notes / ".imported.json").write_text("{broken")
    assert fate("Three.\n") == "kept"
    (notes / "gb0124.md").unlink()
    assert fate("Three.\n") == "imported"


def test_what_is_no_site_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="no graph-break pages"):
        import_pages(tmp_path, tmp_path / "notes", KNOWN)
    with pytest.raises(ToolError, match="no folder"):
        import_pages(tmp_path / "absent", tmp_path / "notes", KNOWN)


def test_a_page_of_comments_takes_no_time() -> None:
    """Markers are looked for in any page: none may make the search run away."""
    assert added_words(b"<!-- START " * 20_000) is None
    assert added_words(b"<!--" + b"START -" * 50_000) is None
