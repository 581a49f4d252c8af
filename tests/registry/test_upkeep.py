"""`tools/registry_upkeep.py`: what keeps the registry true to torch."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from compilescope.knowledge.registry.notes import own_notes
from compilescope.knowledge.registry.table import load_registry, parse_registry
from compilescope.knowledge.registry.taxonomy import load_taxonomy
from compilescope.knowledge.registry.torch_copy import dynamo_sources, raised_types, torch_of
from registry_upkeep import main
from upkeep.lint import TableCompanions, counted, lint

ENTRY = {"Gb_type": "A type", "Context": "", "Explanation": "Words.", "Hints": ["A hint."]}
SOURCE = """
def f(gb_type, name):
    unimplemented(gb_type="One", context="")
    unimplemented(gb_type=f"Two {name}", context="")
    unimplemented(gb_type="Three" if name else "Four", context="")
    unimplemented(gb_type=gb_type, context="")
"""
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: object) -> tuple[int, str, str]:
        status = main([str(each) for each in arguments])
        return (status, *capsys.readouterr())

    return call


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "table.json"
    path.write_text(json.dumps({"GB0124": [ENTRY], "GB9990": [{**ENTRY, "Gb_type": "Other"}]}))
    return path


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("compare", "absent.whl"), "There is no file absent.whl"),
        (("compare",), "Pass SOURCE or --against"),
        (("import", "absent"), "There is no folder absent"),
        (("lint", "--only", "nonsense"), "There is no kind nonsense"),
        (("lint", "absent.json"), "There is no file absent.json"),
        (("nonsense",), "No such command"),
    ],
)
def test_mistakes_get_one_sentence(run: Run, arguments: tuple[str, ...], says: str) -> None:
    status, out, err = run(*arguments)
    assert status == 2 and out == "" and says in err


def test_compare_tells_the_difference(run: Run, small: Path, tmp_path: Path) -> None:
    newer = tmp_path / "newer.json"
    words = {**ENTRY, "Explanation": "Other words."}
    newer.write_text(json.dumps({"GB0124": [words], "GB0170": [ENTRY]}))
    status, out, _ = run("compare", newer, "--against", small)
    assert status == 0 and "1 added, 1 removed, 1 reworded" in out
    assert "Other words." in out and "GB0170" in out and "GB9990" in out
    assert "No differences" in run("compare", small, "--against", small)[1]


def test_compare_records_a_release(run: Run, small: Path, tmp_path: Path) -> None:
    torch = tmp_path / "checkout" / "torch"
    (torch / "_dynamo").mkdir(parents=True)
    (torch / "_dynamo" / "graph_break_registry.json").write_bytes(small.read_bytes())
    history, checkout = tmp_path / "history.json", tmp_path / "checkout"
    wanted = ("compare", checkout, "--against", small, "--record", "--history", history)
    assert "not from a torch release" in run(*wanted)[2] and not history.exists()
    (torch / "version.py").write_text("__version__ = '9.1.0+cpu'\n")
    assert "Recorded" in run(*wanted)[1]
    assert json.loads(history.read_text())["steps"][0]["torch"] == "9.1.0"
    before = history.read_bytes()
    assert run(*wanted)[0] == 0 and history.read_bytes() == before


def test_import_reports_and_never_overwrites(run: Run, tmp_path: Path) -> None:
    (tmp_path / "gb").mkdir()
    (tmp_path / "notes").mkdir()
    marks = ("<!-- ADDITIONAL INFORMATION START -->\n", "<!-- ADDITIONAL INFORMATION END -->")
    for name in ("gb0124", "gb0170"):
        (tmp_path / "gb" / f"{name}.md").write_text(f"{marks[0]}Theirs.\n{marks[1]}\n")
    (tmp_path / "gb" / "gb0059.md").write_text(f"{marks[0]}{marks[1]}\n")
    (tmp_path / "notes" / "gb0170.md").write_text("Ours.")
    status, out, _ = run("import", tmp_path, "--notes", tmp_path / "notes")
    assert status == 0 and "Imported 1 of 3 pages" in out
    assert "skipped: you have a different note" in out and "nobody has added text" in out
    assert (tmp_path / "notes" / "gb0124.md").read_text() == "Theirs.\n"
    assert (tmp_path / "notes" / "gb0170.md").read_text() == "Ours."
    again = run("import", tmp_path, "--notes", tmp_path / "notes")[1]
    assert "Imported 0 of 3 pages" in again and "already imported" in again


def test_an_import_goes_where_the_user_s_notes_are(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    pages = tmp_path / "compile-graph-break-site" / "docs" / "gb"
    pages.mkdir(parents=True)
    start = "<!-- ADDITIONAL INFORMATION START - Add custom information below this line -->"
    page = f"# GB0124\n\n{start}\nTheirs.\n<!-- ADDITIONAL INFORMATION END -->\n\n[Back](..)\n"
    (pages / "gb0124.md").write_text(page)
    assert "Imported 1 of 1 pages" in run("import", tmp_path / "compile-graph-break-site")[1]
    notes = own_notes(tmp_path / "config" / "compilescope" / "notes")
    assert notes["GB0124"].text == "Theirs.\n"


def test_lint(run: Run, tmp_path: Path) -> None:
    status, out, _ = run("lint")
    assert status == 1 and "no longer raised" in out and "GB0010" in out
    status, out, _ = run("lint", "--only", "placeholder")
    assert status == 1 and "placeholder, " in out and "no longer raised" not in out
    path = tmp_path / "one.json"
    path.write_text(json.dumps({"GB0124": [ENTRY]}))
    kinds = ("--only", "placeholder", "--only", "no-hints")
    assert run("lint", path, *kinds)[0] == 0
    status, out, _ = run("lint", path, "--only", "not-raised")
    assert status == 2 and "Could not check not-raised" in out


def test_lint_finds_what_is_planted() -> None:
    good = {"Gb_type": "One", "Explanation": "Words.", "Hints": ["A hint."]}
    raw = {
        "GB0001": [good],
        "GB0002": [{**good, "Gb_type": "Gone from torch", "Hints": []}],
        "GB0003": [{**good, "Explanation": "Found {x}"}],
        "GB0004": [{**good, "Gb_type": "_gb_type", "Explanation": "msg"}],
        "GB0005": [{**good, "Gb_type": "Two {x}"}],
    }
    found = parse_registry(json.dumps(raw).encode(), "table.json", None)
    beside = TableCompanions(
        load_taxonomy(),
        raised_types([("a.py", SOURCE)]),
        ("GB0001", "GB9998"),
        (Path("x.md"),),
        examples=("GB9997",),
    )
    problems = lint(found, beside)
    by_kind = {}
    for each in problems:
        by_kind.setdefault(each.kind, []).append(each.subject)
    assert by_kind["not-raised"] == ["GB0002", "GB0004"]
    assert {"Three", "Four"} <= set(by_kind["not-registered"])
    assert by_kind["type-at-run-time"] == ["a.py:6"]
    assert by_kind["placeholder"] == ["GB0003", "GB0004", "GB0005"]
    assert by_kind["duplicated-type"] == ["GB0001 GB0003"]
    assert by_kind["no-explanation"] == ["GB0004"] and by_kind["no-hints"] == ["GB0002"]
    assert by_kind["stray-note"] == ["GB9998", "x.md"] and by_kind["stray-example"] == ["GB9997"]
    assert sum(counted(problems).values()) == len(problems)
    blind = lint(found, TableCompanions(load_taxonomy(), None))
    assert not {"not-raised", "not-registered"} & {each.kind for each in blind}


def test_the_installed_torch() -> None:
    """Nearly every call has its id in the table."""
    table = load_registry()
    folder = torch_of(table)
    assert folder is not None
    raised = raised_types(dynamo_sources(folder))
    counts = counted(lint(table, TableCompanions(load_taxonomy(), raised)))
    assert counts["not-registered"] < 20
    assert counts["no-category"] == 0
