"""Runs the registry's examples under capture, in this process, and holds them to what they claim.

Each runs as a copy in a folder of its own, so that it is a user's program and its paths are short;
what the tool prints of a run is then the same on every machine.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import io
import logging
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import msgspec

from compilescope.base.errors import ToolError

if TYPE_CHECKING:
    from compilescope.apps.front import Capture
    from compilescope.knowledge.registry.cases import ExampleFile
    from compilescope.record.event import Event
    from compilescope.record.run import Run


_WIDTH = 80
"""Columns. Chosen: what a terminal has at least, so that the text is the same everywhere."""
_ADDRESS = re.compile(rb"\b0x[0-9a-fA-F]{6,}\b")


def explained(run: Run) -> str:
    """What `compilescope explain --all` prints of a run, without the run's name."""
    from compilescope.report.explanation import explanation
    from compilescope.report.render.terminal import to_text
    from compilescope.report.section import Reading

    reading = Reading(_neutral(run))
    document = explanation(reading, range(1, len(reading.causes) + 1))
    return to_text(document, width=_WIDTH, colour=False).partition("\n")[2].lstrip("\n")


def _neutral(run: Run) -> Run:
    """The run as on a machine whose Python lies in /usr, with the program in the current folder;
    without times, which differ from run to run, without the command and what called the example: it
    is part of no program, whoever runs it."""
    import msgspec

    from compilescope.record.bodies import CompilePhases, CompileTime, SourceSeen
    from compilescope.record.event import decode, encode
    from compilescope.record.run import Run

    callers = {
        frame.file
        for event in run.events
        for frame in event.stack[: _callers(event, run.header.root)]
    }
    changes = {f"{run.header.root}/": ""}
    changes |= {f"{prefix}/lib/": "/usr/lib/" for prefix in (sys.prefix, sys.base_prefix)}
    events = []
    for event in run.events:
        if isinstance(event.body, (CompileTime, CompilePhases)):
            continue
        if isinstance(event.body, SourceSeen) and event.body.file in callers:
            continue
        stack = event.stack[_callers(event, run.header.root) :]
        event = msgspec.structs.replace(event, stack=stack)
        line = _ADDRESS.sub(b"0x...", encode(event))
        for old, new in changes.items():
            line = line.replace(old.encode(), new.encode())
        events.append(decode(line))
    header = msgspec.structs.replace(run.header, root="", cwd="", command=())
    return Run(header, events, run.artifacts)


def _callers(event: Event, root: str) -> int:
    """How many frames of its stack, from the outermost on, are above the example."""
    own = (at for at, frame in enumerate(event.stack) if frame.file.startswith(f"{root}/"))
    return next(own, 0)


_WHOLE = ("generator", "recompile-limit")
_LIMIT = "Dynamo recompile limit exceeded"
# An error that is raised around a break has no id of its own, but PyTorch's link to the break's.
_LINK = re.compile(r"/(gb[0-9]{4})\.html")


@dataclasses.dataclass(frozen=True)
class ExampleRun:
    """What came of an example."""

    gb_id: str
    problems: tuple[str, ...]
    """What is not as the example claims; none where it is verified."""
    run: Run
    """The record of the form that breaks."""
    compared: bool = False
    """The fixed form gave what `f` gives in eager mode."""

    @property
    def verified(self) -> bool:
        return not self.problems

    @property
    def output(self) -> str:
        """What `compilescope explain` prints of the form that breaks."""

        return explained(self.run)


def run_example(example: ExampleFile) -> ExampleRun:
    """The form that breaks, and the fixed one where there is one."""
    with _program(example) as program:
        problems, run = _broken(example, program)
        compared = False
        if example.has_fixed:
            more, compared = _fixed(example, program)
            problems += more
        return ExampleRun(example.gb_id, tuple(problems), run, compared)


@dataclasses.dataclass
class _ExampleProgram:
    path: Path
    module: ModuleType


