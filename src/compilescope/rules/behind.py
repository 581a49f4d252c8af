"""What made a function eager, as far as the digest tells: a break, recompiles, a failure.

A function that none of them explains is a cause of its own.
"""

from __future__ import annotations

from compilescope.model.stack import origin_of
from compilescope.rules.digest import Digest
from compilescope.rules.eager import EagerFrame
from compilescope.rules.failures import Failure
from compilescope.rules.recompiles import RecompiledFrame
from compilescope.rules.sites import Site


def told_elsewhere(frame: EagerFrame, digest: Digest) -> bool:
    """Is it eager for a reason that a break, a recompile or a failure tells already?"""
    return bool(
        sites_behind(frame, digest)
        or recompiles_behind(frame, digest)
        or failures_behind(frame, digest)
    )


def sites_behind(frame: EagerFrame, digest: Digest) -> list[Site]:
    if frame.cause != "graph-break":
        return []
    place = (frame.file, frame.line, frame.function)
    # Where torch wrote the code, the eager function is shown as the user's call of it.
    return [
        site
        for site in digest.sites
        if site.gb_type == frame.reason
        and any(
            (code.file, code.line, code.function) == place or origin_of(code.file) == "torch"
            for code in site.gave_up
        )
    ]


def recompiles_behind(frame: EagerFrame, digest: Digest) -> list[RecompiledFrame]:
    if frame.cause != "recompile-limit":
        return []
    return [
        again
        for again in digest.recompiles
        if again.limit_hit and (again.file, again.function) == (frame.file, frame.function)
    ]


def failures_behind(frame: EagerFrame, digest: Digest) -> list[Failure]:
    # A backend may also decline a graph without an error; then the function is all there is.
    if frame.cause not in ("backend", "error"):
        return []
    return [
        failure
        for failure in digest.failures
        if failure.suppressed and (failure.file, failure.function) == (frame.file, frame.function)
    ]
