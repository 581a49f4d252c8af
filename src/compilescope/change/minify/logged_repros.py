"""Writes a repro for each break of a run that was read from logs.

From the user's own program where it is given and reaches the break; else from a tested example.

It is the tested example of the rule that explains the break, taken apart into what leads up to the
call, what is compiled and what it is called with: a log has no inputs and no weights. It is run
here on plain torch; what a device's backend makes of it could not be seen here, and it says so.

Breaks of torch_xla's own, which Dynamo on plain torch does not show, have scripts of their own:
torch_xla records operations and compiles them at the next sync; the script counts what it compiles
in one step. It is run here where torch_xla is installed, and says so where it is not.
"""

from __future__ import annotations

import ast
import importlib.util
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from compilescope.base import plugins
from compilescope.change.fixes.program_files import LogFiles
from compilescope.change.minify.logged_program import (
    OwnProgram,
    break_words,
    file_name,
    one_line,
    write_own,
)
from compilescope.change.minify.script.conclusion import ending_source, exits
from compilescope.change.minify.script.verification import write_verified
from compilescope.knowledge.analysis.digest import digest
from compilescope.knowledge.analysis.logged.callers import in_module
from compilescope.knowledge.findings.breaks import BreakFinding
from compilescope.knowledge.rules import breaks
from compilescope.knowledge.rules.causes.device_words import DEVICE_RULES
from compilescope.knowledge.rules.causes.rule import BreakRule
from compilescope.record.bodies import ReproWritten
from compilescope.record.command_run import append_bodies
from compilescope.record.run import Run, read_run
from compilescope.record.run_files import REPROS

_MOST_S = 300.0
"""For all scripts of a log. Chosen: as long as for the failures of a run."""
_NO_TIME = "the time for repros ran out"
_NO_PROGRAM = "neither --script names the program, nor does --source hold it"


@dataclass(frozen=True)
class WrittenRepros:
    """How many of which kind."""

    own: int = 0
    """Of the user's program."""
    stock: tuple[tuple[str, str], ...] = ()
    """(place, why it is a stock example)."""
    missing: tuple[tuple[str, str], ...] = ()
    """(place, why there is none)."""


def write_log_repros(
    run: Path,
    note: Callable[[str], None] = lambda doing: None,
    program: OwnProgram | None = None,
    folders: tuple[str, ...] = (),
) -> WrittenRepros:
    """A script for each break, within the run's folder; the run is told of each."""
    read = read_run(run)
    sites = [site for site in digest(read).sites if site.because]
    here = LogFiles(program.script if program is not None else "", read.header.root, folders)
    end = time.monotonic() + _MOST_S
    written, stock, missing, own = [], [], [], 0
    for number, site in enumerate(sites, 1):
        place = f"{Path(site.file).name}:{site.line}"
        if time.monotonic() > end:
            written.append(ReproWritten(site.because[0], reason=_NO_TIME))
            missing.append((place, _NO_TIME))
            continue
        note(f"repro {number} of {len(sites)}")
        if _shows_in_dynamo(site, read):
            made, why = _write(site, run / REPROS, program, here)
        else:  # A run of the program here would be no use.
            why = DEVICE_RULES[site.rule or ""].no_repro
            made = write_stock_repro(site, run / REPROS, why)
        own += made.path is not None and not why
        if made.path is not None and why:
            stock.append((place, f"{why}; unverified: {made.reason}" if made.reason else why))
        elif made.path is None:
            missing.append((place, made.reason))
        inside = f"{REPROS}/{made.path.name}" if made.path is not None else ""
        written.append(ReproWritten(site.because[0], inside, made.reason))
    append_bodies(run, written)
    return WrittenRepros(own, tuple(stock), tuple(missing))


def _write(
    site: BreakFinding, folder: Path, program: OwnProgram | None, here: LogFiles
) -> tuple[LogRepro, str]:
    """The repro, and why it is not of the user's program; empty where it is."""
    why = _NO_PROGRAM
    if program is None and here.has_another(site.file, site.line, site.source):
        why = f"{Path(site.file).name} in --source lacks the line that the log shows"
    if program is not None and importlib.util.find_spec("torch") is None:
        why = "torch is not installed here"
    elif program is not None:
        file = here.find(site.file, site.line, site.source)
        why = f"{Path(site.file).name} is not here with the line that the log shows"
        if file is not None:
            made = write_own(site, program, file, folder)
            if made.path is not None:
                return LogRepro(made.path, verified=True), ""
            why = made.reason
    return write_stock_repro(site, folder, why), why


