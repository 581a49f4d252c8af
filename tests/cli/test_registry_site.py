"""`compilescope registry build, serve, update, import, lint`, and the links of reports."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from compilescope.apps.cli.main import main
from samples import full_run, store

ENTRY = {"Gb_type": "A type", "Context": "", "Explanation": "Words.", "Hints": ["A hint."]}


@dataclass(frozen=True)
class Done:
    status: int
    out: str
    err: str


Run = Callable[..., Done]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: object) -> Done:
        words = ["compilescope", "registry", *map(str, arguments)]
        monkeypatch.setattr(sys, "argv", words)
        with pytest.raises(SystemExit) as left:
            main()
        printed = capsys.readouterr()
        return Done(int(left.value.code or 0), printed.out, printed.err)

    return call


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "table.json"
    path.write_text(json.dumps({"GB0124": [ENTRY], "GB9990": [{**ENTRY, "Gb_type": "Other"}]}))
    return path


def test_build(run: Run, small: Path, tmp_path: Path) -> None:
    done = run("build", "-o", tmp_path / "site", "--torch-registry", small)
    assert done.status == 0 and "2 graph breaks" in done.out and done.err == ""
    assert (tmp_path / "site" / "gb" / "gb9990.html").is_file()
    value = json.loads(run("build", "-o", tmp_path / "site", "--file", small, "--json").out)
    assert value["counts"]["total"] == 2 and value["removed"] == 0 and value["torch"] is None


def test_build_goes_to_the_cache_where_links_find_it(
    run: Run, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert run("build", "--file", small).status == 0
    assert (tmp_path / "compilescope" / "site" / "gb" / "gb0124.html").is_file()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("build", "-o", "site", "--file", "absent.json"), "There is no file absent.json"),
        (("build", "-o", "site", "--notes", "absent"), "There is no folder absent"),
        (("build", "-o", "site", "--examples", "absent"), "There is no folder absent"),
        (("build", "-o", "site", "--base-url", "javascript:x"), "not the http address"),
        (("build", "-o", "."), "not a compilescope site"),
        (("update", "absent.whl"), "There is no file absent.whl"),
        (("import", "absent"), "There is no folder absent"),
        (("lint", "--only", "nonsense"), "There is no kind nonsense"),
        (("lint", "absent.json"), "There is no file absent.json"),
        (("serve", "--file", "absent.json"), "There is no file absent.json"),
    ],
)
def test_mistakes_get_one_sentence(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.txt").write_text("")
    done = run(*arguments)
    assert done.status == 2 and done.out == ""
    assert says in done.err and "Traceback" not in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_update_tells_the_difference(run: Run, small: Path, tmp_path: Path) -> None:
    newer = tmp_path / "newer.json"
    words = {**ENTRY, "Explanation": "Other words."}
    newer.write_text(json.dumps({"GB0124": [words], "GB0170": [ENTRY]}))
    done = run("update", newer, "--against", small)
    assert done.status == 0 and "1 added, 1 removed, 1 reworded" in done.out
    assert "Other words." in done.out and "GB0170" in done.out and "GB9990" in done.out
    value = json.loads(run("update", newer, "--against", small, "--json").out)
    assert [each["gb_id"] for each in value["came"]] == ["GB0170"]
    change = {"before": "Words.", "after": "Other words."}
    assert value["reworded"][0]["changes"] == {"explanation": change}
    assert "No differences" in run("update", small, "--against", small).out


def test_update_records_a_release(run: Run, small: Path, tmp_path: Path) -> None:
    torch = tmp_path / "checkout" / "torch"
    (torch / "_dynamo").mkdir(parents=True)
    (torch / "_dynamo" / "graph_break_registry.json").write_bytes(small.read_bytes())
    history = tmp_path / "history.json"
    wanted = ("update", tmp_path / "checkout", "--against", small, "--record", "--history", history)
    assert "not from a torch release" in run(*wanted).err and not history.exists()
    (torch / "version.py").write_text("__version__ = '9.1.0+cpu'\n")
    assert "Recorded" in run(*wanted).out
    assert json.loads(history.read_text())["steps"][0]["torch"] == "9.1.0"
    before = history.read_bytes()
    assert run(*wanted).status == 0 and history.read_bytes() == before


def test_import_reports_and_never_overwrites(run: Run, tmp_path: Path) -> None:
    (tmp_path / "gb").mkdir()
    (tmp_path / "notes").mkdir()
    marks = ("<!-- ADDITIONAL INFORMATION START -->\n", "<!-- ADDITIONAL INFORMATION END -->")
    for name in ("gb0124", "gb0170"):
        (tmp_path / "gb" / f"{name}.md").write_text(f"{marks[0]}Theirs.\n{marks[1]}\n")
    (tmp_path / "notes" / "gb0170.md").write_text("Ours.")
    done = run("import", tmp_path, "--notes", tmp_path / "notes")
    assert (
        done.status == 0
        and "Imported 1 of 2 pages" in done.out
        and "skipped: you have a different note" in done.out
    )
    assert (tmp_path / "notes" / "gb0124.md").read_text() == "Theirs.\n"
    assert (tmp_path / "notes" / "gb0170.md").read_text() == "Ours."
    value = json.loads(run("import", tmp_path, "--notes", tmp_path / "notes", "--json").out)
    assert value["counts"] == {"same": 1, "kept": 1}


def test_one_command_imports_a_checkout_and_the_pages_show_it(
    run: Run, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    pages = tmp_path / "compile-graph-break-site" / "docs" / "gb"
    pages.mkdir(parents=True)
    start = "<!-- ADDITIONAL INFORMATION START - Add custom information below this line -->"
    words = {"gb0124": "Theirs.", "gb0170": "", "gb0059": ""}
    for name, text in words.items():
        page = f"---\nlayout: default\n---\n# {name}\n\n{start}\n{text}\n"
        (pages / f"{name}.md").write_text(
            f"{page}<!-- ADDITIONAL INFORMATION END -->\n\n[Back](..)\n"
        )
    checkout = tmp_path / "compile-graph-break-site"
    done = run("import", checkout)
    assert done.status == 0 and "Imported 1 of 3 pages" in done.out
    assert "2 pages" in done.out and "nobody has added text" in done.out
    assert "compilescope registry show GB0124\n" in done.out
    assert "Theirs." in run("show", "GB0124", "--file", small).out
    assert "Imported 0 of 3 pages" in run("import", checkout).out
    assert ", 1 note of yours" in run("build", "-o", tmp_path / "site", "--file", small).out
    assert "Theirs." in (tmp_path / "site" / "gb" / "gb0124.html").read_text()


def test_a_site_to_publish_has_no_notes_of_the_user_unless_asked(
    run: Run, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    notes = tmp_path / "config" / "compilescope" / "notes"
    notes.mkdir(parents=True)
    (notes / "gb0124.md").write_text("For us alone.")
    build = ("build", "-o", tmp_path / "site", "--file", small)
    page = tmp_path / "site" / "gb" / "gb0124.html"
    done = run(*build)
    assert f"contains your notes (1) from {notes}; --no-own-notes" in done.err
    assert "For us alone." in page.read_text()
    assert run(*build, "--no-own-notes").err == "" and "For us alone." not in page.read_text()
    public = (*build, "--base-url", "https://example.org/")
    done = run(*public)
    assert f"notes (1) in {notes} are left out; --own-notes includes them." in done.err
    assert "For us alone." not in page.read_text() and "of yours" not in done.out
    assert json.loads(run(*public, "--own-notes", "--json").out)["own_notes"] == 1
    assert "For us alone." in page.read_text()
    both = run(*build, "--notes", notes, "--no-own-notes")
    assert both.status == 2 and "--notes already says" in both.err


def test_lint(run: Run, tmp_path: Path) -> None:
    done = run("lint")
    assert done.status == 1 and "no longer raised" in done.out and "(--all)" in done.out
    value = json.loads(run("lint", "--json", "--only", "placeholder").out)
    assert set(value["counts"]) == {"placeholder"} and value["exit_code"] == 1
    assert value["problems"] and value["untold"] == []
    assert all(each["kind"] == "placeholder" for each in value["problems"])
    path = tmp_path / "one.json"
    path.write_text(json.dumps({"GB0124": [ENTRY]}))
    kinds = ("--only", "placeholder", "--only", "no-hints")
    assert run("lint", path, *kinds).status == 0
    blind = run("lint", path, "--only", "not-raised")
    assert blind.status == 2 and "Could not check not-raised" in blind.out


def test_everything_works_with_torch_blocked(small: Path, tmp_path: Path) -> None:
    code = f"""
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "numpy"):
            raise ImportError(f"{{name}} is blocked")
