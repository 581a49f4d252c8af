"""Reasons to distrust the counts of a run. With one, a gate says "unknown" instead of "pass".

Nor is a baseline written then: it would accept what nobody has counted.
"""

from __future__ import annotations

import signal

import msgspec

from compilescope.knowledge.analysis.digest import Digest
from compilescope.knowledge.analysis.program_end import NONE_IMPORTED


class Doubt(msgspec.Struct, frozen=True):
    """One reason why less may have been seen than there was."""

    name: str
    message: str


# What a torch without this hook does not let us count.
_BLIND = {
    "graph-breaks": ("breaks", "eager", "baseline"),
    "compile-times": ("recompiles", "failures", "baseline"),
    "recompiles": ("recompiles", "baseline"),
    "frame-skips": ("eager",),
    "suppressed-errors": ("eager",),
    "structured-trace": ("graphs",),
}


def doubts(digest: Digest) -> list[Doubt]:
    """About the run as a whole."""
    if digest.jobs:
        return _about_the_sweep(digest)
    if digest.only_compares:
        return _about_the_record(digest)
    if digest.benchmarks:
        return [*_about_the_benchmark(digest), *_about_the_record(digest)]
    found = _about_the_program(digest)
    if digest.torch is None and not (digest.graphs or digest.sites):
        known = digest.no_torch in ("", NONE_IMPORTED)
        why = "none of the program's processes imported torch" if known else digest.no_torch
        found.append(Doubt("compiled", why.rstrip(".")))
    elif not (digest.graphs or digest.sites or digest.failures):
        # Functions that ran eagerly, as where torch.compile is switched off, prove nothing.
        found.append(Doubt("compiled", "nothing was compiled"))
    elif _unexplained(digest):
        told = f"{digest.graphs} graphs instead of {digest.regions}"
        found.append(Doubt("compiled", f"{told}, and the log does not say why"))
    return [*found, *_about_the_record(digest)]


def _unexplained(digest: Digest) -> bool:
    """Of a log: more graphs than needed, and not one cause that could be counted."""
    is_log = digest.command[:2] == ("compilescope", "logs")
    known = digest.sites or digest.recompiles or digest.failures or digest.eager_frames
    return is_log and digest.graphs > digest.regions and not known


def _about_the_record(digest: Digest) -> list[Doubt]:
    found = []
    if digest.live:
        found.append(Doubt("record", "the run is still in progress"))
    # A signal is told of above.
    if digest.cut_short and digest.signal is None:
        found.append(Doubt("record", f"the recording is truncated: {digest.cut_short_reason}"))
    if digest.unknown_events:
        kinds = "of a kind unknown to this version of compilescope"
        found.append(Doubt("record", f"{_times(digest.unknown_events, 'event')} {kinds}"))
    if digest.tool_faults:
        times = _times(digest.tool_faults, "time")
        found.append(Doubt("record", f"compilescope failed {times} inside the program"))
    return found


def blind_spot(digest: Digest, check: str) -> str:
    """Why what `check` looks at could not all be counted; empty where it could."""
    if check in ("violations", "differences"):
        return (digest.constraints if check == "violations" else digest.numbers).doubt
    if digest.only_compares:
        return "a comparison of numbers does not record what was compiled"
    for hook in digest.unavailable:
        if check in _BLIND.get(hook.hook, ()):
            return f"torch {digest.torch} does not report {hook.loses}"
    if check == "breaks" and digest.hidden_breaks_possible and not digest.sites:
        return "no graph break was found, but functions that ran eagerly may hide some"
    if check == "eager" and digest.unexplained_skips:
        frames = _times(len(digest.unexplained_skips), "function")
        return f"torch skipped {frames} without giving a reason"
    if check == "eager" and "force_eager" in digest.stances:
        return "calls under set_stance('force_eager') are not recorded"
    return ""


def _about_the_sweep(digest: Digest) -> list[Doubt]:
    """Jobs that could not be built are judged with the baseline, which may accept them."""
    words = {
        "cancelled": "not finished: the sweep was stopped",
        "lost": "lost with the machine",
    }
    found = []
    for state, told in words.items():
        number = sum(job.state == state for job in digest.jobs)
        if number:
            found.append(Doubt(state, f"{_times(number, 'job')} {told}"))
    if not any(job.graphs or job.causes for job in digest.jobs):
        found.append(Doubt("compiled", "no job compiled anything"))
    return found


def _about_the_benchmark(digest: Digest) -> list[Doubt]:
    """Each row says itself what could not be measured; models that it never came to have none."""
    stopped = not digest.live and bool(digest.ended.text)
    return [Doubt("program", "the benchmark was stopped before its end")] if stopped else []


def _about_the_program(digest: Digest) -> list[Doubt]:
    if digest.signal is not None:
        return [Doubt("program", f"the program was terminated by {_signal_name(digest.signal)}")]
    if digest.exit_status:
        return [Doubt("program", f"the program ended with status {digest.exit_status}")]
    return []


def _signal_name(number: int) -> str:
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"


def _times(number: int, one: str) -> str:
    return f"{number} {one if number == 1 else one + 's'}"
