"""Why a run records no torch: no process imported it, or none could be watched.

One sentence, which every view shows; empty for a run that has torch in it.
"""

from __future__ import annotations

from compilescope.model.run import Run

NONE_IMPORTED = "No process of this program imported torch: there was nothing to record."


def without_torch(run: Run) -> str:
    """One sentence for a run that records no torch; empty for all others."""
    if run.torch_version is not None:
        return ""
    seen = run.presence
    if seen is None:
        return NONE_IMPORTED  # A log, or recorded by an earlier version.
    if seen.failed:
        return f"torch was imported, but nothing could be recorded: {_sentence(seen.failed[0])}"
    if seen.torch:
        return "torch was imported, but nothing was compiled."
    main = run.header.main_pid
    if main is not None and main not in seen.started:
        return (
            "Whether the program imported torch is unknown: compilescope could not watch its "
            "process. Python ignores PYTHONPATH with -I, -E or -S."
        )
    silent = seen.started - seen.ended
    if silent and not run.live and run.header.signal is None:
        return (
            "Whether the program imported torch is unknown: process "
            f"{min(silent)} was replaced by another program, killed, or left with os._exit."
        )
    return NONE_IMPORTED


def _sentence(reason: str) -> str:
    return reason if reason.endswith(".") else f"{reason}."
