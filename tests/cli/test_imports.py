"""What commands do not import: starting up is most of what a small command costs."""

from __future__ import annotations

import inspect
import json
import lzma
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from compilescope.apps import cli
from compilescope.apps.cli.quick_start import _cleandoc
from compilescope.base import settings
from compilescope.base.patterns import late
from compilescope.base.processes import cleaner_process
from compilescope.logs.trace.record import TraceLine
from compilescope.record.bodies import Body
from compilescope.record.event import Envelope
from compilescope.record.header import RunHeader

GOLDEN = Path(__file__).parent.parent / "logs" / "golden"
_COMMAND = """
import contextlib, io, json, sys
sys.argv = ["compilescope", *sys.argv[1:]]
sys.orig_argv = ["python", *sys.argv]
from compilescope.apps.cli.main import main
try:
    with contextlib.redirect_stdout(io.StringIO()):
        main()
except SystemExit as ended:
    assert not ended.code, ended.code
late = [name for name, module in sys.modules.items() if type(module).__name__ == "_LateModule"]
print(json.dumps(sorted({*sys.modules} - {*late})))
"""
_NEVER = {
    "asyncio", "email", "http", "importlib.metadata", "libcst", "multiprocessing", "numpy",
    "psutil", "pygments", "ssl", "torch", "unittest", "urllib.request", "xml",
}  # fmt: skip
_SELDOM = {
    "compilescope.base.processes.cleaner", "html", "inspect", "logging", "platform",
    "secrets", "socket", "subprocess", "tempfile", "typing_extensions", "zipfile",
}  # fmt: skip
_NO_VIEW = {
    *_NEVER, "compilescope.change.fixes", "compilescope.logs",
    "compilescope.knowledge.analysis.digest", "jinja2",
}  # fmt: skip


_MOST_MODULES = 300
"""Of ours, for a trace whose source is not here. Each costs about a third of a millisecond."""


