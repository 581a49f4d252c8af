"""The script that `--script` writes: it runs by itself, and changes modules only as they are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from compilescope.change.repair.delivery.script import (
    MARK,
    FixedScript,
    ScriptRecipe,
    is_ours,
    make_script,
)

MAIN = '''#!/usr/bin/env python
# -*- coding: utf-8 -*-
"""Says things."""
from __future__ import annotations

import sys

import helper
from thirdparty.nets import Net, area, counted, make

if __name__ == "__main__":
    print(__doc__, sys.argv[1:], helper.NAME)
    print(Net(3).forward(1), Net.shape(2), area(2), counted(5), make(4)(), Net(3).secret())
'''
HELPER = """NAME = "helper"
"""
NETS = '''"""Nets."""
from __future__ import annotations

import functools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nowhere import Thing

SCALE = 10


def logged(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args)

    return wrapper


class Base:
    def __init__(self, size):
        self.size = size
        self.__hidden = 7

    def forward(self, x):
        return x


class Net(Base):
    @logged
    def forward(self, x: Thing) -> Thing:
        """Text
  with its own indentation."""
        return super().forward(x) + self.size

    @staticmethod
    def shape(x):
        return x

    def secret(self):
        return self._Base__hidden


if SCALE:

    def area(x, *, by=SCALE):
        return x * by


@functools.lru_cache
def counted(x):
    return x


def make(x):
    def inner():
        return x

    return inner


MADE = make(1)
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    package = tmp_path / "lib" / "site-packages" / "thirdparty"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "nets.py").write_text(NETS)
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "main.py").write_text(MAIN)
    (tmp_path / "app" / "helper.py").write_text(HELPER)
    return tmp_path


def _made(folder: Path, changes: dict[str, str], **more: object) -> FixedScript:
    """The script of a program whose files are these now."""
    files = {
        "main.py": folder / "app" / "main.py",
        "helper.py": folder / "app" / "helper.py",
        "nets.py": folder / "lib" / "site-packages" / "thirdparty" / "nets.py",
    }
    main = str(files["main.py"])
    output = folder / "app" / "main_fixed.py"
    recipe = ScriptRecipe(
        main=main,
        text=changes.get("main.py", MAIN),
        files={str(files[name]): text for name, text in changes.items() if name != "main.py"},
        originals={str(path): path.read_text() for path in files.values()},
        output=str(output),
        environment=more.pop("environment", {}),  # type: ignore[arg-type]
        **more,  # type: ignore[arg-type]
    )
    script = make_script(recipe)
    output.write_text(script.text)
    return script


def _ran(folder: Path, *, code: int = 0) -> tuple[str, str]:
    done = subprocess.run(
        [sys.executable, "app/main_fixed.py", "word"],
        cwd=folder,
        env={"PYTHONPATH": str(folder / "lib" / "site-packages")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == code, done.stderr
    return done.stdout, done.stderr


def _changed(text: str, *changes: tuple[str, str]) -> str:
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


LONGER = "y: Thing = super().forward(x)\n        return y + 100"
AS_IT_WAS = "Says things. ['word'] helper\n4 2 20 5 4 7\n"


def test_the_main_file_alone(folder: Path) -> None:
    script = _made(folder, {"main.py": MAIN.replace("helper.NAME)", "helper.NAME, 'fixed')")})
    assert "_Fixes" not in script.text and "coding" not in script.text
    assert script.text.startswith(f"#!/usr/bin/env python\n{MARK} from main.py")
    assert is_ours(folder / "app" / "main_fixed.py") and not is_ours(folder / "app" / "main.py")
    assert _ran(folder) == (AS_IT_WAS.replace("helper\n", "helper fixed\n"), "")


def test_functions_of_other_modules_get_new_code(folder: Path) -> None:
    nets = _changed(
        NETS,
        ("return super().forward(x) + self.size", LONGER),
        ("    def shape(x):\n        return x", "    def shape(x):\n        return -x"),
        ("return x * by", "return x * by + 1"),
        ("def counted(x):\n    return x", "def counted(x):\n    return x + 1"),
        ("return self._Base__hidden", "return self._Base__hidden + 1"),
    )
    script = _made(folder, {"nets.py": nets})
    assert not script.refused
    assert "        y: Thing = super().forward(x)\n        return y + 100\n'''" in script.text
    assert _ran(folder) == ("Says things. ['word'] helper\n101 -2 21 6 4 8\n", "")


def test_closures_that_were_made_during_the_import_change_too(folder: Path) -> None:
    nets = NETS.replace("        return function(*args)", "        return function(*args) * 2")
    (folder / "app" / "main.py").write_text(MAIN)
    _made(folder, {"nets.py": nets})
    out, err = _ran(folder)
    assert (out, err) == (AS_IT_WAS.replace("4 2 20", "8 2 20"), "")


def test_new_statements_decorators_and_defaults(folder: Path) -> None:
    nets = _changed(
        NETS,
        ("import functools\n", "import functools\nimport math\n"),
        ("SCALE = 10\n", "SCALE = 10\n\n\ndef _twice(x):\n    return math.floor(2 * x)\n"),
        ("def counted(x):\n    return x", "def counted(x):\n    return _twice(x)"),
        ("    def shape(x):", "    @logged\n    def shape(x=1):"),
        ("@functools.lru_cache\n", ""),
    )
    script = _made(folder, {"nets.py": nets})
    assert '_fixes.function_anew("counted"' in script.text
    assert _ran(folder) == (AS_IT_WAS.replace(" 5 4 7", " 10 4 7"), "")


def test_new_statements_and_functions_come_in_the_order_of_the_file(folder: Path) -> None:
    """The decorator stands before the function that it makes, what uses that function after it."""
    operator = (
        "class _Operator:\n    def __init__(self, function):\n        self.calls = [function]\n\n"
        "    def then(self, function):\n        self.calls.append(function)\n"
        "        return function\n\n"
        "    def __call__(self, x):\n        for call in self.calls:\n            x = call(x)\n"
        "        return x\n\n\n"
    )
    after = "\n\n@counted.then\ndef _more(x):\n    return x + 100\n"
    nets = _changed(
        NETS,
        ("@functools.lru_cache\ndef counted(x):", f"{operator}@_Operator\ndef counted(x):"),
        ("\n    return x\n\n\ndef make(x):", f"\n    return x\n{after}\n\ndef make(x):"),
    )
    _made(folder, {"nets.py": nets})
    assert _ran(folder) == (AS_IT_WAS.replace(" 5 4 7", " 105 4 7"), "")


def test_what_stands_outside_of_functions(folder: Path) -> None:
    """In a package it is refused; a module of the user's own is carried as a whole."""
    script = _made(folder, {"nets.py": NETS.replace("SCALE = 10", "SCALE = 11")})
    ((file, why),) = script.refused
    assert file.endswith("nets.py") and "line 10" in why and "outside any function" in why
    assert "# Not included:\n#   thirdparty/nets.py: line 10" in script.text
    assert _ran(folder) == (AS_IT_WAS, "")
    odd = 'NAME = "own"\nTEXT = \'\'\'a\n\\n"""b\'\'\'\nassert TEXT == "a\\n\\n\\"\\"\\"b", TEXT\n'
    _made(folder, {"helper.py": odd})
    assert _ran(folder) == (AS_IT_WAS.replace("helper\n", "own\n"), "")


