"""A benchmark as a run: written as it is measured, so that nothing is lost when it stops."""

from __future__ import annotations

from pathlib import Path

from compilescope.model.benchmarked import Machine
from compilescope.model.command_run import CommandRun


class BenchRun(CommandRun):
    """The run of one `compilescope bench`."""

    def __init__(self, home: Path, label: str, command: tuple[str, ...], machine: Machine) -> None:
        device = "cuda" if machine.accelerators else "cpu"
        super().__init__(home, f"bench-{label}", command, torch=machine.torch, device=device)
        self.write(machine)
