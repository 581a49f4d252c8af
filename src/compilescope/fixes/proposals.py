"""What fixes propose for one subject, and why the others do not."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field

from compilescope.fixes.catalogue import fixes_for
from compilescope.fixes.fix import Fix
from compilescope.fixes.patch import NotMeant, Patch, Refused
from compilescope.fixes.subject import Subject

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Proposals:
    """In the order in which the fixes would be tried."""

    made: list[tuple[Fix, Patch]] = field(default_factory=list)
    refused: list[tuple[Fix, Refused]] = field(default_factory=list)

    @property
    def reason(self) -> Refused | None:
        """The refusal that matters: of the first fix that fits but for one thing."""
        near = (refusal for _, refusal in self.refused if not isinstance(refusal, NotMeant))
        return next(near, None)


def proposals_for(subject: Subject, *, most: int) -> Proposals:
    """The first `most` that fixes make."""
    found = Proposals()
    for fix, answer in _answers(subject):
        if isinstance(answer, Refused):
            found.refused.append((fix, answer))
            continue
        found.made.append((fix, answer))
        if len(found.made) >= most:
            break
    return found


def _answers(subject: Subject) -> Iterator[tuple[Fix, Patch | Refused]]:
    for fix in fixes_for(subject):
        try:
            yield fix, fix.propose(subject)
        except Refused as refusal:
            yield fix, refusal
        except Exception:  # A fix is a plugin: a fault in one must not take a report down.
            log.debug("fix %s failed on %s", fix.id, subject.finding.title, exc_info=True)
            yield fix, NotMeant(f"the fix {fix.id} failed here")
