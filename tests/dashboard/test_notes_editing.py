"""Notes on graph breaks, edited in the dashboard: the user's own files, safely drawn and saved."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest

from axe_checks import grave_findings
from browsing import CONTRAST, looking, seen
from compilescope.base.errors import ToolError
from compilescope.knowledge.registry.notes import (
    BIGGEST_BYTES,
    NOTES,
    NoteChanged,
    own_note,
    own_notes,
    save_note,
    stamp_of,
)
from compilescope.knowledge.registry.table import table_file
from compilescope.report.site.build import build_site
from compilescope.report.site.content import SiteSources
from dashboard_server import Served

try:
    table_file()
except ToolError:
    pytest.skip("there is no torch with a table", allow_module_level=True)

AT = "/registry/GB0170"
NOTE = f"{AT}/note"
EMPTY = stamp_of("")


@pytest.fixture
def notes(registry: Served) -> Iterator[Path]:
    """The user's folder, which is not there yet; what a test makes of it is taken away."""
    folder = registry.options.notes
    assert folder is not None and not folder.exists()
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def plain(page: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page)).split())


def loaded(registry: Served) -> str:
    found = re.search(r'name="loaded" value="(\w+)"', registry.client.get(NOTE).text)
    assert found is not None
    return found[1]


def save(registry: Served, text: str, **fields: str) -> httpx.Response:
    known = {"text": text, "loaded": fields.pop("loaded", loaded(registry))}
    return registry.client.post(NOTE, data={**known, **fields})


def test_a_note_is_written_shown_changed_and_deleted(registry: Served, notes: Path) -> None:
    assert not notes.exists()
    answer = save(registry, "Ask **Ada** first.\r\n\r\n```python\r\nx = 1\r\n```")
    assert answer.status_code == 200 and answer.url.path == AT
    assert (notes / "gb0170.md").read_text() == "Ask **Ada** first.\n\n```python\nx = 1\n```\n"
    said = plain(answer.text)
    # The user's own stands above ours, and both say whose they are.
    assert said.index("Local note") < said.index("Ask Ada first.")
    assert said.index("Ask Ada first.") < said.index("Comes with compilescope")
    assert "Saved." in said and "Edit the local note" in said
    assert "<strong>Ada</strong>" in answer.text
    assert "Ask **Ada** first." in unescape(registry.client.get(NOTE).text)
    assert os.listdir(notes) == ["gb0170.md"]
    # An empty text asks before it deletes.
    asked = save(registry, "  \n")
    assert "Delete this note?" in plain(asked.text)
    assert (notes / "gb0170.md").exists()
    gone = save(registry, "", confirm="delete")
    assert "Deleted." in plain(gone.text) and "Add a local note" in plain(gone.text)
    assert os.listdir(notes) == []


def test_notes_are_found_and_counted(registry: Served, notes: Path) -> None:
    before = registry.client.get("/registry", params={"has": "note"}).text
    save(registry, "A word that no other has: xylophone.")
    listed = registry.client.get("/registry", params={"has": "note"}).text
    assert before.count('class="row"') == listed.count('class="row"')
    assert "xylophone" in listed


def test_preview(registry: Served, notes: Path) -> None:
    text = "# Big\n\n<script>alert(1)</script> [a](javascript:alert(1)) ![p](http://x/y.png)"
    answer = save(registry, text, action="preview")
    [preview] = re.findall(r'<section id="preview".*?</section>', answer.text, re.S)
    assert "<h3>Big</h3>" in preview
    assert "&lt;script&gt;" in preview and "<script" not in preview
    assert "javascript:" not in re.findall(r'href="([^"]*)"', preview)
    assert "<img" not in preview
    assert "<h1>Note on GB0170</h1>" in answer.text
    assert text in unescape(answer.text)
    assert not (notes / "gb0170.md").exists()


@pytest.mark.parametrize(
    "text",
    [
        "<script>window.hurt=1</script>",
        "<img src=x onerror=window.hurt=1>",
        "[x](javascript:window.hurt=1) <javascript:window.hurt=1>",
        "[x](data:text/html,<script>window.hurt=1</script>)",
        "</div></section><script>window.hurt=1</script>",
        "```python\n</code></pre><script>window.hurt=1</script>\n```",
        "```</textarea><script>window.hurt=1</script>\n```",
        "a\x00b".replace("\x00", "\x1b[31m") + "\u202e",
        "> " * 3000 + "deep",
        "[" * 5000,
    ],
)
def test_markdown_of_an_enemy(registry: Served, notes: Path, text: str) -> None:
    answer = save(registry, text)
    assert answer.status_code == 200 and answer.url.path == AT
    for page in (answer.text, registry.client.get(NOTE).text):
        assert "<script>window" not in page
        assert "<img" not in page
        for address in re.findall(r'href="([^"]*)"', page):
            assert not unescape(address).lower().strip().startswith(("javascript", "data:t"))


