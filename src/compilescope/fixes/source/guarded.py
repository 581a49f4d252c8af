"""What a failed guard says of a value: its size, how it changed, all that it was seen to be."""

from __future__ import annotations

from compilescope.fixes.patch import NotMeant, Refused
from compilescope.fixes.subject import Subject
from compilescope.model.bodies import Recompile
from compilescope.model.stack import shown_code
from compilescope.rules.recompiles import RecompileCause

_SIZE = ".size()["


def cause_of(subject: Subject) -> RecompileCause:
    """Of the value that failed. Raises `Refused` where the recompile is likely to go with a break:
    after one, the functions of a library are compiled one by one, and share their code."""
    if subject.cause is None or subject.frame is None:
        raise NotMeant("the guard that failed is not known")
    if subject.program.digest.sites and not subject.program.is_own(subject.frame.file):
        raise Refused("the graph breaks come first: this may go with them")
    return subject.cause


def check_no_parameter(subject: Subject) -> None:
    """Raises `Refused` where sizes of parameters change too: those stay constants (torch 2.13)."""
    causes = subject.frame.causes if subject.frame is not None else ()
    if any(cause.rule == "parameter-size" for cause in causes):
        raise Refused("the size of a parameter changes with it, and stays a constant")


def size_of(subject: Subject) -> tuple[str, int]:
    """(tensor, dimension). Raises `Refused` where the guard is about something else."""
    text = cause_of(subject).subject
    tensor, _, rest = text.rpartition(_SIZE)
    if not tensor or not rest.endswith("]") or not rest[:-1].isdigit() or ", " in tensor:
        raise NotMeant(f"`{text}` is not one size of one tensor")
    return tensor, int(rest[:-1])


def numbers_seen(subject: Subject) -> set[int]:
    """Every whole number that failed the guard or that it was made for."""
    frame, wanted = subject.frame, cause_of(subject).subject
    found: set[int] = set()
    for event, body in subject.program.run.of(Recompile):
        code = shown_code(body.frame, event.stack)
        if frame is None or (code.file, code.line) != (frame.file, frame.line):
            continue
        for entry in body.entries:
            for failed in entry.failed:
                if failed.subject == wanted:
                    for text in (failed.expected, failed.actual):
                        if text.lstrip("-").isdigit():
                            found.add(int(text))
    return found
