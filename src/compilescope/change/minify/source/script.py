"""The script that is handed out: the small program, and a main part that judges it by torch alone.

It listens to what torch itself logs about graph breaks or recompiles, and to the error that
fullgraph=True makes of a break; of a crash, it looks at how the program ends. It concludes as every
repro script does (`script.conclusion`).

It is handed out only after a fresh process has shown the same cause, by both accounts. By its own:
run with plain Python, it concludes that the bug is present. And by ours: under capture, in a new
interpreter, it shows a cause with the same key (of a crash, the program in it that it looks at).
"""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from compilescope.base.processes.child import run_within
from compilescope.base.processes.deadline import Deadline, OutOfTime
from compilescope.base.settings import fresh_environment
from compilescope.base.texts import in_docstring
from compilescope.change.minify.script.conclusion import conclude, ending_source, exits, shows_bug
from compilescope.change.minify.script.embedded import crashes
from compilescope.change.minify.source.findings import (
    SourceFinding,
    TrialResult,
    crash_key,
    lasting_guard,
)
from compilescope.change.minify.source.program_sandbox import (
    ProgramFiles,
    ProgramSandbox,
    find_again,
    lay_out,
)

_START_S = 120.0
"""For importing torch, beside the time of a candidate. Chosen: more than a busy machine takes."""
_LAST_WORDS = 3
"""Lines of its output in the reason: enough for an error and its line."""


def why_not(
    script: str,
    program: str,
    cause: SourceFinding,
    surroundings: ProgramFiles,
    limit_s: float,
    deadline: Deadline,
) -> str:
    """Why it is no repro of what `program` shows; empty if it is one. Raises `OutOfTime`."""
    # The script lives through the crash that it tells of.
    shows = program if cause.predicate == "crash" else script
    return _alone(script, surroundings, limit_s, deadline) or _captured(
        shows, cause, surroundings, limit_s, deadline
    )


def _alone(script: str, surroundings: ProgramFiles, limit_s: float, deadline: Deadline) -> str:
    with tempfile.TemporaryDirectory(
        prefix="compilescope-repro-", ignore_cleanup_errors=True
    ) as folder:
        lay_out(surroundings.files, Path(folder))
        path = Path(folder, "repro.py")
        path.write_text(script, encoding="utf-8")
        env = fresh_environment()
        env["PYTHONPATH"] = ":".join([*surroundings.paths, env["PYTHONPATH"]])
        try:
            done = run_within(
                [sys.executable, str(path)],
                deadline.limit(limit_s + _START_S),
                cwd=folder,
                env=env,
                stdin=subprocess.DEVNULL,
                capture_output=True,
            )
        except subprocess.TimeoutExpired:
            if deadline.is_over:
                raise OutOfTime from None
            return (
                f"on its own in a fresh process it did not finish within {limit_s + _START_S:g} s"
            )
    if shows_bug(done.returncode, done.stderr.decode(errors="replace").splitlines()):
        return ""
    said = (done.stdout + done.stderr).decode(errors="replace").strip().splitlines()
    words = " / ".join(said[-_LAST_WORDS:]) or "no message"
    return f"on its own in a fresh process it exited with {done.returncode} ({words})"


def _captured(
    script: str,
    cause: SourceFinding,
    surroundings: ProgramFiles,
    limit_s: float,
    deadline: Deadline,
) -> str:
    with ProgramSandbox(
        surroundings, limit_s=limit_s, memory_bytes=None, fork=False, deadline=deadline
    ) as stage:
        seen = stage.look(script)
    if not isinstance(seen, TrialResult):
        return f"under capture in a fresh process the result was {seen}"
    if find_again(seen, cause) is None:
        return "under capture in a fresh process it did not show the same cause"
    return ""


