"""What made a function eager, as far as the digest tells: a break, recompiles, a failure.

A function that none of them explains is a cause of its own.
"""

from __future__ import annotations

from compilescope.analysis.digest import Digest
from compilescope.findings.breaks import BreakFinding
from compilescope.findings.eager import EagerFinding
from compilescope.findings.failures import FailureFinding
from compilescope.findings.recompiles import RecompiledFrame
from compilescope.model.stack import origin_of

_Key = tuple[object, ...]


class EagerCauses:
    """The causes of a digest, found by what an eager function says of itself.

    Made once for all of its functions: a run may have thousands of them, and as many causes.
    """

    def __init__(self, digest: Digest) -> None:
        self._sites: dict[_Key, dict[int, BreakFinding]] = {}
        for number, site in enumerate(digest.sites):
            for key in _gave_up(site):
                self._sites.setdefault(key, {})[number] = site
        self._recompiles: dict[_Key, list[RecompiledFrame]] = {}
        for again in digest.recompiles:
            if again.limit_hit:
                self._recompiles.setdefault((again.file, again.function), []).append(again)
        self._failures: dict[_Key, list[FailureFinding]] = {}
        for failure in digest.failures:
            if failure.suppressed:
                self._failures.setdefault((failure.file, failure.function), []).append(failure)

    def is_known(self, frame: EagerFinding) -> bool:
        """Is it eager for a reason that a break, a recompile or a failure tells already?"""
        return bool(
            any(key in self._sites for key in _break_keys(frame))
            or self.recompiles(frame)
            or self.failures(frame)
        )

    def sites(self, frame: EagerFinding) -> list[BreakFinding]:
        """In the digest's order."""
        found: dict[int, BreakFinding] = {}
        for key in _break_keys(frame):
            found |= self._sites.get(key, {})
        return [found[number] for number in sorted(found)]

    def recompiles(self, frame: EagerFinding) -> list[RecompiledFrame]:
        if frame.cause != "recompile-limit":
            return []
        return self._recompiles.get((frame.file, frame.function), [])

    def failures(self, frame: EagerFinding) -> list[FailureFinding]:
        # A backend may also decline a graph without an error; then the function is all there is.
        if frame.cause not in ("backend", "error"):
            return []
        return self._failures.get((frame.file, frame.function), [])


def _gave_up(site: BreakFinding) -> list[_Key]:
    """Where torch wrote the code, the eager function is shown as the user's call of it."""
    return [
        (site.gb_type,)
        if origin_of(code.file) == "torch"
        else (site.gb_type, code.file, code.line, code.function)
        for code in site.gave_up
    ]


def _break_keys(frame: EagerFinding) -> list[_Key]:
    if frame.cause != "graph-break":
        return []
    return [(frame.reason,), (frame.reason, frame.file, frame.line, frame.function)]