def test_two_who_edit_at_once_lose_nothing(registry: Served, notes: Path) -> None:
    mine = loaded(registry)
    assert save(registry, "Theirs, saved first.").status_code == 200
    answer = save(registry, "Mine, saved later.", loaded=mine)
    assert answer.status_code == 409
    said = plain(answer.text)
    assert "Somebody else changed this note" in said
    assert "Theirs, saved first." in said and "Mine, saved later." in said
    assert (notes / "gb0170.md").read_text() == "Theirs, saved first.\n"
    # Knowing theirs, one may save one's own.
    [known] = re.findall(r'name="loaded" value="(\w+)"', answer.text)
    assert save(registry, "Mine, after all.", loaded=known).status_code == 200
    assert (notes / "gb0170.md").read_text() == "Mine, after all.\n"
    # The same text twice is no conflict.
    assert save(registry, "Mine, after all.", loaded=mine).status_code == 200


def test_deleted_by_another_meanwhile(registry: Served, notes: Path) -> None:
    save(registry, "First.")
    mine = loaded(registry)
    (notes / "gb0170.md").unlink()
    answer = save(registry, "Second.", loaded=mine)
    assert answer.status_code == 409 and "The note was deleted." in plain(answer.text)
    assert "Second." in answer.text


def test_of_many_at_once_one_is_saved(tmp_path: Path) -> None:
    folder = tmp_path / "notes"

    def write(number: int) -> bool:
        try:
            save_note(folder, "GB0170", f"number {number}", EMPTY)
        except NoteChanged:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(write, range(40))) == 1
    assert os.listdir(folder) == ["gb0170.md"]


@pytest.mark.parametrize(
    "gb_id",
    ["GB9999", "nope", "..%2f..%2fetc%2fpasswd", "..", "%2e%2e", "GB0170%2f..%2fx", "gb0170%00"],
)
def test_ids_that_are_none(registry: Served, notes: Path, gb_id: str) -> None:
    data = {"text": "x", "loaded": EMPTY}
    answer = registry.client.post(f"/registry/{gb_id}/note", data=data)
    assert answer.status_code in (400, 404, 405)
    assert not notes.exists() or os.listdir(notes) == []


@pytest.mark.parametrize("gb_id", ["../x", "GB0170/../../x", "", "x", "GB1234567"])
def test_no_other_file_is_named(tmp_path: Path, gb_id: str) -> None:
    for act in (lambda: save_note(tmp_path, gb_id, "x", EMPTY), lambda: own_note(tmp_path, gb_id)):
        with pytest.raises(ToolError, match="is not the ID of a graph break"):
            act()
    assert os.listdir(tmp_path) == []