@contextlib.contextmanager
def _program(example: ExampleFile) -> Iterator[_ExampleProgram]:
    """The example, imported from a copy."""
    with tempfile.TemporaryDirectory(prefix="compilescope-example-") as folder, _silence():
        path = Path(folder).resolve() / example.path.name
        path.write_text(example.source, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        try:
            _, error = _call(spec.loader.exec_module, module)
            if error is not None:
                raise ToolError(f"The example of {example.gb_id} cannot be imported: {error}.")
            yield _ExampleProgram(path, module)
        finally:
            del sys.modules[path.stem]


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """What an example prints, logs or warns of is not ours to show."""
    logger = logging.getLogger("torch")
    level, quiet = logger.level, io.StringIO()
    logger.setLevel(logging.CRITICAL)
    try:
        with (
            contextlib.redirect_stdout(quiet),
            contextlib.redirect_stderr(quiet),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def _broken(example: ExampleFile, program: _ExampleProgram) -> tuple[list[str], Run]:
    """Exactly the id that it names, at exactly the line that it marks."""
    captured, _, error = _compiled(example, program, "f", "run", example.config)
    root = str(program.path.parent)
    run = captured.run
    run.header = msgspec.structs.replace(run.header, root=root)
    seen = captured.digest
    wanted = (example.gb_id, str(program.path), example.break_line)
    # A generator, or a function over the limit of recompiles, is given up without a break in it.
    given_up = (frame for frame in seen.eager_frames if frame.cause in _WHOLE)
    places: tuple[Any, ...] = (*seen.sites, *seen.failures, *given_up)
    found = {(_named(each, example.gb_id), each.file, each.line) for each in places}
    problems: list[str] = []
    if not found:
        problems.append("no graph break")
    elif wanted not in found:
        problems.append(f"{wanted[0]} was not reported at line {wanted[2]}")
    for gb_id, file, line in sorted(found - {wanted}, key=str):
        if gb_id in example.also:
            continue
        place = f"{Path(file).name}:{line}"
        problems.append(f"{gb_id} at {place}")
    # A failure is the form that some ids take; after a break the program goes on as in eager.
    failed = any(_named(each, example.gb_id) == example.gb_id for each in seen.failures)
    if error is not None and not failed:
        _, eager_error = _eager(program)
        if eager_error is None:
            problems.append(
                f"it raised {type(error).__name__} when compiled, but not in eager mode"
            )
    return problems, run


def _named(place: Any, wanted: str) -> str | None:
    """The id of a place; the wanted one where PyTorch's report wraps the break in it."""
    from compilescope.knowledge.registry.table import load_registry

    wrappers = getattr(place, "wrappers", ())
    if getattr(place, "cause", "") == "recompile-limit":
        wrappers = (_LIMIT,)
    ids = {entry.gb_id for each in wrappers for entry in load_registry().by_type(each)}
    linked = _LINK.search(getattr(place, "message", ""))
    if linked and not place.gb_id:
        return linked[1].upper()
    return wanted if wanted in ids else place.gb_id


def _fixed(example: ExampleFile, program: _ExampleProgram) -> tuple[list[str], bool]:
    """No break, and what `f` gives in eager mode, where it gives anything."""
    name = "fixed" if hasattr(program.module, "fixed") else "f"
    captured, result, error = _compiled(example, program, name, "run_fixed", example.fixed_config)
    seen = captured.digest
    lost: list[Any] = [*seen.sites, *seen.failures, *seen.eager_frames]
    problems = [
        f"the fixed form has {each.gb_id or each.title} at line {each.line}" for each in lost
    ]
    if error is not None:
        problems.append(f"the fixed form raised {type(error).__name__}: {error}")
    elif not seen.graphs:
        problems.append("the fixed form compiled nothing")
    wanted, eager_error = _eager(program)
    if error is None and eager_error is None and not _equal(result, wanted):
        problems.append("the fixed form's result differs from f's in eager mode")
    return problems, not problems and eager_error is None


def _compiled(
    example: ExampleFile, program: _ExampleProgram, name: str, special: str, config: dict[str, Any]
) -> tuple[Capture, Any, Exception | None]:
    """A call of the compiled function, or of the example's own special call."""
    import torch

    from compilescope.apps.front import capture
    from compilescope.instrument.torchapi.compilation.settings import dynamo_alone

    module = program.module
    with dynamo_alone(config):
        torch.manual_seed(0)
        with capture() as captured:
            if hasattr(module, special):
                result, error = _call(getattr(module, special))
            else:
                compiled = torch.compile(
                    getattr(module, name),
                    backend=example.backend,
                    fullgraph=example.fullgraph,
                )
                result, error = _call(compiled, *module.inputs())
    return captured, result, error


def _eager(program: _ExampleProgram) -> tuple[Any, Exception | None]:
    import torch

    from compilescope.instrument.torchapi.compilation.settings import dynamo_alone

    module = program.module
    with dynamo_alone({}):
        torch.manual_seed(0)
        if not hasattr(module, "run"):
            return _call(module.f, *module.inputs())
        with torch.compiler.set_stance("force_eager"):
            return _call(module.run)


def _call(function: Callable[..., Any], *args: Any) -> tuple[Any, Exception | None]:
    try:
        return function(*args), None
    # The border to a program: whatever it raises is part of what it shows.
    except Exception as error:
        return None, error


def _equal(one: Any, other: Any) -> bool:
    """Tensors by their values, what holds others by its items, the rest by `==`."""
    import torch

    if isinstance(one, (list, tuple)):
        same = isinstance(other, (list, tuple)) and len(one) == len(other)
        return same and all(map(_equal, one, other))
    if isinstance(one, torch.Tensor):
        try:
            torch.testing.assert_close(one, other, equal_nan=True)
        except (AssertionError, TypeError):
            return False
        return True
    return bool(one == other)