_XLA_SCRIPT = '''\
"""Shows how torch_xla ends a graph: {kind}

The log has it at {place}:

    {source}

This is not that program, but a small one that ends a graph in the same way. {verified}

    PJRT_DEVICE=CPU python {name}    torch_xla on a CPU
    PJRT_DEVICE=TT python {name}     a Tenstorrent device

{exits}
"""

import sys
import traceback

import torch


def compiled():
    import torch_xla.debug.metrics as metrics

    data = metrics.metric_data("CompileTime")
    return data[0] if data else 0


def main():
    import torch_xla

    device = torch_xla.device()
    x = torch.ones(4, 8).to(device)
    torch_xla.sync()
    before = compiled()
{program}
    graphs = compiled() - before
    return graphs > 1, f"graphs that torch_xla compiled: {{graphs}}, 1 is enough."


{ending}

conclude_from(main, thing="graph break")
'''
_PROGRAMS = {
    "host-read": """\
    y = x * 2 + 1
    scale = y.abs().max().item()  # The value is needed here: a graph ends.
    y = y / scale
    torch_xla.sync()""",
    "operator": """\
    y = x * 2 + 1
    y = torch.special.bessel_j0(y)  # No lowering: it runs on the CPU, and a graph ends.
    y = y / 3
    torch_xla.sync()""",
    "inner-sync": """\
    y = x * 2 + 1
    torch_xla.sync()  # Within a step: a graph ends.
    y = y / 3
    torch_xla.sync()""",
    "changing-sync": """\
    for size in (1, 2, 3):
        y = x[:size] * 2 + 1  # Another shape in each step: another graph.
        torch_xla.sync()""",
}
_LIMIT_S = 120.0
"""For one check of a script. Chosen: room for torch's import and a compilation on a busy
machine."""
MISSING = "torch_xla is not installed here"


def _lazy_program(site: BreakFinding) -> str:
    """The program that ends graphs as this break does; empty where there is none."""
    if site.rule == "xla/host-read":
        return _PROGRAMS["operator" if _is_operator(site) else "host-read"]
    if site.rule == "xla/sync":
        inner = "Inside the model" in site.why
        return _PROGRAMS["inner-sync" if inner else "changing-sync"]
    return ""


def _shows_in_dynamo(site: BreakFinding, run: Run) -> bool:
    """Does the program on plain torch show it too, once it is compiled? A value that a module reads
    breaks Dynamo's graph as well; syncs, operators and training loops don't."""
    if site.rule not in DEVICE_RULES or site.rule == "log/unreported-break":
        return True
    if site.rule != "xla/host-read" or _is_operator(site):
        return False
    return any(in_module(event.stack) for event in run.events if event.id in site.because)


def _is_operator(site: BreakFinding) -> bool:
    return "reads no value itself" in site.why


def _write_lazy(
    site: BreakFinding, path: Path, kind: str, place: str, source: str
) -> tuple[bool, str]:
    """Was it verified, and if it was not, why."""
    values = {
        "kind": kind,
        "place": place,
        "source": source or "(the log does not include the line)",
    }
    values |= {"program": _lazy_program(site), "name": path.name}
    values |= {"exits": exits("graph break"), "ending": ending_source()}
    if importlib.util.find_spec("torch_xla") is None:
        path.parent.mkdir(parents=True, exist_ok=True)
        text = _XLA_SCRIPT.format(verified=f"Unverified: {MISSING}.", **values)
        path.write_text(text, encoding="utf-8")
        return False, MISSING
    text = _XLA_SCRIPT.format(verified="Verified here on torch_xla.", **values)
    made = write_verified(path, text, timeout_s=_LIMIT_S)
    return made.path is not None, made.reason


@dataclass(frozen=True)
class Parts:
    """A program in parts."""

    prelude: str
    """Everything before the compiled call."""
    compiled: str
    """The expression that is compiled."""
    arguments: str
    """What it is called with, as written between the brackets."""


def example_parts(rule_id: str | None) -> list[Parts]:
    """The examples of a rule that can be taken apart; the plainest first."""
    for rule in plugins.discover(breaks, "RULE", BreakRule):
        if rule.id == rule_id:
            parts = [taken_apart(example.bad) for example in rule.examples]
            return [part for part in parts if part is not None]
    return []


def taken_apart(program: str) -> Parts | None:
    """None where the program is not of that form."""
    tree = ast.parse(program)
    named: dict[str, ast.expr] = {}
    for statement in tree.body:
        if not isinstance(statement, ast.Assign):
            continue
        target, compiled = statement.targets[0], _compiled(statement.value)
        if isinstance(target, ast.Name) and compiled is not None:
            named[target.id] = compiled
    for number, statement in enumerate(tree.body):
        call, compiled = _compiled_call(statement, named)
        if call is None or compiled is None:
            continue
        before = [node for node in tree.body[:number] if not _is_compilation(node)]
        arguments = [*map(ast.unparse, call.args)]
        arguments += [f"{word.arg}={ast.unparse(word.value)}" for word in call.keywords if word.arg]
        text = "\n".join(ast.unparse(ast.fix_missing_locations(node)) for node in before)
        return Parts(text, ast.unparse(compiled), ", ".join(arguments))
    return None


