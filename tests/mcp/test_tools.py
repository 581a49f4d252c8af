"""The tools over runs that are there: their schemas, their answers, what they refuse."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest
from mcp.shared.exceptions import MCPError

from compilescope.apps.cli.commands import mcp as command
from compilescope.apps.cli.main import group
from compilescope.apps.mcp.answers import MOST_CAUSES, MOST_TEXT, cut
from compilescope.apps.mcp.calls import options
from compilescope.apps.mcp.places import AllowedProgram
from compilescope.base.errors import ToolError
from mcp_session import Session, connected, text
from samples import big_run, full_run, hostile_run, later_run, store

READING = {"show", "explain", "compare"}
RUNNING = {"run", "fix", "verify", "tune", "minify", "diff"}


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    base = tmp_path_factory.mktemp("mcp")
    folder = base / "work"
    (folder / "models").mkdir(parents=True)
    (folder / "train.py").write_text("print(1)\n")
    (folder / "notes.txt").write_text("none\n")
    (base / "secret.py").write_text("password = 1\n")
    (folder / "link.py").symlink_to(base / "secret.py")
    home = folder / ".compilescope"
    for name, run in [
        ("aaa111-full", full_run()),
        ("bbb222-later", later_run()),
        ("ccc333-big", big_run(causes=40, graphs=5, events=200)),
        ("ddd444-hostile", hostile_run()),
    ]:
        store(run, home, name)
    with connected(folder) as opened:
        yield opened


def test_tools_are_named_and_typed(session: Session) -> None:
    tools = session.portal.call(session.client.list_tools).tools
    assert {tool.name for tool in tools} == READING | RUNNING | {"fix_and_write_files"}
    for tool in tools:
        for schema in (tool.input_schema, tool.output_schema):
            jsonschema.Draft202012Validator.check_schema(schema)
        assert tool.description and "\n\n" not in tool.description
        assert "text" in tool.output_schema["properties"]
        for name, schema in tool.input_schema["properties"].items():
            assert "description" in schema, f"{tool.name}: {name}"
        writes = "write" in tool.name
        assert (tool.annotations.destructive_hint, tool.annotations.read_only_hint) == (
            writes,
            tool.name in READING,
        )


@pytest.mark.parametrize("name", ["aaa111-full", "ccc333-big", "ddd444-hostile"])
@pytest.mark.parametrize("tool", ["show", "explain"])
def test_a_run_is_answered_within_bounds(session: Session, tool: str, name: str) -> None:
    result = session.call(tool, run=name)
    assert not result.is_error
    value = result.structured_content
    assert value["run"] == name and value["text"] == text(result)
    assert len(value["text"]) <= MOST_TEXT + 100
    assert len(value["causes"]) <= MOST_CAUSES
    assert len(json.dumps(value)) < 80_000
    assert "\x1b" not in json.dumps(value, ensure_ascii=False)


def test_causes_have_the_numbers_of_the_text(session: Session) -> None:
    value = session.value("show", run="ccc")
    assert [each["number"] for each in value["causes"]] == list(range(1, MOST_CAUSES + 1))
    assert value["more_causes"] > 0
    one = session.value("explain", run="ccc", cause=3)
    third = value["causes"][2]
    assert f"{Path(third['file']).name}:{third['line']}" in one["text"]


def test_a_section_is_shown(session: Session) -> None:
    assert "guards" in session.value("show", run="aaa", section="guards")["text"]
    assert "There is no section nothing. The sections: " in session.error("show", section="nothing")


def test_two_runs_are_compared(session: Session) -> None:
    value = session.value("compare", before="aaa", after="bbb")
    assert (value["before"], value["after"]) == ("aaa111-full", "bbb222-later")
    assert value["new"] or value["gone"]


def test_runs_are_resources(session: Session) -> None:
    found = session.portal.call(session.client.list_resources).resources
    assert {each.name for each in found} >= {"aaa111-full", "ddd444-hostile"}
    assert str(found[0].uri) == f"compilescope://runs/{found[0].name}"
    for view in ("", "/explanation", "/graphs", "/guards"):
        assert len(session.read(f"compilescope://runs/aaa111-full{view}")) <= MOST_TEXT + 100
    with pytest.raises(MCPError, match=r"No run in .* starts with 'nothing'"):
        session.read("compilescope://runs/nothing")


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("/etc/passwd", "/etc/passwd is outside the folders you allowed. Allowed: "),
        ("../secret.py", "../secret.py is outside the folders you allowed."),
        ("link.py", "link.py is outside the folders you allowed."),
        ("missing.py", "There is no file or folder missing.py."),
        ("notes.txt", "notes.txt is not a Python file."),
        ("", "This is not a valid path."),
        ("a\0.py", "This is not a valid path."),
    ],
)
@pytest.mark.parametrize("tool", sorted(RUNNING))
def test_a_program_elsewhere_is_refused(
    session: Session, tool: str, program: str, words: str
) -> None:
    given = {"build": f"{program}:build"} if tool == "diff" else {"program": program}
    if tool == "diff" and not program.endswith(".py"):
        given = {"build": program}
    assert words in session.error(tool, **given)


@pytest.mark.parametrize(
    ("tool", "given", "words"),
    [
        ("run", {"folder": "/"}, "/ is outside the folders you allowed."),
        ("run", {"folder": "models"}, "There is no file or folder"),
        ("run", {"limit": "soon"}, "soon is not a duration. Use 90s, 2m or 1h."),
        ("run", {"backend": "a b"}, "'a b' is not the name of a backend."),
        ("run", {"backend": "../secret.py:x"}, "../secret.py is outside the folders"),
        ("minify", {"test_backend": "link.py"}, "link.py is outside the folders"),
        ("fix", {"budget": "soon"}, "soon is not a duration. Use --budget 90s, 2m or 1h."),
        ("tune", {"only": ["no-such-candidate"]}, "no-such-candidate"),
        ("minify", {"predicate": "all"}, "predicate: Input should be 'break', "),
    ],
)
def test_a_wrong_option_is_told(session: Session, tool: str, given: dict, words: str) -> None:
    said = session.error(tool, program="train.py", **given)
    assert words in said
    assert "Traceback" not in said and "Error executing" not in said


@pytest.mark.parametrize(
    ("tool", "given", "words"),
    [
        ("show", {"run": "nothing"}, "No run in "),
        ("show", {"run": "../work"}, "'../work' is not the ID of a run."),
        ("explain", {"run": "--llm"}, "'--llm' is not the ID of a run."),
        ("explain", {"run": "aaa", "cause": 999}, "There is no cause 999: the run has "),
        ("explain", {"run": "aaa", "site": "--llm"}, "--site takes FILE:LINE, not '--llm'."),
        ("explain", {"cause": 0}, "cause: Input should be greater than or equal to 1."),
        ("compare", {"before": "aaa", "after": ""}, "Give the IDs of two runs."),
        ("compare", {"before": "aaa", "after": "/tmp"}, "'/tmp' is not the ID of a run."),
        ("fix_and_write_files", {"run": "aaa"}, "Run aaa111-full holds no fix to apply."),
        ("fix_and_write_files", {}, "run: Field required."),
    ],
)
def test_a_wrong_run_is_told(session: Session, tool: str, given: dict, words: str) -> None:
    assert words in session.error(tool, **given)


def test_a_diff_stays_as_it_is_while_it_fits() -> None:
    diff = "@@ -1,2 +1,2 @@\n-a\x0c\n+b\x0c\n \n"
    assert cut(diff, 100) == (diff, True)
    assert cut(diff, 22, "See show.") == (
        "@@ -1,2 +1,2 @@\n-a\x0c\n[cut: 7 more characters. See show.]",
        False,
    )


def test_a_value_is_no_option() -> None:
    assert options("rule", ["--write", ""]) == ["--rule=--write"]
    assert AllowedProgram(Path("/w/a.py"), Path("/w")).words(["--write"]) == [
        "/w/a.py",
        "--",
        "--write",
    ]


def test_an_allowed_folder_must_be_one(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "compilescope", "mcp", "--allow", "nowhere"],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "compilescope: error: There is no folder nowhere.\n"


@pytest.mark.parametrize("name", ["mcp", "mcp.server.mcpserver"])
def test_a_missing_package_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    find = command.importlib.util.find_spec
    monkeypatch.setattr(
        command.importlib.util, "find_spec", lambda each: None if each == name else find(each)
    )
    with pytest.raises(ToolError, match="The server needs") as told:
        group(["mcp"], standalone_mode=False)
    assert told.value.hint == 'Install it with: pip install "compilescope[mcp]"'


def test_it_ends_with_its_client(tmp_path: Path) -> None:
    """Garbage before, and a file in place of a pipe."""
    asked = tmp_path / "asked"
    asked.write_text('garbage\n{"jsonrpc": "2.0", "id": 1}\n[]\n')
    done = subprocess.run(
        [sys.executable, "-m", "compilescope", "mcp"],
        cwd=tmp_path,
        stdin=asked.open(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    assert all(json.loads(line) for line in done.stdout.splitlines())
    assert os.listdir(tmp_path) == ["asked"]
