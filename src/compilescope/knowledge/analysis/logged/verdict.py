"""How complete a log is: what it holds, what it lacks, and which command would tell more."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from pathlib import PurePosixPath

import msgspec

from compilescope.base.patterns import late
from compilescope.base.texts import whole_number
from compilescope.record import bodies
from compilescope.record.logged import FallbackOps, GraphCompiled, GraphExecuted, LogRead
from compilescope.record.run import Run
from compilescope.record.stack import Frame

_ASSIGNED = late(r"(?P<name>[A-Za-z_]\w*)=(?P<value>\S*)\s+")
_ENVIRONMENT = late(r"^(?P<root>/.*?)/lib/python3\.\d+/(?:site|dist)-packages/")
_SYSTEM = ("/usr", "/usr/local", "/opt/python")
_PACKED = (".xz", ".gz", ".zst", ".bz2")
_RUNNERS = ("pytest", "py.test")
_LOG = "model.log"
_TT_BUILD = (
    "cmake -G Ninja -B build -DCMAKE_BUILD_TYPE=Debug",
    "cmake --build build",
)
"""As tt-xla's own guide has it: `source venv/activate` comes first, in the checkout."""
_XLA_BACKENDS = {"openxla": "torch_xla", "tt": "tt-xla"}
_DYNAMO = "TORCH_LOGS=+dynamo"
_LOUDER = ("VERBOSE", "TRACE")
_NAMES_OPERATORS = "PT_XLA_DEBUG=1"
_WANTED: dict[str, tuple[tuple[str, str], ...]] = {
    "torch_xla": (
        ("PT_XLA_DEBUG_LEVEL=2", "each graph that torch_xla compiles, and what triggered it"),
    ),
    "tt-xla": (
        ("TTXLA_LOGGER_LEVEL=DEBUG", "each graph at every stage of the compiler"),
        ("XLA_HLO_DEBUG=1", "the Python lines that operations came from"),
    ),
}
"""System -> settings that show most, each with what it shows."""
_ALSO: dict[str, tuple[str, ...]] = {
    "torch_xla": (_NAMES_OPERATORS, "XLA_HLO_DEBUG=1"),
    "tt-xla": ("TTMLIR_RUNTIME_LOGGER_LEVEL=DEBUG", "PT_XLA_DEBUG_LEVEL=2"),
}
"""What is worth asking for with them, and no lack of a log."""


RELEASE = (
    "The log comes from a release build of tt-xla, which leaves out the plugin's debug messages. "
    "For those, rebuild with -DCMAKE_BUILD_TYPE=Debug."
)


class MissingSetting(msgspec.Struct, frozen=True):
    """A setting that was not on."""

    setting: str
    shows: str


class LogVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What a log holds and lacks."""

    sources: tuple[str, ...]
    formats: tuple[str, ...]
    flags: tuple[str, ...]
    build: str
    cut_head: bool
    cut_tail: bool
    interleaved: str
    unread: int
    systems: tuple[str, ...]
    """Who compiled: `torch`, `torch_xla`, `tt-xla`."""
    lacks: tuple[MissingSetting, ...]
    notes: tuple[str, ...]
    """Plain sentences, worst first."""
    at_least: bool
    """The number of graphs is a lower bound."""
    rerun: str
    """The command that would tell more; empty where nothing is missing."""
    prepare: tuple[str, ...] = ()
    """Commands to run before it: the environment, and a build that logs more."""


_TELLS_OF_GRAPHS = ("PT_XLA_DEBUG_LEVEL=2", "TTXLA_LOGGER_LEVEL=DEBUG")


def judge_log(run: Run) -> LogVerdict | None:
    """None for a run that was not read from logs."""
    logs = [body for _, body in run.of(LogRead)]
    if not logs:
        return None
    formats = _union(log.formats for log in logs)
    flags = _union(log.flags for log in logs)
    systems = _systems(run, formats)
    lacks = tuple(_lacks(run, systems, formats, flags))
    cut_head = any(log.cut_head for log in logs)
    cut_tail = any(log.cut_tail for log in logs)
    mixed = {log.interleaved for log in logs} - {""}
    interleaved = "ambiguous" if "ambiguous" in mixed else next(iter(mixed), "")
    unread = sum(log.unread for log in logs)
    broken = cut_head or cut_tail or interleaved == "ambiguous"
    # Whoever compiled last tells of the graphs: an XLA compiler, or Dynamo where there is none.
    compiler = {"torch_xla", "tt-xla"} & set(systems)
    telling = _TELLS_OF_GRAPHS if compiler else (_DYNAMO,)
    untold = any(lack.setting in telling for lack in lacks)
    earlier = _compiled_earlier(run, systems)
    build = next((log.build for log in logs if log.build), "")
    release = build == "release" and "tt-xla" in systems
    again = bool(lacks or broken or release or earlier or not formats)
    return LogVerdict(
        sources=tuple(log.source for log in logs),
        formats=formats,
        flags=flags,
        build=build,
        cut_head=cut_head,
        cut_tail=cut_tail,
        interleaved=interleaved,
        unread=unread,
        systems=systems,
        lacks=lacks,
        notes=tuple(_notes(formats, cut_head, cut_tail, interleaved, unread, release, earlier)),
        at_least=broken or untold or earlier > 0,
        rerun=_command_again(run, _settings(systems), interleaved) if again else "",
        prepare=tuple(_steps_before(run, systems, release=release)) if again else (),
    )


def _compiled_earlier(run: Run, systems: tuple[str, ...]) -> int:
    """Graphs of torch_xla's that run in the log and were compiled before it begins."""
    if "tt-xla" in systems:
        return 0  # Its plugin tells of graphs under other names.
    compiled = {body.hash for _, body in run.of(GraphCompiled)}
    return len({body.hash for _, body in run.of(GraphExecuted) if body.hash} - compiled)


