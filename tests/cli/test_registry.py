"""`compilescope registry`, as its users call it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from compilescope.apps.cli.main import main
from compilescope.knowledge.registry.history import load_history
from compilescope.knowledge.registry.table import load_registry

_BLOCK_TORCH = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "numpy"):
            raise ImportError(f"{name} is blocked")
sys.meta_path.insert(0, Block())
from compilescope.apps.cli.main import main
for command in COMMANDS:
    sys.argv = ["compilescope", "registry", *command]
    try:
        main()
    except SystemExit as leaving:
        assert not leaving.code, command
"""
_COMMANDS = [
    ["show", "GB0124"],
    ["show", "7", "gb170", "Data-dependent branching"],
    ["search", "item"],
    ["search", "call", "--all"],
    ["list"],
    ["list", "--category", "logging"],
    ["categories"],
    ["categories", "Logging", "mutation"],
]


@dataclass(frozen=True)
class Done:
    status: int
    out: str
    err: str


Run = Callable[..., Done]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: str) -> Done:
        monkeypatch.setattr(sys, "argv", ["compilescope", "registry", *arguments])
        with pytest.raises(SystemExit) as left:
            main()
        printed = capsys.readouterr()
        return Done(int(left.value.code or 0), printed.out, printed.err)

    return call


@pytest.fixture
def small(tmp_path: Path) -> Path:
    entry = {"Gb_type": "A new type", "Context": "{x}", "Explanation": "msg", "Hints": []}
    path = tmp_path / "table.json"
    path.write_text(json.dumps({"GB0124": [entry], "GB9990": [entry]}))
    return path


def test_everything_works_with_torch_blocked() -> None:
    helps = [[*name.split(), "--help"] for name in ("", "show", "search", "list", "categories")]
    as_json = [[*command, "--json"] for command in _COMMANDS]
    code = f"COMMANDS = {helps + _COMMANDS + as_json!r}\n" + _BLOCK_TORCH
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert done.stdout.count("Usage") == len(helps)


@pytest.mark.parametrize("command", _COMMANDS, ids=" ".join)
def test_output_fits_the_screen_and_has_a_json_form(run: Run, command: list[str]) -> None:
    done = run(*command)
    assert done.status == 0 and done.err == ""
    assert max(map(len, done.out.splitlines())) <= 80
    parsed = json.loads(run(*command, "--json").out)
    assert parsed["torch"] and parsed["file"].endswith("graph_break_registry.json")


def test_show_has_the_words_of_both(run: Run) -> None:
    text = run("show", "124").out
    assert text.startswith("GB0124 Unsupported Tensor.item() call")
    assert "capture_scalar_outputs = True" in text and "scalar-extraction" in text
    assert "why" in text and "fix" in text and "fixed by" in text
    assert "gives no explanation" in run("show", "GB0007").out


def test_show_json(run: Run) -> None:
    [entry] = json.loads(run("show", "gb170", "170", "--json").out)["entries"]
    assert entry["gb_id"] == "GB0170" and entry["category"] == "data-dependent-branch"
    assert set(entry) == {
        "gb_id", "title", "titles", "category", "explanations", "hints", "contexts", "why", "fix",
        "means", "notes",
    }  # fmt: skip


def test_show_has_notes_and_ones_own_first(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    own = tmp_path / "compilescope" / "notes"
    own.mkdir(parents=True)
    (own / "gb0170.md").write_text("Ask `Ada` first.\n")
    text = run("show", "gb170").out
    assert text.index("local note") < text.index("Ask `Ada` first.")
    assert text.index("Ask `Ada` first.") < text.index("comes with compilescope")
    (tmp_path / "others").mkdir()
    (tmp_path / "others" / "gb0170.md").write_text("Ask Grace.")
    shown = run("show", "170", "--notes", str(tmp_path / "others"), "--json").out
    [entry] = json.loads(shown)["entries"]
    assert entry["notes"][0]["text"] == "Ask Grace."
    assert [note["own"] for note in entry["notes"]] == [True, False]
    assert run("show", "170", "--notes", str(tmp_path / "absent")).status == 2


def test_search_says_when_there_is_more(run: Run) -> None:
    text = run("search", "call").out
    assert "more\n" in text and text.endswith("compilescope registry search --all call\n")
    assert len(text.splitlines()) < 48 < len(run("search", "call", "--all").out.splitlines())
    found = json.loads(run("search", "call", "--json").out)["entries"]
    assert len(found) > 20
    assert json.loads(run("search", "item", "--json").out)["entries"][0]["gb_id"] == "GB0124"
    nothing = run("search", "xyzzy")
    assert nothing.status == 0 and "xyzzy" in nothing.err and nothing.out == ""


def test_search_knows_the_categories(run: Run) -> None:
    found = json.loads(run("search", "scalar-extraction", "--json").out)["entries"]
    assert {"GB0124", "GB0109"} <= {entry["gb_id"] for entry in found}


def test_list_covers_the_table(run: Run) -> None:
    entries = json.loads(run("list", "--json").out)["entries"]
    assert len(entries) > 400 and all(entry["category"] for entry in entries)
    logging = json.loads(run("list", "--category", "logging", "--json").out)["entries"]
    assert {entry["category"] for entry in logging} == {"logging"}


def test_categories_json(run: Run) -> None:
    parsed = json.loads(run("categories", "--json").out)["categories"]
    assert len(parsed) == 25
    assert all(c["why"] and c["fix"] and c["means"] and c["ids"] for c in parsed)


def absent_id() -> str:
    """An id that some torch has, and this one has not."""
    here = {entry.gb_id for entry in load_registry()}
    return next(gb_id for gb_id in load_history().titles if gb_id not in here)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("show", "GB01240"), "GB0124."),
        (("show", "Data dependent branchin"), "close: Data-dependent branching"),
        (("show", "GB0124", "nonsense"), "has no nonsense"),
        (("show", absent_id()), "It is in another version"),
        (("list", "--category", "loging"), "close: logging"),
        (("categories", "qqq"), "registry categories"),
        (("list", "--file", "absent.json"), "There is no file absent.json"),
        (("categories", "--file", "absent.json"), "There is no file absent.json"),
    ],
)
def test_mistakes_get_one_sentence(run: Run, arguments: tuple[str, ...], says: str) -> None:
    done = run(*arguments)
    assert done.status == 2 and done.out == ""
    assert says in done.err and "Traceback" not in done.err
    assert len(done.err.splitlines()) <= 2


def test_missing_arguments(run: Run) -> None:
    for command in ("show", "search"):
        assert run(command).status == 2


def test_a_table_of_another_torch(run: Run, small: Path) -> None:
    text = run("list", "--file", str(small)).out
    assert "2 IDs" in text and "No category yet" in text and "scalar-extraction, 1" in text
    text = run("show", "GB9990", "--file", str(small)).out
    assert "A new type" in text and "No category yet" in text
    [entry] = json.loads(run("show", "9990", "--file", str(small), "--json").out)["entries"]
    assert entry["category"] is None and entry["why"] is None and entry["means"] == []
    assert json.loads(run("categories", "--json", "--file", str(small)).out)["torch"] is None
