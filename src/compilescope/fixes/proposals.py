"""Asks every fix for a patch for one subject: the patches proposed, and why other fixes refuse."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import msgspec

from compilescope.fixes.catalogue import each_fix_for
from compilescope.fixes.fix import Fix
from compilescope.fixes.patch import Patch
from compilescope.fixes.subject import Subject
from compilescope.source.refusals import NotMeant, Refused

log = logging.getLogger(__name__)


class Proposals(msgspec.Struct, frozen=True):
    """In the order in which the fixes would be tried."""

    made: list[tuple[Fix, Patch]] = msgspec.field(default_factory=list)
    refused: list[tuple[Fix, Refused]] = msgspec.field(default_factory=list)

    @property
    def reason(self) -> Refused | None:
        """The refusal that matters: of the first fix that fits but for one thing."""
        near = (refusal for _, refusal in self.refused if not isinstance(refusal, NotMeant))
        return next(near, None)


def proposals_for(subject: Subject, *, most: int) -> Proposals:
    """The first `most` that fixes make. Where no file has a text that could be changed, none can:
    then it ends with the refusal that matters."""
    found = Proposals()
    hopeless = not subject.program.has_source
    for fix, answer in _answers(subject):
        if isinstance(answer, Refused):
            found.refused.append((fix, answer))
            if hopeless and found.reason is not None:
                break
            continue
        found.made.append((fix, answer))
        if len(found.made) >= most:
            break
    return found


def _answers(subject: Subject) -> Iterator[tuple[Fix, Patch | Refused]]:
    for fix in each_fix_for(subject):
        try:
            yield fix, fix.propose(subject)
        except Refused as refusal:
            yield fix, refusal
        except Exception:  # A fix is a plugin: a fault in one must not take a report down.
            log.debug("fix %s failed on %s", fix.id, subject.finding.title, exc_info=True)
            yield fix, NotMeant(f"the fix {fix.id} failed here")
