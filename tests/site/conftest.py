"""The site of the installed torch, built once, and a small table with everything hostile in it."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from browsing import emptied, page_driver
from compilescope.report.site.build import BuiltSite, build_site
from compilescope.report.site.content import SiteSources
from waiting import until

EVIL = '<script>window.hurt=1</script><img src=x onerror="window.hurt=2">'


def hostile_table() -> dict[str, Any]:
    """Texts that would act if anything let them, under ids that the reader accepts."""
    texts = {
        "Gb_type": f"{EVIL} \"quoted\" 'too' {{x}} `{EVIL}`",
        "Context": f"{EVIL}]]>--><svg onload=window.hurt=3>",
        "Explanation": f"javascript:alert(1) {EVIL} \u202egnp.exe\u202c \x00\x1b[31m "
        "</title></textarea>",
        "Hints": [
            f"</script>{EVIL}",
            '[link](javascript:alert(1)) https://pytorch.org/x"onclick=y',
        ],
    }
    long = {
        "Gb_type": "word " * 400,
        "Context": "x" * 3000,
        "Explanation": "{a}" * 500,
        "Hints": [],
    }
    plain = {
        "Gb_type": "../../../../etc/passwd",
        "Context": "",
        "Explanation": "",
        "Hints": ["..\\.."],
    }
    return {
        "GB0001": [texts, {**texts, "Gb_type": "constructor"}],
        "GB0002": [long],
        "GB0003": [plain],
        "GB0004": [{"Gb_type": "__proto__ toString {y}", "Hints": ["{{ 7*7 }} {% raw %} ${7*7}"]}],
    }


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> BuiltSite:
    """Built by the first process that needs it: all that run tests side by side share it."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    done = shared / "built-site.pickle"
    try:
        (shared / "built-site").mkdir()
    except FileExistsError:
        until(done.exists)
    else:
        made = build_site(shared / "built-site" / "site")
        (shared / "built-site.part").write_bytes(pickle.dumps(made))
        (shared / "built-site.part").rename(done)
    found = pickle.loads(done.read_bytes())
    assert isinstance(found, BuiltSite)
    return found


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site made from a hostile table, hostile notes and a hostile example."""
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "table.json").write_text(json.dumps(hostile_table()))
    (folder / "notes").mkdir()
    note = f"# {EVIL}\n\n{EVIL}\n\n[a](javascript:alert(1)) ![b](https://evil.example/x.png)\n\n"
    note += f"<div onclick=x>\n\n```html\n{EVIL}\n```\n\n```python\nx = '{EVIL}'\n```\n\n"
    note += f"{'>' * 300} deep"
    (folder / "notes" / "gb0001.md").write_text(note)
    (folder / "examples").mkdir()
    example = f'"""{EVIL}"""\n\ndef f(x):\n    return x  # </script>{EVIL} # breaks here\n\n'
    (folder / "examples" / "gb0002.py").write_text(example + "def inputs():\n    return ()\n")
    (folder / "examples" / "outputs").mkdir()
    (folder / "examples" / "outputs" / "gb0002.txt").write_text(f"{EVIL}\x1b[31m")
    sources = SiteSources(folder / "table.json", folder / "notes", folder / "examples")
    return build_site(folder / "site", sources).folder


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    yield from page_driver()


@pytest.fixture
def driver(browser: Any) -> Any:
    """The one browser, without what the tests before left in it."""
    return emptied(browser)
