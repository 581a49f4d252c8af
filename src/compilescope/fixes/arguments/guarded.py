"""What a failed guard says of a value: its size, how it changed, all that it was seen to be."""

from __future__ import annotations

from collections.abc import Iterator

from compilescope.findings.compile_ids import frame_number
from compilescope.findings.recompiles import RecompileFinding
from compilescope.fixes.compilation.run_index import index_of
from compilescope.fixes.subject import Subject
from compilescope.model.bodies import CacheEntryMiss, Recompile
from compilescope.source.refusals import NotMeant, Refused
from compilescope.texts import whole_number

_SIZE = ".size()["
_ELSEWHERE = ("G[", "___", "self.", "fn.")
"""What is not passed at the call."""


def cause_of(subject: Subject) -> RecompileFinding:
    """Of the value that failed. Raises `Refused` where the recompile is likely to go with a break:
    after one, the functions of a library are compiled one by one, and share their code."""
    found = subject.recompile
    if found is None:
        raise NotMeant("the guard that failed is unknown")
    if subject.program.digest.sites and not subject.program.is_own(found.compiled.file):
        raise Refused("this recompile may go away once the graph breaks are fixed")
    return found


def check_no_parameter(subject: Subject) -> None:
    """Raises `Refused` where sizes of parameters change too: those stay constants (torch 2.13)."""
    if any(guard.rule == "parameter-size" for guard in subject.guards):
        raise Refused("the size of a parameter changes with it and stays constant")


def size_of(subject: Subject) -> tuple[str, int]:
    """(tensor, dimension). Raises `Refused` where the guard is about something else."""
    text = cause_of(subject).subject
    tensor, _, rest = text.rpartition(_SIZE)
    dimension = whole_number(rest[:-1])
    if not tensor or not rest.endswith("]") or dimension is None or ", " in tensor:
        raise NotMeant(f"`{text}` is not one size of one tensor")
    return tensor, dimension


def sizes_with(subject: Subject, dim: int) -> list[str]:
    """The tensor whose size it is, and the others whose size in the same dimension changed with
    it: marked alone, one would be a constant again where the code needs both to be equal."""
    cause = cause_of(subject)
    change = (cause.expected, cause.actual)
    found = [size_of(subject)[0]]
    for other in subject.guards:
        tensor, ends, rest = other.subject.rpartition(_SIZE)
        if ends and rest == f"{dim}]" and (other.expected, other.actual) == change:
            found.append(tensor)
    return [each for each in dict.fromkeys(found) if each == found[0] or _is_argument(each)]


def _is_argument(tensor: str) -> bool:
    return not tensor.startswith(_ELSEWHERE) and "(" not in tensor and ", " not in tensor


def check_may_vary(subject: Subject) -> None:
    """Raises `Refused` where the value became a constant again although Dynamo had seen it change:
    from the second compilation on it lets such values vary by itself, and what it then made a
    constant all the same would be one under `dynamic=True` too."""
    cause = cause_of(subject)
    changed: dict[str, int] = {}
    """By Dynamo's number of the code: the compilation for which the value was first another."""
    for event in subject.program.run.events_with(cause.because):
        body = event.body
        if not isinstance(body, Recompile):
            continue
        failing = [
            compilation_number(each)
            for entry in body.entries
            if any(failed.subject == cause.subject for failed in entry.failed)
            for each in (entry.compile_id, *((entry.newest,) if _is_first(cause, entry) else ()))
        ]
        code = frame_number(event.compile_id or "")
        if failing and code not in changed:
            changed[code] = compilation_number(event.compile_id or "")
        elif failing and max(failing) >= changed[code]:
            raise Refused(f"Dynamo keeps `{cause.subject}` constant even after it changed")


def _is_first(cause: RecompileFinding, entry: CacheEntryMiss) -> bool:
    """Of the entries that are folded into one, the first failed guard alone is known."""
    return entry.folded > 0 and entry.failed[0].subject == cause.subject


def compilation_number(compile_id: str) -> int:
    """`3` of `0/3_1`."""
    text = compile_id.rpartition("/")[2].partition("_")[0]
    return whole_number(text) or 0


def other_sizes(subject: Subject) -> Iterator[tuple[str, int, set[int]]]:
    """(tensor, dimension, numbers seen) of the other sizes of arguments that failed with it."""
    cause = cause_of(subject)
    for other in subject.guards:
        tensor, ends, rest = other.subject.rpartition(_SIZE)
        dimension = whole_number(rest[:-1])
        if not ends or dimension is None or not _is_argument(tensor):
            continue
        if other.subject != cause.subject:
            yield tensor, dimension, numbers_seen(subject, other)


def numbers_seen(subject: Subject, cause: RecompileFinding | None = None) -> set[int]:
    """Every whole number that failed the guard or that it was made for."""
    cause = cause or cause_of(subject)
    place = cause.compiled
    seen = index_of(subject.program.run).values_seen(place.file, place.line)
    return {
        int(text)
        for text in seen.get(cause.subject, ())
        if whole_number(text.removeprefix("-")) is not None
    }
