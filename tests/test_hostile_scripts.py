"""Scripts, patches and file names that are made of a record: its text stays text in them."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path

import msgspec

from compilescope.change.fixes.diffs import file_diff
from compilescope.change.minify import logged_repros
from compilescope.change.minify.logged_program import file_name
from compilescope.change.minify.logged_repros import example_parts
from compilescope.change.minify.script.conclusion import ending_source, exits
from compilescope.change.minify.script.graph_script import _one_line as graph_comment
from compilescope.change.minify.source.findings import SourceFinding
from compilescope.change.minify.source.script import Story, finished_script
from compilescope.change.repair.delivery.script import ScriptRecipe, make_script
from compilescope.knowledge.findings.breaks import BreakFinding
from hostile import HALF, Makers, steering

CODE = "\"\"\"\nimport os; os.hurt()\n'''\nimport os; os.hurt()\r\nimport os; os.hurt()\\"


def bad() -> str:
    return Makers(sane_keys=False).text(HALF) + CODE


def calls(text: str) -> list[str]:
    """What a script would run, as far as it is not ours."""
    return [name for node in ast.walk(ast.parse(text)) if (name := _hurt(node))]


def _hurt(node: ast.AST) -> str:
    return "hurt" if isinstance(node, ast.Attribute) and node.attr == "hurt" else ""


def test_a_fixed_script_runs_the_program_alone() -> None:
    recipe = ScriptRecipe(
        main=f"/p/{bad()}.py",
        text="x = 1\n",
        files={f"/p/{bad()}b.py": "def f():\n    return 2\n"},
        originals={f"/p/{bad()}b.py": "def f():\n    return 1\n"},
        output="/p/out.py",
        environment={bad(): bad()},
        command=bad(),
        fixes=(bad(),),
        unverified=(bad(),),
        left=(bad(),),
        where=bad(),
        why_unverified=bad(),
        package=bad(),
        folder=bad(),
    )
    text = make_script(recipe).text
    assert not calls(text)
    assert not steering(text)


def a_site() -> BreakFinding:
    made: BreakFinding = Makers(sane_keys=False).struct(BreakFinding)
    hostile = {name: bad() for name in ("gb_id", "gb_type", "file", "function", "source", "why")}
    return msgspec.structs.replace(made, **hostile)


def test_a_logs_repro_runs_our_example_alone() -> None:
    site = a_site()
    parts = example_parts("scalar-extraction") or example_parts("data-dependent-branch")
    for each in parts[:1]:
        text = logged_repros._text(site, each, file_name(site), "Verified.", bad())
        assert not calls(text) and not steering(text)
    words = map(logged_repros.one_line, (site.gb_type, site.file, site.source))
    program = logged_repros._PROGRAMS["host-read"]
    names = dict(zip(("kind", "place", "source"), words, strict=True))
    names |= {"exits": exits("graph break"), "ending": ending_source()}
    text = logged_repros._XLA_SCRIPT.format(
        **names, program=program, verified="", name=file_name(site)
    )
    assert not calls(text) and not steering(text)


def test_a_repro_is_written_where_it_was_asked_for(tmp_path: Path) -> None:
    site = msgspec.structs.replace(a_site(), gb_id="../../../etc/GB1", file="/a/../..")
    assert (tmp_path / file_name(site)).parent == tmp_path
    assert "/" not in file_name(site)


def test_a_small_programs_head_is_a_docstring() -> None:
    made: SourceFinding = Makers(sane_keys=False).struct(SourceFinding)
    texts = {name: bad() for name in ("what", "reason", "gb_id", "guard", "title")}
    cause = msgspec.structs.replace(made, kind="break", **texts)
    story = Story(found_in=bad(), torch="2.13", lines_before=3, needs=(bad(),))
    text = finished_script("import torch\ntorch.ones(1)\n", cause, story, guarded=False)
    assert not calls(text)
    assert not steering(text)


def test_a_comment_in_a_graph_stays_one() -> None:
    assert ast.parse(f"# {graph_comment(bad())}").body == []


def test_a_patch_changes_the_file_that_it_names(tmp_path: Path) -> None:
    name = 'a\n+++ b/other.py\n"\\\x1b[31m.py'
    (tmp_path / name).parent.mkdir()
    (tmp_path / name).write_text("x = 1\n")
    (tmp_path / "other.py").write_text("x = 1\n")
    diff = file_diff("x = 1\n", "x = 2  # \x0c\u202e\n", name)
    assert sum(line.startswith("+++ ") for line in diff.split("\n")) == 1
    words = ["git", "apply", "--unsafe-paths", "-"]
    done = subprocess.run(words, input=diff, text=True, cwd=tmp_path, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / name).read_text() == "x = 2  # \x0c\u202e\n", "as it was meant, to the byte"
    assert (tmp_path / "other.py").read_text() == "x = 1\n"
