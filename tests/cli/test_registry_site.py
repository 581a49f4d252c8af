"""`compilescope registry build, serve`, and the links of reports."""

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


def warned(done: Done) -> list[str]:
    """A slow machine gets lines of progress as well."""
    progress = "compilescope: registry build: "
    return [line for line in done.err.splitlines() if not line.startswith(progress)]


def test_build(run: Run, small: Path, tmp_path: Path) -> None:
    done = run("build", "-o", tmp_path / "site", "--torch-registry", small)
    assert done.status == 0 and "2 graph breaks" in done.out and not warned(done)
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
        (("update",), "exactly one of --from and --restore"),
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
    assert not warned(run(*build, "--no-own-notes")) and "For us alone." not in page.read_text()
    public = (*build, "--base-url", "https://example.org/")
    done = run(*public)
    assert f"notes (1) in {notes} are left out; --own-notes includes them." in done.err
    assert "For us alone." not in page.read_text() and "of yours" not in done.out
    assert json.loads(run(*public, "--own-notes", "--json").out)["own_notes"] == 1
    assert "For us alone." in page.read_text()
    both = run(*build, "--notes", notes, "--no-own-notes")
    assert both.status == 2 and "--notes already says" in both.err


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
              *([name, "--help"] for name in ("build", "serve", "update"))):
    sys.argv = ["compilescope", "registry", *words]
    try:
        main()
    except SystemExit as leaving:
        assert not leaving.code, words
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Usage") == 3


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
