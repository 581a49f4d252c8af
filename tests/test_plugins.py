"""Discovery finds what lies in a folder, and says plainly what is wrong with it."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

from compilescope.base.errors import ToolError
from compilescope.base.plugins import discover


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
