"""What `logs --script` hands out: the script, what is in it, and how it went by itself."""

from __future__ import annotations

from dataclasses import dataclass

from compilescope.repair.delivery.script_proof import Proof


@dataclass(frozen=True)
class LoggedScript:
    """The script for a log, and what it does."""

    path: str | None = None
    """None: there was nothing to put into a script, or it did not hold."""
    command: str = ""
    done: tuple[str, ...] = ()
    """In the script and verified."""
    unverified: tuple[str, ...] = ()
    """In the script and unverified."""
    left: tuple[str, ...] = ()
    """To do by hand."""
    where: str = ""
    """Where `done` was verified."""
    reason: str = ""
    """Why nothing, or not all of it, could be verified; why there is no script."""
    proof: Proof | None = None
    """How the script went by itself; None where it cannot run here."""

    @property
    def verified(self) -> bool:
        """All of it, and the script by itself."""
        ran = self.proof is not None and self.proof.verdict == "verified"
        return self.path is not None and ran and not self.unverified