_WIDTH = 88
"""Columns of what we write into a script. Chosen: what formatters of Python are used to."""
_THING = {"break": "graph break", "recompile": "recompile", "crash": "crash"}
_LOGS = {
    "break": ("graph_breaks", ("symbolic_convert", "convert_frame")),
    "recompile": ("recompiles", ("guards",)),
}
_BY_LOG = """
if __name__ == "__main__":
    said = []
    listener = logging.Handler()
    listener.emit = lambda record: said.append(record.getMessage())
    torch._logging.set_logs({artifact}=True)
    for name in {loggers}:
        logging.getLogger(name).addHandler(listener)
    failure = None
    try:
{acts}
    except Exception as error:
        failure = error
        said.append(str(error))
    signs = {words}
    shown = any(all(sign in text for sign in signs) for text in said)
    if failure is not None and not shown:
        conclude(None, f"something else went wrong: {{type(failure).__name__}}: {{failure}}")
    conclude(shown, thing="{thing}")
"""
_BY_EXCEPTION = """
if __name__ == "__main__":
    failure = None
{before}    try:
{acts}
    except Exception as error:
        failure = error
    expected = {expected}
    if failure is not None and crash_sign(failure) != expected:
        conclude(None, f"something else went wrong: {{type(failure).__name__}}: {{failure}}")
    conclude(failure is not None, thing="crash")
"""
_BY_SIGNAL = """
if __name__ == "__main__":
    if os.environ.get("REPRO_INSIDE"):
{acts}
        sys.exit(0)
    inside = {{**os.environ, "REPRO_INSIDE": "1"}}
    status = subprocess.run([sys.executable, os.path.abspath(__file__)], env=inside).returncode
    if status not in (0, -{expected}):
        conclude(None, f"something else went wrong: it exited with {{status}}.")
    conclude(status != 0, thing="crash")
"""
_VARIABLES = ("said", "listener", "failure", "shown", "name", "signs", "conclude")
_CRASH_VARIABLES = ("failure", "expected", "innermost", "crash_sign", "conclude")
_SIGNAL_VARIABLES = ("inside", "status", "conclude")


@dataclass(frozen=True)
class Story:
    """What the head of the script tells."""

    found_in: str
    """Where the user's program shows it: `train.py:41, in forward`."""
    torch: str
    lines_before: int
    needs: tuple[str, ...] = ()
    """Own modules that it still imports."""


def finished_script(text: str, cause: SourceFinding, story: Story, *, guarded: bool) -> str:
    """`guarded`: all of the program in the main part, not only its last statements."""
    body = ast.parse(text).body
    form = _form(cause)
    imports = dict.fromkeys([*form.imports, "import sys", "import torch"])
    future = [ast.unparse(each) for each in body if _is_future(each)]
    body = [each for each in body if not _is_future(each)]
    split = 0 if guarded else _first_act(body)
    imports.update(dict.fromkeys(ast.unparse(each) for each in body[:split] if _is_import(each)))
    before = [each for each in body[:split] if not _is_import(each)]
    program = "\n".join([*future, *imports]) + "\n" + _laid_out(before, after_imports=True)
    gap = "\n" if before and isinstance(before[-1], _BLOCKS) else ""
    names = {node.id for each in body for node in ast.walk(each) if isinstance(node, ast.Name)}
    main = _check(form, body[split:], names)
    return f'"""{_head(cause, story)}"""\n\n{program}{gap}{main}'


def tidy(text: str) -> str:
    """Formatted anew, with the usual empty lines; comments go."""
    return _laid_out(ast.parse(text).body).lstrip("\n")


def _laid_out(body: list[ast.stmt], *, after_imports: bool = False) -> str:
    before: ast.stmt | None = ast.Import([]) if after_imports else None
    parts: list[str] = []
    for statement in body:
        parts.append(_gap(before, statement) + ast.unparse(statement) + "\n")
        before = statement
    return "".join(parts)


_BLOCKS = (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)


def _gap(before: ast.stmt | None, statement: ast.stmt) -> str:
    if isinstance(statement, _BLOCKS) or isinstance(before, _BLOCKS):
        return "\n\n"
    return "\n" if _is_import(before) and not _is_import(statement) else ""


def _first_act(body: list[ast.stmt]) -> int:
    """Where the last run of statements begins that neither define nor import anything."""
    kinds = (*_BLOCKS, ast.Import, ast.ImportFrom)
    return max((n for n, each in enumerate(body, 1) if isinstance(each, kinds)), default=0)


def _is_import(statement: ast.stmt | None) -> bool:
    return isinstance(statement, (ast.Import, ast.ImportFrom))