def test_what_is_too_much_or_no_text(registry: Served, notes: Path) -> None:
    stamp = loaded(registry)
    big = save(registry, "x" * (BIGGEST_BYTES + 1))
    assert big.status_code == 400 and "at most 256 KB" in plain(big.text)
    assert save(registry, "é" * (BIGGEST_BYTES // 2)).status_code in (200, 400)
    huge = registry.client.post(NOTE, data={"text": "x" * (5 * BIGGEST_BYTES), "loaded": stamp})
    assert huge.status_code == 413
    kind = {"content-type": "application/x-www-form-urlencoded"}
    for body in (b"text=%ff%fe&loaded=" + stamp.encode(), b"text=\xff\xfe", b"text=a%00b"):
        answer = registry.client.post(NOTE, content=body, headers=kind)
        assert answer.status_code == 400, body
    for body in (b"text=a&text=b", b"text=a&evil=1", b"&".join([b"text=a"] * 50)):
        assert registry.client.post(NOTE, content=body, headers=kind).status_code == 400
    assert registry.client.post(NOTE, json={"text": "x"}).status_code in (400, 415)
    assert save(registry, "x", action="burn").status_code == 400


def test_links_are_not_followed(registry: Served, notes: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.md"
    secret.write_text("a secret\n")
    notes.mkdir(parents=True, exist_ok=True)
    (notes / "gb0170.md").symlink_to(secret)
    page = registry.client.get(AT).text
    assert "a secret" not in page and "is a link" in page
    assert "a secret" not in registry.client.get(NOTE).text
    data = {"text": "changed", "loaded": stamp_of("a secret\n")}
    assert registry.client.post(NOTE, data=data).status_code == 400
    assert secret.read_text() == "a secret\n"


def test_a_linked_folder(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(ToolError, match="is a link"):
        save_note(tmp_path / "link", "GB0170", "x", EMPTY)
    assert os.listdir(tmp_path / "real") == []
    assert own_notes(tmp_path / "link") == {}


def test_the_package_is_never_written() -> None:
    before = (NOTES / "gb0170.md").read_bytes()
    stamp = stamp_of(before.decode())
    for folder in (NOTES, NOTES.parent, NOTES / "deeper"):
        with pytest.raises(ToolError, match="belongs to compilescope itself"):
            save_note(folder, "GB0170", "x", stamp)
    assert (NOTES / "gb0170.md").read_bytes() == before
    assert not (NOTES / "deeper").exists()


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ToolError, match="could not be saved"):
        save_note(tmp_path / "file" / "notes", "GB0170", "x", EMPTY)


def test_a_file_that_is_no_note(registry: Served, notes: Path) -> None:
    notes.mkdir(parents=True, exist_ok=True)
    (notes / "gb0170.md").write_bytes(b"\xff\xfe")
    page = plain(registry.client.get(AT).text)
    assert "is not UTF-8" in page and "Edit the local note" not in page
    assert registry.client.get(NOTE).status_code == 400
    assert registry.client.get("/registry").status_code == 200


def test_the_site_is_built_with_them(registry: Served, notes: Path, tmp_path: Path) -> None:
    save(registry, "Ask Ada first.")
    table = tmp_path / "table.json"
    table.write_text('{"GB0170": [{"Gb_type": "Data-dependent branching"}]}')
    build_site(tmp_path / "site", SiteSources(table, notes))
    page = plain((tmp_path / "site" / "gb" / "gb0170.html").read_text())
    assert page.index("Ask Ada first.") < page.index("Comes with compilescope")


def test_who_has_no_token_or_comes_from_elsewhere(registry: Served, notes: Path) -> None:
    data = {"text": "x", "loaded": EMPTY}
    with registry.stranger(headers={"origin": registry.base}) as stranger:
        assert stranger.post(NOTE, data=data).status_code == 401
    elsewhere = {"origin": "http://evil.example", "sec-fetch-site": "cross-site"}
    assert registry.client.post(NOTE, data=data, headers=elsewhere).status_code == 403
    assert not (notes / "gb0170.md").exists()


def test_without_a_folder_for_notes(served: Served) -> None:
    assert "start the server with --notes DIR" in plain(served.client.get(AT).text)
    assert served.client.get(NOTE).status_code == 400
    answer = served.client.post(NOTE, data={"text": "x", "loaded": EMPTY})
    assert answer.status_code == 400


@pytest.mark.browser
def test_writing_a_note_in_a_browser(driver: Any, registry: Served, notes: Path) -> None:
    registry.sign_in(driver)
    driver.get(registry.base + AT)
    seen(driver, "#note a.button").click()
    seen(driver, "#note-text").send_keys("Ask **Ada** first.")
    seen(driver, "button[value=preview]").click()
    assert seen(driver, "#preview strong").text == "Ada"
    with looking(driver, 400, 900, "light"):
        assert grave_findings(driver) == []
        assert driver.execute_script(CONTRAST) == []
        wide = "return document.documentElement.scrollWidth - innerWidth"
        assert driver.execute_script(wide) <= 0
    # Meanwhile somebody else saves one.
    save_note(notes, "GB0170", "Ask Grace.", EMPTY)
    seen(driver, "button[value=save]").click()
    assert seen(driver, "#conflict").text == "Somebody else changed this note"
    assert seen(driver, "pre.theirs").text == "Ask Grace."
    assert seen(driver, "#note-text").get_attribute("value") == "Ask **Ada** first."
    assert grave_findings(driver) == []
    seen(driver, "button[value=save]").click()
    assert seen(driver, "#note .notice").text == "Saved."
    assert seen(driver, "#note .note strong").text == "Ada"
    # Leaving it empty deletes it, after a question.
    seen(driver, "#note a.button").click()
    seen(driver, "#note-text").clear()
    seen(driver, "button[value=save]").click()
    seen(driver, "#deleting")
    assert grave_findings(driver) == []
    seen(driver, "button.danger").click()
    assert seen(driver, "#note .notice").text == "Deleted."
    assert os.listdir(notes) == []
    # The refused save is an error for the console; and no page with a place in its address lets
    # a closed dialog take focus.
    told = [entry["message"] for entry in driver.get_log("browser")]
    assert [words for words in told if "409" not in words and "Autofocus" not in words] == []
