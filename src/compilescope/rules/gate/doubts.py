"""What makes the counts of a run doubtful: a gate then cannot tell, a baseline is not written."""

from __future__ import annotations

import signal

import msgspec

from compilescope.rules.digest import Digest


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
    found = _about_the_program(digest)
    if digest.torch is None:
        found.append(Doubt("compiled", "none of the program's processes imported torch"))
    elif not (digest.graphs or digest.sites or digest.failures):
        # Functions that ran eagerly, as where torch.compile is switched off, prove nothing.
        found.append(Doubt("compiled", "nothing was compiled"))
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
