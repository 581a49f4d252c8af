"""What strict mode raises."""

from __future__ import annotations

from collections.abc import Sequence
from types import FrameType

from compilescope.backends.checking import CheckedGraph, ConstraintViolation
from compilescope.backends.mock.wording import refusal_text
from compilescope.torchapi.compiling.refusals import BackendRefusal


class ConstraintError(BackendRefusal):
    """A device does not take a graph. The message names everything that it refuses.

    It is also a `BackendCompilerFailed`, as every error of a backend is to torch.
    """

    def __init__(
        self,
        checked: Sequence[CheckedGraph],
        *,
        backend: str,
        repro: str = "",
        repro_path: str | None = None,
        frame: FrameType | None = None,
    ) -> None:
        super().__init__(refusal_text(checked, repro), backend, frame)
        self.checked = tuple(checked)
        self.repro_path = repro_path
        """The script that reproduces it; None where there is none."""

    @property
    def violations(self) -> list[ConstraintViolation]:
        return [each for graph in self.checked for each in graph.errors]

    @property
    def warnings(self) -> list[ConstraintViolation]:
        return [each for graph in self.checked for each in graph.warnings]

    @property
    def unknown(self) -> list[ConstraintViolation]:
        """What could not be judged: neither refused nor passed."""
        return [each for graph in self.checked for each in graph.unknown]


ConstraintError.__module__ = "compilescope"