def _imported(*command: str) -> set[str]:
    arguments = [sys.executable, "-c", _COMMAND, *command]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_importing_every_fix_does_not_import_what_parses() -> None:
    code = (
        "import sys; from compilescope.change.fixes.catalogue import all_fixes; "
        "assert all_fixes() and 'libcst' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("command", ["--help", "list"])
def test_small_commands_load_no_view(command: str, tmp_path: Path) -> None:
    options = ["--dir", str(tmp_path)] if command == "list" else []
    assert not _imported(command, *options) & _NO_VIEW


def test_a_trace_loads_neither_the_console_readers_nor_what_parses_and_colours(
    tmp_path: Path,
) -> None:
    """Its sources are not here, so no fix can look at a tree; the page has graphs with code."""
    log = tmp_path / "trace.log"
    log.write_bytes(lzma.decompress((GOLDEN / "torch_trace_inductor.log.xz").read_bytes()))
    page = tmp_path / "page.html"
    loaded = _imported("logs", str(log), "--dir", str(tmp_path), "--report", str(page))
    assert not loaded & {*_NEVER, *_SELDOM, "jinja2", "rich", "compilescope.logs.text.engine"}
    assert page.stat().st_size > 100_000
    assert len([name for name in loaded if name.startswith("compilescope")]) <= _MOST_MODULES


@pytest.mark.parametrize("kind", [*get_args(Body), Envelope, TraceLine, RunHeader])
def test_what_msgspec_decodes_has_its_annotations_evaluated(kind: type) -> None:
    """Texts of annotations, as `from __future__ import annotations` leaves them, are evaluated one
    by one in every process: for the bodies alone that took 8 ms."""
    assert not [name for name, each in kind.__annotations__.items() if isinstance(each, str)]


def test_names_that_settings_repeats_are_those_of_the_guard() -> None:
    assert settings.CLEANER == cleaner_process.VARIABLE


@pytest.mark.parametrize(
    "text", ["", "one line ", "\tone", "a\n  b\n    c\n\n", "\n\n  a\n \n  b", "a\n\nb", " \n "]
)
def test_the_words_of_an_option_are_cleaned_as_inspect_does(text: str) -> None:
    assert _cleandoc(text) == inspect.cleandoc(text)


def test_what_is_late_is_the_real_module_once_something_is_asked_of_it() -> None:
    code = """
import sys
sys.argv = ["compilescope"]
sys.orig_argv = ["python", "compilescope"]
import compilescope.apps.cli, inspect, platform, ast
held = ast
assert "getmembers" not in vars(inspect) and "Module" not in vars(ast)
from ast import Module
import ast
assert ast is not held and held.Module is ast.Module is Module and type(held) is type(sys)
assert inspect.__file__.endswith("inspect.py") and sys.modules["inspect"].isclass(Module)
assert inspect.cleandoc is sys.modules["inspect"].cleandoc
try:
    platform.no_such_name
except AttributeError:
    pass
else:
    raise SystemExit("found")
assert platform.system is sys.modules["platform"].system and platform.machine()
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_late_expression_is_compiled_once_it_is_used() -> None:
    found = late(r"(\d+)", re.ASCII)
    assert "search" not in vars(found)
    assert found.search("a12").group(1) == "12"  # type: ignore[union-attr]
    assert found.sub("x", "1 2") == "x x" and found.groups == 1 and found.pattern == r"(\d+)"
    assert vars(found)["search"].__self__ is re.compile(r"(\d+)", re.ASCII)
    assert not hasattr(found, "no_such_method")


def test_a_trace_that_loses_nothing_loads_no_fix_and_no_rule(tmp_path: Path) -> None:
    whole = lzma.decompress((GOLDEN / "torch_trace_inductor.log.xz").read_bytes())
    log = tmp_path / "trace.log"
    log.write_bytes(whole[: whole.rindex(b"\nV", 0, whole.index(b"dynamo_graph_break_reason"))])
    page = tmp_path / "page.html"
    loaded = _imported("logs", str(log), "--dir", str(tmp_path), "--report", str(page))
    rooms = (
        "compilescope.change.fixes.advice",
        "compilescope.knowledge.rules.breaks.",
        "compilescope.change.fixes.breaks.",
    )
    assert not [name for name in loaded if name.startswith(rooms)]


def test_a_command_ends_as_python_would(tmp_path: Path) -> None:
    """Its process is not taken apart, but what asked to be told of its end is."""
    code = (
        "import atexit, sys; atexit.register(print, 'told', flush=True); "
        "from compilescope.__main__ import command; command()"
    )

    def ended(*words: str) -> tuple[int, str]:
        run = [sys.executable, "-c", code, *words]
        done = subprocess.run(run, capture_output=True, text=True, cwd=tmp_path)
        return done.returncode, done.stdout

    assert ended("list") == (0, "told\n")
    assert ended("show") == (2, "told\n")


@pytest.mark.parametrize("options", [(), ("-O", "-W", "error"), ("-X", "utf8")])
def test_files_of_the_working_folder_hide_no_library(
    options: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "msgspec.py").write_text("raise SystemExit('the program has one of its own')\n")
    run = [sys.executable, *options, "-m", "compilescope", "list", "--dir", "runs"]
    done = subprocess.run(run, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_our_modules_are_what_python_would_have_found(tmp_path: Path) -> None:
    """Also where one is changed after it was compiled."""
    code = """
import sys
from importlib.machinery import PathFinder
sys.argv = ["compilescope"]
sys.orig_argv = ["python", "compilescope"]
import compilescope.apps.cli.commands, compilescope.base.texts
for name in [name for name in sys.modules if name.startswith("compilescope.")]:
    spec = sys.modules[name].__spec__
    other = PathFinder.find_spec(name, sys.modules[name.rpartition(".")[0]].__path__)
    for each in ("name", "origin", "cached", "has_location", "submodule_search_locations"):
        assert getattr(spec, each) == getattr(other, each), (name, each)
    assert spec.loader.get_code(name) == other.loader.get_code(name)
print(compilescope.base.texts.__file__, compilescope.base.texts.VALUE)
"""
    package = Path(cli.__file__).parents[2]
    copy = tmp_path / "compilescope"
    copy.mkdir()
    shutil.copy(package / "__init__.py", copy)
    for name in ("apps", "base"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(package / name, copy / name, ignore=ignored)
    texts = copy / "base" / "texts.py"

    def value() -> str:
        run = [sys.executable, "-c", code]
        env = {**os.environ, "PYTHONPATH": str(tmp_path)}
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        done = subprocess.run(run, capture_output=True, text=True, env=env)
        assert done.returncode == 0, done.stderr
        file, value = done.stdout.split()
        assert file == str(texts)
        return value

    texts.write_text("VALUE = 'first'\n")
    assert [value(), value()] == ["first", "first"]
    texts.write_text("VALUE = 'another'\n")
    assert [value(), value()] == ["another", "another"]
