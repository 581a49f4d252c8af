"""What commands do not import: starting up is most of what a small command costs."""

from __future__ import annotations

import json
import lzma
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

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
print(json.dumps(sorted(sys.modules)))
"""
_NEVER = {
    "asyncio", "email", "http", "importlib.metadata", "libcst", "multiprocessing", "numpy",
    "psutil", "pygments", "ssl", "torch", "unittest", "urllib.request", "xml",
}  # fmt: skip
_SELDOM = {
    "compilescope.base.processes.cleaner", "html", "logging", "secrets", "socket", "subprocess",
    "tempfile", "zipfile",
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