def _settings(systems: tuple[str, ...]) -> list[str]:
    """All that tell something, missing or not: a command is run as it stands."""
    found = ["TORCH_LOGS=+dynamo,recompiles"]
    # A log of nothing does not tell whose it was: what another system asks for does no harm.
    for system in systems or tuple(_WANTED):
        found += [setting for setting, _ in _WANTED.get(system, ())]
        found += _ALSO.get(system, ())
    return list(dict.fromkeys(found))


def _union(groups: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(sorted({item for group in groups for item in group}))


def _systems(run: Run, formats: tuple[str, ...]) -> tuple[str, ...]:
    found = {"torch"} if {"torch-logs", "torch-trace"} & set(formats) else set()
    found |= {body.system for _, body in run.of(GraphCompiled)}
    if "tt-xla" in formats:
        found.add("tt-xla")
    # torch_xla's own lines come with tt-xla too: there they say what its plugin was asked.
    if "torch-xla" in formats and "tt-xla" not in found:
        found.add("torch_xla")
    for _, graph in run.of(bodies.GraphCaptured):
        if graph.backend in _XLA_BACKENDS and not {"torch_xla", "tt-xla"} & found:
            found.add(_XLA_BACKENDS[graph.backend])
    return tuple(sorted(found))


def _lacks(
    run: Run, systems: tuple[str, ...], formats: tuple[str, ...], flags: tuple[str, ...]
) -> Iterable[MissingSetting]:
    dynamo = "torch-trace" in formats or any(
        flag.startswith("TORCH_LOGS=") and "dynamo" in flag for flag in flags
    )
    if not dynamo:
        breaks = any("graph_breaks" in flag for flag in flags)
        shows = "" if breaks else "graph breaks, their reasons, and "
        yield MissingSetting(_DYNAMO, f"{shows}what each graph was compiled for")
    recompiles = any("recompiles" in flag for flag in flags) or "torch-trace" in formats
    if not recompiles and any(body.inferred for _, body in run.of(bodies.Recompile)):
        yield MissingSetting("TORCH_LOGS=+dynamo,recompiles", "the guards that failed")
    for system in systems:
        for setting, shows in _WANTED.get(system, ()):
            if not any(_covers(flag, setting) for flag in flags):
                yield MissingSetting(setting, shows)
    reads = any("access" in body.cause for _, body in run.of(GraphCompiled))
    if reads and _NAMES_OPERATORS not in flags and not run.count(FallbackOps):
        yield MissingSetting(_NAMES_OPERATORS, "the operators that have no lowering")


def _covers(flag: str, setting: str) -> bool:
    name, _, wanted = setting.partition("=")
    had, _, value = flag.partition("=")
    if had != name:
        # PT_XLA_DEBUG=1 is the older way to ask for both kinds of blocks.
        return name == "PT_XLA_DEBUG_LEVEL" and had == "PT_XLA_DEBUG"
    level, least = whole_number(value), whole_number(wanted)
    if level is not None and least is not None:
        return level >= least
    return value == wanted or _is_louder(value)


def _notes(
    formats: tuple[str, ...],
    cut_head: bool,
    cut_tail: bool,
    interleaved: str,
    unread: int,
    release: bool,
    earlier: int,
) -> Iterable[str]:
    if not formats:
        yield "It contains no output from torch.compile, torch_xla or tt-xla."
    if cut_head:
        yield "Its beginning is missing: earlier events are not counted."
    if earlier:
        graphs = "1 graph is" if earlier == 1 else f"{earlier} graphs are"
        yield f"{graphs} executed that it does not show being compiled: it begins later."
    if cut_tail:
        yield "Its end is missing: later events are not counted."
    if interleaved == "ambiguous":
        yield "Several processes wrote to it, and their lines can't be told apart."
    elif interleaved:
        yield "Several processes wrote to it; tags identify their lines."
    if unread:
        yield f"{unread} of its records or lines could not be read."
    if release:
        yield RELEASE


# The command that would write a fuller log, and what to do before it.
#
# As far as the log shows them: the program, its arguments, the environment it ran in, and the
# log's own name.


def _command_again(run: Run, settings: list[str], interleaved: str) -> str:
    asked = _merged(settings, [flag for _, body in run.of(LogRead) for flag in body.flags])
    logs = [body.source for _, body in run.of(LogRead)]
    shown = next((body.command for _, body in run.of(LogRead) if body.command), "")
    own, command = _split(shown or _from_stacks(run))
    asked |= {name: value for name, value in own.items() if name in asked and _is_louder(value)}
    kept = [f"{name}={value}" for name, value in own.items() if name not in asked]
    variables = " ".join([*(f"{name}={value}" for name, value in asked.items()), *kept])
    if interleaved == "ambiguous":
        # One file a rank: torchrun can do that itself.
        script = re.sub(r"^(?:\S*/)?(?:python[\d.]*|torchrun)\s+", "", command)
        return f"{variables} torchrun --redirects 3 --log-dir logs {script}"
    return f"{variables} {command} 2>&1 | tee {shlex.quote(_name(logs))}"


def _steps_before(run: Run, systems: tuple[str, ...], *, release: bool) -> Iterable[str]:
    """The environment to activate, and how to build for more messages."""
    if "tt-xla" in systems:
        yield "source venv/activate  # in your tt-xla checkout"
    else:
        root = next((root for root in map(_environment, _files(run)) if root), "")
        if root and "/envs/" in root:
            yield f"conda activate {shlex.quote(PurePosixPath(root).name)}"
        elif root:
            yield f"source {shlex.quote(root)}/bin/activate"
    if release:
        yield from _TT_BUILD


def _environment(file: str) -> str:
    found = _ENVIRONMENT.match(file)
    return found["root"] if found is not None and found["root"] not in _SYSTEM else ""


def _files(run: Run) -> Iterable[str]:
    return (frame.file for event in run.events for frame in event.stack)


def _merged(wanted: list[str], had: list[str]) -> dict[str, str]:
    """Variable -> value. What the log had on stays on."""
    asked = {name: value for name, _, value in (each.partition("=") for each in wanted)}
    for name, _, value in (each.partition("=") for each in had):
        if name == "TORCH_LOGS":
            parts = dict.fromkeys([*asked.get(name, "").split(","), *value.split(",")])
            loud = {part[1:] for part in parts if part.startswith("+")}
            asked[name] = ",".join(part for part in parts if part and part not in loud)
        elif name in asked and _is_louder(value):
            asked[name] = value
    return asked


def _is_louder(value: str) -> bool:
    """Than DEBUG, which is what is asked for."""
    return value.upper() in _LOUDER


def _split(command: str) -> tuple[dict[str, str], str]:
    """The variables that a command sets, and the rest of it."""
    own: dict[str, str] = {}
    command = command.removeprefix("env ")
    while found := _ASSIGNED.match(command):
        own[found["name"]] = found["value"]
        command = command[found.end() :].removeprefix("env ")
    return own, command


def _from_stacks(run: Run) -> str:
    """The program that the stacks begin in."""
    for event in run.events:
        main = next((f for f in event.stack if _is_main(f)), None)
        if main is None:
            continue
        if PurePosixPath(main.file).name not in _RUNNERS:
            return f"python {shlex.quote(main.file)}"
        test = next((f for f in event.stack if f.origin == "user" and f != main), None)
        return f"pytest {shlex.quote(test.file)}" if test is not None else "pytest"
    return "python your_script.py"


def _is_main(frame: Frame) -> bool:
    return frame.function == "<module>" and frame.origin == "user"


def _name(logs: list[str]) -> str:
    """The log's own; one of several, or one that came through a pipe, has none to use."""
    if len(logs) != 1 or logs[0] == "-":
        return _LOG
    path = PurePosixPath(logs[0].replace("\\", "/"))
    return (path.stem if path.suffix in _PACKED else path.name) or _LOG
