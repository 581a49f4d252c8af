"""The documentation builds as a site: links lead somewhere, pages load nothing from afar."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from compilescope.apps.cli.main import GROUPS
from compilescope.change.fixes.catalogue import all_fixes
from docs_pages import DOCS, README, ROOT, pages

BUILD = DOCS / "build.py"
needs_builder = pytest.mark.skipif(
    importlib.util.find_spec("zensical") is None,
    reason='Zensical is not installed: pip install -e ".[docs]"',
)
_LOADED = re.compile(
    r"""<(?:script|img|iframe|source|video|audio|embed)\b[^>]*?\bsrc(?:set)?=["']?([^"'\s>]+)"""
    r"""|<link\b(?![^>]*rel=["']?canonical)[^>]*?\bhref=["']?([^"'\s>]+)|@import\s+["']([^"']+)"""
    r"""|url\(["']?([^)"']+)""",
    re.I,
)
"""What a browser fetches by itself; where an `<a>` leads is for the reader to follow."""


def built(folder: Path, root: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(root / "docs" / "build.py"), "-o", str(folder)]
    return subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "NO_COLOR": "1"}
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs") / "site"
    done = built(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No issues found" in done.stdout + done.stderr
    return folder


@needs_builder
def test_every_page_is_there(site: Path) -> None:
    for path in pages():
        if path != README:
            assert (site / path.relative_to(DOCS)).with_suffix(".html").exists(), path


@needs_builder
def test_the_reference_is_made_from_the_code(site: Path) -> None:
    commands = (site / "reference" / "commands.html").read_text(encoding="utf-8")
    for name in (name for names in GROUPS.values() for name in names):
        assert f'id="compilescope-{name}"' in commands, name
    fixes = (site / "reference" / "fixes.html").read_text(encoding="utf-8")
    for fix in all_fixes():
        assert f'id="{fix.id}"' in fixes, fix.id


@needs_builder
def test_no_page_loads_anything_from_afar(site: Path) -> None:
    far = re.compile(r"(?:https?:)?//", re.I)
    for path in [*site.rglob("*.html"), *site.rglob("*.css")]:
        text = path.read_text(encoding="utf-8")
        loaded = [word for found in _LOADED.findall(text) for word in found if far.match(word)]
        assert not loaded, f"{path.relative_to(site)}: {loaded}"


@needs_builder
@pytest.mark.parametrize("link", ["[x](../../nowhere.py)", "[x](fix.md#no-such-heading)"])
def test_a_link_that_leads_nowhere_fails_the_build(link: str, tmp_path: Path) -> None:
    for name in ("docs", "mkdocs.yml", "CONTRIBUTING.md", "cpp", "examples"):
        source = ROOT / name
        ignored = shutil.ignore_patterns("*.png", "__pycache__", "build")
        if source.is_dir():
            shutil.copytree(source, tmp_path / name, ignore=ignored)
        else:
            shutil.copy(source, tmp_path)
    with (tmp_path / "docs" / "guides" / "explain.md").open("a") as file:
        file.write(f"\n{link}\n")
    assert built(tmp_path / "site", tmp_path).returncode != 0


def test_links_of_the_repository_lead_somewhere() -> None:
    """As GitHub shows the pages, which MkDocs' check does not see."""
    dead = []
    for path in [*pages(), ROOT / "CONTRIBUTING.md"]:
        text = re.sub(
            r"```.*?```|^ {4}[^\n]*$|`[^`\n]*`", "", path.read_text("utf-8"), flags=re.S | re.M
        )
        for link in re.findall(r"\]\(([^)\s#:]+)(?:#[^)]*)?\)", text):
            if not (path.parent / link).exists():
                dead.append(f"{path.relative_to(ROOT)}: {link}")
    assert not dead, "\n".join(dead)
