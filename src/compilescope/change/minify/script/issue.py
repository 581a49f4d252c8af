"""The same bug as few lines of plain PyTorch, for a report to somebody else: the model, the call,
the check.

The repro script tells one bug from another and says so by its exit status; what that takes has no
place in a report. Here a traceback says it: an error of the compiler is raised, other numbers fail
`torch.testing.assert_close`, a graph break fails an assertion on torch's own count. It is handed
out only if a fresh process, without the variables that it sets itself, ends so.

Pure text: nothing here needs torch.
"""

from __future__ import annotations

import ast
import os
import re
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from compilescope.base.outputs import REPRO_MARK, is_repro
from compilescope.base.patterns import late
from compilescope.base.processes.child import run_within
from compilescope.base.processes.cleaner import transient
from compilescope.base.settings import compiler_variables, fresh_environment
from compilescope.base.texts import in_docstring
from compilescope.change.minify.graph.record import BackendSource, Setting, Shown
from compilescope.change.minify.script.graph_script import calls_apply, graph_classes, input_source
from compilescope.change.minify.script.verification import too_late
from compilescope.knowledge.source.definitions import statements_for
from compilescope.record.written_graph import Input, TensorKind, WrittenGraph

_LETTERS = late(r"[^A-Za-z]+")
_ENOUGH = 60
"""Letters of an error's words by which it is known again. Chosen: half a line."""
_WIDTH = 88
"""Columns of a docstring. Chosen: what formatters of Python are used to."""
_RANDOM = "    torch.manual_seed(0)"
_IMPORT = late(r"(import|from) [^\n]+$")
_FROM = late(r"^from (\w[\w.]*) import (\w+)$")


class NoIssueForm(Exception):
    """Why there is none."""


@dataclass(frozen=True)
class IssueForm:
    """A script, and by what it is known to show the bug."""

    text: str
    signs: tuple[str, ...]
    """What stands on stderr, in letters alone."""
    signal: int = 0
    """That ends it."""

    @property
    def lines(self) -> int:
        return len(self.text.splitlines())


@dataclass(frozen=True)
class IssueResult:
    """What became of it."""

    path: Path | None = None
    lines: int = 0
    reason: str = ""
    """Why there is none."""

    @property
    def words(self) -> str:
        if self.path is None:
            return f"No short form for a bug report: {self.reason}."
        return f"For a bug report, {self.lines} lines, verified in a fresh process: {self.path}"


def issue_path(repro: Path) -> Path:
    return repro.with_name(f"{repro.stem}_issue.py")


def graph_issue(
    graph: WrittenGraph,
    setting: Setting,
    shown: Shown,
    *,
    torch_version: str,
    saved: Mapping[str, str],
) -> IssueForm:
    """Raises `NoIssueForm`."""
    if shown.kind == "violation":
        raise NoIssueForm("a device's rule is checked by compilescope alone")
    if calls_apply(graph):
        raise NoIssueForm("the graph calls an autograd function, which takes support code")
    backend = _standing_alone(setting.backend)
    if graph.folders or backend.folders:
        folder = next(iter((*graph.folders, *backend.folders)))
        raise NoIssueForm(f"it needs your modules in {folder}")

    def made(each: Input) -> str:
        return _input_source(each, saved)

    given = [each for each in graph.inputs if not each.attribute]
    classes = graph_classes(graph, made=made)
    words = set(re.findall(r"\w+", "".join(classes)))
    imports = [line for name, line in graph.imports.items() if name in words]
    brought = [each for each in backend.definitions if _IMPORT.match(each)]
    body = [
        *_preamble([*imports, *backend.imports, *brought]),
        *(each for each in backend.definitions if each not in brought),
        "\n".join(setting.settings),
        *classes,
        "\n".join(_steps(given, made, setting, shown, backend.expression)),
    ]
    title = [shown.title, *shown.lines[:2]]
    text = _script(title, torch_version, body, shown.kind == "signal")
    if shown.kind == "signal":
        return IssueForm(text, (), int(shown.expected))
    if shown.kind == "difference":
        return IssueForm(text, ("AssertionError",))
    kind, said, _ = shown.expected
    return IssueForm(text, (kind, said))