def _is_future(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"


@dataclass(frozen=True)
class _MainTemplate:
    """A main part to fill in."""

    text: str
    imports: tuple[str, ...]
    values: Mapping[str, str]
    """For its places; `{acts}` is the program's."""
    definitions: str
    variables: tuple[str, ...]
    """Names of its own: the program may have taken them."""


def _form(cause: SourceFinding) -> _MainTemplate:
    if cause.predicate == "crash":
        return _crash_form(cause)
    artifact, modules = _LOGS[cause.predicate]
    values = {
        "artifact": artifact,
        "loggers": _listed([f"torch._dynamo.{name}.__{artifact}" for name in modules]),
        "words": _listed(words_of(cause)),
        "thing": _THING[cause.predicate],
    }
    return _MainTemplate(_BY_LOG, ("import logging",), values, ending_source(conclude), _VARIABLES)


def _crash_form(crash: SourceFinding) -> _MainTemplate:
    ending = ending_source(conclude)
    if crash.subject == "signal":
        imports: tuple[str, ...] = ("import os", "import subprocess")
        values = {"expected": crash.reason}
        return _MainTemplate(_BY_SIGNAL, imports, values, ending, _SIGNAL_VARIABLES)
    words = "".join(f"\n        {word!r}," for word in crash_key(crash))
    imports = ("import os", "import re", "import traceback")
    values = {"expected": f"({words}\n    )", "before": ""}
    if crash.subject == "backend":
        # What another program compiled of the same graph would spare it the crash.
        values["before"] = "    torch._inductor.config.force_disable_caches = True\n"
        imports += ("import torch._inductor.config",)
    signs = (inspect.getsource(each) for each in (crashes.innermost, crashes.crash_sign))
    return _MainTemplate(
        _BY_EXCEPTION, imports, values, "\n\n".join([*signs, ending]), _CRASH_VARIABLES
    )


def _check(form: _MainTemplate, acts: list[ast.stmt], theirs: set[str]) -> str:
    """With names of its own for its variables; `{name}` is a place to fill in."""
    text, definitions = form.text, form.definitions
    for name in form.variables:
        new = name
        while new in theirs:
            new += "_"
        text, definitions = (
            re.sub(rf"(?<!(?<!{{){{)\b{name}\b", new, each) for each in (text, definitions)
        )
    body = textwrap.indent(_laid_out(acts).strip() or "pass", " " * 8)
    return f"\n\n{definitions}\n" + text.format(acts=body, **form.values)


def _listed(texts: list[str] | tuple[str, ...]) -> str:
    """A list on one line if there is room, else with one text a line."""
    words = [_quoted(text) for text in texts]
    short = f"[{', '.join(words)}]"
    if len(short) <= _WIDTH - 20:
        return short
    return "[" + "".join(f"\n        {word}," for word in words) + "\n    ]"


def _quoted(text: str) -> str:
    plain = text.isprintable() and not set(text) & {"\\", '"'}
    return f'"{text}"' if plain else repr(text)


def issue_signs(cause: SourceFinding) -> tuple[str, ...]:
    """What a report's script must end with: torch's own words, or the number of a signal."""
    if cause.predicate != "crash":
        return words_of(cause)[: 1 if cause.predicate == "break" else None]
    return (cause.reason,) if cause.subject == "signal" else crash_key(cause)[1:3]


def words_of(cause: SourceFinding) -> tuple[str, ...]:
    """What torch's own report of it says, whatever the program around it."""
    if cause.predicate == "break":
        return tuple(dict.fromkeys(filter(None, (cause.what, cause.reason))))
    return ("Recompiling function", *filter(None, [lasting_guard(cause.logged)]))


def _head(cause: SourceFinding, story: Story) -> str:
    what = f"Graph break: {cause.what}" if cause.predicate == "break" else cause.title
    named = f" ({cause.gb_id})" if cause.gb_id else ""
    why = f"The guard {cause.guard} fails" if cause.predicate == "recompile" else cause.reason
    why += "`" * (why.count("`") % 2)
    origin = f"Minified from {story.lines_before} lines; found in {story.found_in}"
    paragraphs = [
        f"{what}{named}.",
        f"{why.rstrip('.')}. {origin}, with torch {story.torch}.".removeprefix(". "),
        exits(_THING[cause.predicate]),
    ]
    if story.needs:
        paragraphs.append(f"It needs these modules of the author: {', '.join(story.needs)}.")
    text = "\n\n".join(textwrap.fill(each, _WIDTH) for each in paragraphs)
    return in_docstring(text) + "\n"