sys.meta_path.insert(0, Block())
from compilescope.apps.cli.main import main
for words in (["build", "-o", {str(tmp_path / "site")!r}, "--file", {str(small)!r}],
              ["update", {str(small)!r}], ["lint", "--only", "no-category"],
              *([name, "--help"] for name in ("build", "serve", "update", "import", "lint"))):
    sys.argv = ["compilescope", "registry", *words]
    try:
        main()
    except SystemExit as leaving:
        assert not leaving.code, words
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Usage") == 5


def test_without_jinja_the_extra_is_named(small: Path, tmp_path: Path) -> None:
    code = "import sys\nsys.modules['jinja2'] = sys.modules['markupsafe'] = None\n"
    code += "from compilescope.apps.cli.main import main\n"
    code += f"sys.argv = ['x', 'registry', 'build', '-o', {str(tmp_path / 'site')!r}, "
    code += f"'--file', {str(small)!r}]\nmain()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2 and "compilescope[site]" in done.stderr
    assert "Traceback" not in done.stderr and not (tmp_path / "site").exists()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    store(full_run(), tmp_path / "runs", "full")
    return tmp_path / "runs"


def call(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: object
) -> str:
    monkeypatch.setattr(sys, "argv", ["compilescope", *map(str, words)])
    with pytest.raises(SystemExit):
        main()
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "link"),
    [
        (("explain", "--all"), "More: {}"),
        (("report", "--format", "html"), '<a href="{0}" rel="noopener">{0}</a>'),
        (("report", "--format", "md"), "]({})"),
        (("check", "--run", "full", "--all"), "More: {}"),
    ],
)
def test_breaks_link_to_their_page(
    home: Path,
    small: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    link: str,
) -> None:
    def told() -> str:
        return call(monkeypatch, capsys, *words, "--dir", home)

    assert "registry show GB0170" in told()
    page = home.parent / "cache" / "compilescope" / "site" / "gb" / "gb0170.html"
    page.parent.mkdir(parents=True)
    page.write_text("")
    text = told()
    assert "registry show GB0170" not in text and "file:///" in text
    project = home.parent / "pyproject.toml"
    project.write_text('[tool.compilescope]\nregistry-site = "https://p.example/x"\n')
    assert link.format("https://p.example/x/gb/gb0170.html") in told()
    monkeypatch.setenv("COMPILESCOPE_REGISTRY_SITE", "https://e.example/")
    assert link.format("https://e.example/gb/gb0170.html") in told()


def test_a_code_scanner_gets_the_page(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COMPILESCOPE_REGISTRY_SITE", "https://e.example/")
    text = call(monkeypatch, capsys, "report", "--format", "sarif", "--dir", home)
    rules = json.loads(text)["runs"][0]["tool"]["driver"]["rules"]
    helps = {rule["id"]: rule["helpUri"] for rule in rules}
    assert helps["GB0170"] == "https://e.example/gb/gb0170.html"