def _standing_alone(backend: BackendSource) -> BackendSource:
    """A function of the user's own file is written out instead of imported."""
    found, imports = list(backend.definitions), []
    for line in backend.imports:
        match = _FROM.match(line)
        file = match and _file_of(match[1], backend.folders)
        if match is None or not file:
            imports.append(line)
            continue
        try:
            text = Path(file).read_text(encoding="utf-8")
            found += statements_for({match[2]}, text)
        except (OSError, ValueError, SyntaxError):
            return backend
    if len(imports) == len(backend.imports):
        return backend
    return BackendSource(backend.expression, backend.name, tuple(imports), (), tuple(found))


def _file_of(module: str, folders: Sequence[str]) -> str:
    paths = (os.path.join(folder, *module.split(".")) + ".py" for folder in folders)
    return next((path for path in paths if os.path.isfile(path)), "")


def _preamble(imports: Sequence[str]) -> list[str]:
    lines = sorted({"import torch", *(line for line in imports if line)})
    variables = compiler_variables()
    if not variables:
        return ["\n".join(lines)]
    # Torch reads them while it is imported.
    set_first = [f"os.environ[{name!r}] = {value!r}" for name, value in variables.items()]
    rest = [line for line in lines if line != "import os"]
    return ["\n".join(["import os", "", *set_first, "", *rest])]


def _script(
    title: Sequence[str], torch_version: str, body: Sequence[str], killed: bool = False
) -> str:
    how = " It is killed by a signal as long as the bug is present." if killed else ""
    told = [line for each in title for line in textwrap.wrap(each, _WIDTH - 3)]
    last = textwrap.wrap(
        f"torch {torch_version}. {REPRO_MARK} the bug is present, 0 once it is fixed.{how}", _WIDTH
    )
    head = in_docstring("\n".join([*told, "", *last]))
    parts = [part.strip("\n") for part in body if part.strip()]
    return f'"""{head}\n"""\n\n' + "\n\n\n".join(parts) + "\n"


def _steps(
    given: Sequence[Input],
    made: Callable[[Input], str],
    setting: Setting,
    shown: Shown,
    backend: str,
) -> Iterator[str]:
    backward = setting.backward and any(
        each.tensor is not None and each.tensor.grad for each in given
    )
    yield "def run(function):"
    yield _RANDOM
    yield f"    inputs = [{', '.join(map(made, given))}]"
    for number, each in enumerate(given):
        for dim in each.tensor.dynamic if each.tensor is not None else ():
            yield f"    torch._dynamo.maybe_mark_dynamic(inputs[{number}], {dim})"
    inner = "    "
    if setting.contexts:
        yield f"    with {', '.join(setting.contexts)}:"
        inner = "        "
    if backward:
        yield f"{inner}results = function(*inputs)"
        # Weights that differ: the plain sum of a softmax has no gradient.
        yield f"{inner}for each in results:"
        yield f"{inner}    if getattr(each, 'requires_grad', False):"
        yield f"{inner}        weight = torch.linspace(0.5, 1.5, each.numel()).view_as(each)"
        yield f"{inner}        (each * weight.to(each)).sum().backward(retain_graph=True)"
        yield "    leaves = [each for each in inputs if getattr(each, 'requires_grad', False)]"
        yield "    return [*results, *(each.grad for each in leaves if each.grad is not None)]"
    else:
        yield f"{inner}return function(*inputs)"
    words = ["Graph()", f"backend={backend}", "fullgraph=True", *setting.options]
    compiled = f"run(torch.compile({', '.join(words)}))"
    if shown.kind == "difference":
        yield f"\n\nwanted, found = run(Graph()), {compiled}"
        yield "torch.testing.assert_close(found, wanted, equal_nan=True)"
    else:
        yield f"\n\nrun(Graph())  # works\n{compiled}"


def _input_source(each: Input, saved: Mapping[str, str]) -> str:
    kind = each.tensor
    if kind is None:
        return input_source(each)
    text = _numbers(each, kind, saved)
    if kind.stride is not None:
        text = f"torch.empty_strided({kind.shape!r}, {kind.stride!r}, {_dtype(kind)}).copy_({text})"
    text += f".to({kind.device!r})" if kind.device != "cpu" else ""
    return f"{text}.requires_grad_()" if kind.grad else text