def _compiled_call(
    statement: ast.stmt, named: dict[str, ast.expr]
) -> tuple[ast.Call | None, ast.expr | None]:
    """The call of what is compiled, and what that is; it may stand in a `print`."""
    for node in ast.walk(statement) if isinstance(statement, (ast.Expr, ast.Assign)) else ():
        if isinstance(node, ast.Call):
            compiled = _compiled(node.func)
            if compiled is None and isinstance(node.func, ast.Name):
                compiled = named.get(node.func.id)
            if compiled is not None:
                return node, compiled
    return None, None


def _compiled(node: ast.expr) -> ast.expr | None:
    """What `torch.compile(...)` compiles."""
    if not isinstance(node, ast.Call) or not node.args:
        return None
    return node.args[0] if ast.unparse(node.func) == "torch.compile" else None


def _is_compilation(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Assign) and _compiled(statement.value) is not None


_SCRIPT = '''\
"""Shows graph break {gb}: {kind}

The log has it at {place}:

    {source}

This is not your program, but a small stock example that breaks for the same reason.{why}
{verified}

    python {name}            plain torch, backend eager
    python {name} openxla    torch_xla on a CPU
    python {name} tt         a Tenstorrent device

{exits}
"""

import sys
import traceback

{prelude}

BACKEND = sys.argv[1] if len(sys.argv) > 1 else "eager"
EXPECTED = {expected!r}


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = {compiled}

    def forward(self, *args, **kwargs):
        return self.inner(*args, **kwargs)


def device():
    if BACKEND not in ("tt", "openxla"):
        return torch.device("cpu")
    import torch_xla
    import torch_xla.runtime as xr

    xr.set_device_type("TT" if BACKEND == "tt" else "CPU")
    return torch_xla.device()


def arguments(*args, **kwargs):
    return args, kwargs


def main():
    place = device()
    model = Model().to(place)
    given = arguments({arguments})
    args, kwargs = torch.utils._pytree.tree_map_only(torch.Tensor, lambda t: t.to(place), given)
    model.compile(backend=BACKEND)
    model(*args, **kwargs)

    torch._dynamo.reset()
    # Not fullgraph=True: it changes what Dynamo captures.
    try:
        with torch._dynamo.error_on_graph_break(True):
            torch.compile(model.forward, backend=BACKEND)(*args, **kwargs)
    except Exception as error:
        if EXPECTED not in str(error):
            raise
        return True, f"Dynamo reports {{EXPECTED!r}}."
    return False, "Dynamo reports none."


{ending}

conclude_from(main, thing="graph break")
'''
_HERE = "Verified to break here on plain torch; openxla and tt were not available."
_NOT_HERE = "Unverified: torch is not installed here."


@dataclass(frozen=True)
class LogRepro:
    """The repro of one break, or why there is none."""

    path: Path | None = None
    verified: bool = False
    reason: str = ""


def write_stock_repro(site: BreakFinding, folder: Path, why: str = "") -> LogRepro:
    """The first example that shows the same kind of break; `why` it is not the user's program."""
    if site.rule in DEVICE_RULES:
        return _of_device(site, folder)
    candidates = example_parts(site.rule)
    if not candidates:
        reason = f"there is no tested example for {site.gb_id or site.gb_type}"
        return LogRepro(reason=reason)
    path = folder / file_name(site)
    if importlib.util.find_spec("torch") is None:
        return _unverified(site, path, candidates[0], why)
    reason = ""
    for parts in candidates:
        made = write_verified(path, _text(site, parts, path.name, _HERE, why), timeout_s=_LIMIT_S)
        if made.path is not None:
            return LogRepro(made.path, verified=True)
        reason = made.reason
    return LogRepro(reason=reason)


def _of_device(site: BreakFinding, folder: Path) -> LogRepro:
    """Of a break that Dynamo on plain torch does not show."""
    if not _lazy_program(site):
        return LogRepro(reason=DEVICE_RULES[site.rule or ""].no_repro)
    path = folder / file_name(site).replace("break_", f"{site.category}_".replace("-", "_"), 1)
    texts = (site.gb_type, f"{site.file}:{site.line}", site.source)
    verified, reason = _write_lazy(site, path, *map(one_line, texts))
    written = path if path.is_file() else None
    return LogRepro(written, verified=verified, reason=reason)


def _unverified(site: BreakFinding, path: Path, parts: Parts, why: str) -> LogRepro:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_text(site, parts, path.name, _NOT_HERE, why), encoding="utf-8")
    return LogRepro(path, reason="torch is not installed here")


def _text(site: BreakFinding, parts: Parts, name: str, verified: str, why: str) -> str:
    return _SCRIPT.format(
        **break_words(site),
        verified=verified,
        why=f"\nYour program could not be used: {one_line(why)}." if why else "",
        name=name,
        prelude=parts.prelude,
        compiled=parts.compiled,
        arguments=parts.arguments,
        expected=site.gb_type,
        exits=exits("graph break"),
        ending=ending_source(),
    )
