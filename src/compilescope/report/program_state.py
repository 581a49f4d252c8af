"""What a report says of the program itself: why it recorded no compilation and what its reader can
do about that; that it ended early, or still runs.
"""

from __future__ import annotations

from compilescope.knowledge.analysis.digest import Digest
from compilescope.knowledge.analysis.program_end import NONE_IMPORTED, ProgramEnd
from compilescope.record.bodies import CompiledBefore, CompiledFunction, HookUnavailable
from compilescope.report.blocks import Block, Span, Style, Words, note, prose, words
from compilescope.report.places import count
from compilescope.report.section import Reading

_MOST_NAMES = 3
"""Chosen: a sentence with three names can still be read."""
_FORCED = "force_eager"


def nothing_compiled(reading: Reading) -> Words:
    """The verdict on a record in which nothing was compiled and nothing failed."""
    before = [
        function
        for _, body in reading.run.of(CompiledBefore)
        for function in body.functions
        if not body.dropped
    ]
    start = Span("Nothing was compiled", "warn")
    if before:
        return (start, Span(" while this was captured.", "warn"), *prose(f" {_known(before)}"))
    return (start, Span(".", "warn"), *prose(f" {_never(reading)}"))


def dropped_note(reading: Reading) -> list[Block]:
    """What compiles again because this was explained."""
    dropped = [
        each
        for _, body in reading.run.of(CompiledBefore)
        for each in body.functions
        if body.dropped
    ]
    if not dropped:
        return []
    again = "compiles" if len(_names(dropped)) == 1 else "compile"
    return [note(f"{_listed(dropped)} {again} again on the next call.")]


def before_note(reading: Reading) -> list[Block]:
    """What a program that began to record by itself had compiled until then."""
    before = [
        each
        for _, body in reading.run.of(CompiledBefore)
        for each in body.functions
        if each.compilations
    ]
    if not reading.run.header.automatic or not before:
        return []
    were, are = ("was", "is") if len(_names(before)) == 1 else ("were", "are")
    return [
        note(
            f"{_listed(before)} {were} compiled before the program imported a compilescope "
            f"backend, and {are} not part of this run."
        )
    ]


def _known(before: list[CompiledFunction]) -> str:
    compiled = [each for each in before if each.compilations]
    if not compiled:
        return (
            "Either no compiled function was called, or Dynamo fell back to eager before this: it "
            f"has already traced {_listed(before)}. If so, {_ANEW}"
        )
    were = "was" if len(_names(compiled)) == 1 else "were"
    times = count(sum(each.compilations for each in compiled), "compilation")
    return (
        f"{_listed(compiled)} {were} compiled before ({times} in this process), and "
        f"compiled code runs without compiling again; {_ANEW}"
    )


_ANEW = (
    "`torch.compiler.reset()` before the capture makes it compile again, and so does "
    "`compilescope.explain(f)(...)`."
)


def _never(reading: Reading) -> str:
    if _FORCED in reading.digest.stances:
        return f"`torch.compiler.set_stance({_FORCED!r})` was active: calls under it run eagerly."
    if reading.reader == "command line":
        return (
            "The program never called a compiled function; --compile-all compiles its outermost "
            "modules."
        )
    unknown = any(body.hook == "compiled-before" for _, body in reading.run.of(HookUnavailable))
    if unknown:
        return (
            "Either no compiled function was called, or it was compiled before: this version of "
            f"torch doesn't say which. If it was, {_ANEW}"
        )
    return "No compiled function was called; compile one first: `model = torch.compile(model)`."


def _names(functions: list[CompiledFunction]) -> list[str]:
    return list(dict.fromkeys(f"`{each.function}`" for each in functions))


def _listed(functions: list[CompiledFunction]) -> str:
    names = _names(functions)
    shown, rest = names[:_MOST_NAMES], len(names) - _MOST_NAMES
    if rest > 0:
        return f"{', '.join(shown)} and {count(rest, 'other function')}"
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else shown[0]


# What a report says of a program that ended early or still runs, and in which style.


def nothing_before(digest: Digest) -> Words | None:
    """The verdict on a program that ended early, or goes on, and compiled nothing; else None."""
    ended = digest.ended
    if ended.in_order and ended.how != "running":
        return None
    when = "so far" if ended.how == "running" else "before that"
    if digest.no_torch not in ("", NONE_IMPORTED):
        return words(Span(digest.no_torch, "warn"))
    if digest.torch is None:
        return words(Span(f"No process imported torch {when}.", "warn"))
    return words(Span(f"Nothing was compiled {when}.", "warn"))


def ended_style(ended: ProgramEnd) -> Style:
    if ended.how == "running":
        return "warn"
    return "plain" if ended.in_order else "bad"