def _dtype(kind: TensorKind) -> str:
    return f"dtype=torch.{kind.dtype}"


def _numbers(each: Input, kind: TensorKind, saved: Mapping[str, str]) -> str:
    shape = repr(kind.shape)
    own = "" if kind.dtype == "float32" else f", {_dtype(kind)}"
    if each.fill == "saved":
        if each.saved not in saved:
            raise NoIssueForm(
                "it takes the numbers of your inputs, which are too many to write out"
            )
        return f"torch.tensor({saved[each.saved]}, {_dtype(kind)})"
    if each.fill != "random":
        return f"torch.{'ones' if each.fill == 'ones' else 'zeros'}({shape}{own})"
    if each.low or each.high:
        return f"torch.randint({each.low}, {each.high + 1}, {shape}{own})"
    if kind.dtype in ("float32", "float64", "float16", "bfloat16", "complex64", "complex128"):
        return f"torch.randn({shape}{own})"
    return f"torch.zeros({shape}{own})"


# Of source: the small program stands as it is, and torch's own means judge it.

_BREAKS = """
breaks = torch._dynamo.utils.counters["graph_break"]
assert not breaks, dict(breaks)
"""
_RECOMPILES = "torch._dynamo.config.error_on_recompile = True"


def source_issue(
    program: str, kind: str, title: Sequence[str], signs: Sequence[str], torch_version: str
) -> IssueForm:
    """Raises `NoIssueForm`."""
    imports: list[str] = []
    future: list[str] = []
    lines = program.splitlines()
    for each in ast.parse(program).body:
        if isinstance(each, (ast.Import, ast.ImportFrom)):
            is_future = isinstance(each, ast.ImportFrom) and each.module == "__future__"
            (future if is_future else imports).append(ast.unparse(each))
            for number in range(each.lineno - 1, each.end_lineno or each.lineno):
                lines[number] = ""
    # Imports stand first, and what torch reads while it is imported before them.
    head = "\n".join([*future, *_preamble(imports)])
    after = ""
    if kind == "recompile":
        head += f"\n\n{_RECOMPILES}"
    if kind == "break":
        after = _BREAKS.strip()
    text = _script(title, torch_version, [head, "\n".join(lines), after])
    if kind == "crash" and signs and signs[0].isdigit():
        return IssueForm(text, (), int(signs[0]))
    return IssueForm(text, tuple(signs))


def write_issue(repro: Path, make: Callable[[], IssueForm], timeout_s: float) -> IssueResult:
    """Write it beside the repro once a fresh process has shown it."""
    path = issue_path(repro)
    try:
        form = make()
        if path.exists() and not is_repro(path.read_bytes()[:4096]):
            return IssueResult(reason=f"{path} is a file of yours")
        with transient(path.with_name(f".{path.stem[:100]}-{os.getpid()}.unverified.py")) as draft:
            draft.write_text(form.text, encoding="utf-8")
            reason = why_not_shown(form, draft, timeout_s)
            if reason:
                return IssueResult(reason=reason)
            draft.replace(path)
    except NoIssueForm as reason:
        return IssueResult(reason=str(reason))
    except OSError as error:
        return IssueResult(reason=f"{path} cannot be written ({error.strerror})")
    return IssueResult(path, form.lines)


def why_not_shown(form: IssueForm, script: Path, timeout_s: float) -> str:
    """Empty if a process that starts with no variable of the compiler ends as it should."""
    private = compiler_variables()
    env = {name: value for name, value in fresh_environment().items() if name not in private}
    env["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"
    try:
        done = run_within(
            [sys.executable, str(script)],
            timeout_s,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
        )
    except subprocess.TimeoutExpired:
        return too_late(timeout_s)
    if form.signal:
        died = done.returncode == -form.signal
        name = signal.Signals(form.signal).name
        return "" if died else f"without support code it did not end by {name}"
    said = _letters(done.stderr.decode(errors="replace"))
    if done.returncode == 1 and all(_letters(sign)[:_ENOUGH] in said for sign in form.signs):
        return ""
    return "without support code it did not show the same"


def _letters(text: str) -> str:
    return _LETTERS.sub(" ", text).strip()