def test_another_version_is_left_alone(folder: Path) -> None:
    nets = NETS.replace("return x * by", "return x * by + 1")
    _made(folder, {"nets.py": nets, "helper.py": 'NAME = "own"\nif NAME:\n    NAME += "!"\n'})
    package = folder / "lib" / "site-packages" / "thirdparty"
    # Lines above it may change: it is still the same function.
    (package / "nets.py").write_text("# New.\n\n" + NETS)
    assert _ran(folder)[0] == "Says things. ['word'] own!\n4 2 21 5 4 7\n"
    (package / "nets.py").write_text(NETS.replace("x * by", "by * x"))
    (folder / "app" / "helper.py").write_text('NAME = "newer"\n')
    out, err = _ran(folder)
    assert out == AS_IT_WAS.replace("helper\n", "newer\n")
    assert "thirdparty/nets.py is not fixed: area: it is not the version" in err
    assert "./helper.py is not fixed" in err


def test_what_is_never_imported_is_told(folder: Path) -> None:
    quiet = MAIN.replace("import helper\n", "").replace(", helper.NAME", "")
    _made(folder, {"main.py": quiet, "helper.py": 'NAME = "own"\n'})
    out, err = _ran(folder)
    assert out == AS_IT_WAS.replace(" helper\n", "\n")
    assert err == "main_fixed.py: ./helper.py is not fixed: it was never imported\n"


def test_a_traceback_names_the_scripts_own_lines(folder: Path) -> None:
    nets = NETS.replace("return x * by", "return x * by / 0  # here")
    script = _made(folder, {"nets.py": nets})
    _, err = _ran(folder, code=1)
    line = script.text.splitlines().index("        return x * by / 0  # here") + 1
    assert f'main_fixed.py", line {line}, in area\n    return x * by / 0  # here' in err


def test_variables_come_first(folder: Path) -> None:
    main = "'''Doc'''; from __future__ import annotations; import os; print(os.environ['A_FLAG'])\n"
    _made(folder, {"main.py": main}, environment={"A_FLAG": "1"})
    assert _ran(folder) == ("1\n", "")


def test_the_same_script_is_made_again(folder: Path) -> None:
    nets = NETS.replace("return x * by", "return x * by + 1")
    assert _made(folder, {"nets.py": nets}) == _made(folder, {"nets.py": nets})
