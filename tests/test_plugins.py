"""Discovery finds what lies in a folder, and says plainly what is wrong with it."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

from compilescope.base.errors import ToolError
from compilescope.base.plugins import discover
from compilescope.knowledge.rules.causes.plugged import harmless
from compilescope.knowledge.rules.causes.rule import BreakRule, ProgramRule
from docs_pages import page, page_text, shown_files


def make_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **modules: str) -> ModuleType:
    name = f"sample_{tmp_path.name.replace('-', '_')}"
    folder = tmp_path / name
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    for module, text in modules.items():
        (folder / f"{module}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module(name)


def test_takes_the_named_object_of_public_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = make_package(tmp_path, monkeypatch, b="THING = 'b'", a="THING = 'a'", _c="")
    assert discover(package, "THING", str) == ["a", "b"]


def test_a_module_may_carry_several(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    several = "class Half(int): name = 'half'\n"
    several += "class Third(int): name = 'third'\nTHINGS = (Half(2), Third(3))"
    package = make_package(tmp_path, monkeypatch, a="THING = 1", b=several)
    assert discover(package, "THING", int, several="THINGS") == [1, 2, 3]
    with pytest.raises(ToolError, match=r"\.b has no THING of type int"):
        discover(package, "THING", int)


def test_a_missing_object_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = make_package(tmp_path, monkeypatch, a="OTHER = 1")
    with pytest.raises(ToolError, match=r"\.a has no THING of type str"):
        discover(package, "THING", str)


def test_a_repeated_id_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "import types\nTHING = types.SimpleNamespace(id='same')"
    package = make_package(tmp_path, monkeypatch, a=text, b=text)
    with pytest.raises(ToolError, match="define the THING 'same'"):
        discover(package, "THING", object)


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """The package that docs/guides/add-a-fix.md shows, as pip leaves it."""
    site = tmp_path / "site"
    for name, text in shown_files(page("add-a-fix")).items():
        target = (site if name.startswith("house/") else tmp_path) / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    (site / "house" / "__init__.py").touch()
    (block,) = re.findall(r"```toml\n(.*?)```", page_text("add-a-fix"), re.S)
    groups = msgspec.toml.decode(block)["project"]["entry-points"]
    lines = [
        line
        for group, entries in groups.items()
        for line in (f"[{group}]", *(f"{name} = {at}" for name, at in entries.items()), "")
    ]
    (site / "house-0.1.dist-info").mkdir()
    (site / "house-0.1.dist-info" / "entry_points.txt").write_text("\n".join(lines))
    return site


def _command(site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(site)}
    return subprocess.run(
        [sys.executable, "-m", "compilescope", *words],
        cwd=site.parent,
        env=env,
        capture_output=True,
        text=True,
    )


@pytest.mark.torch
def test_rule_fix_and_hook_of_a_package(house: Path) -> None:
    done = _command(house, "run", "train.py")
    said = " ".join((done.stdout + done.stderr).split())
    assert done.returncode == 0 and "house: Dynamo was reset" in said
    assert "takes a Python number, so the step waits for the tensor." in said
    assert '+ board.put_later("loss", loss)' in said


def test_log_format_and_listing_of_a_package(house: Path) -> None:
    log = house.parent / "cluster.log"
    log.write_text("CLUSTER break train.py:8 in step: the board wants a number\nother\n")
    done = _command(house, "logs", "cluster.log", "--json")
    (site,) = json.loads(done.stdout)["breaks"]
    assert (site["line"], site["reason"]) == (8, "the board wants a number")
    assert "board-put-later" in _command(house, "fix", "--list", "--all").stdout


@pytest.mark.parametrize("broken", ["raise SystemError('no')", "FIX = RULE = FORMAT = 3", "x = ("])
def test_a_package_that_cannot_be_loaded_is_left_out(house: Path, broken: str) -> None:
    for name in ("rule", "fix", "log_format"):
        (house / "house" / f"{name}.py").write_text(broken)
    (house.parent / "cluster.log").write_text("TRACE\n")
    done = _command(house, "fix", "--list")
    assert done.returncode == 0 and "grad-mode-called" in done.stdout
    (line,) = done.stderr.strip().splitlines()
    assert "plugin house.fix (compilescope.fixes) is left out: " in line


def test_a_rule_of_a_package_that_raises_does_not_apply() -> None:
    def fail(case: object) -> Any:
        raise ValueError(case)

    always = {"applies": lambda case: True, "why": lambda case: "x", "remedies": lambda case: []}
    for name in always:
        given = {**always, name: fail}
        rule = harmless(BreakRule(id="a", category="c", order=1, **given))
        assert rule.applies(None) is False
    assert harmless(BreakRule(id="a", category="c", order=1, **always)).applies(None) is True
    about = harmless(ProgramRule(id="a", order=1, applies=fail, words=fail))
    assert about.applies(None) is False and about.words(None) == ""
