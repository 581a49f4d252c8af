# ruff: noqa: T201
# mypy: ignore-errors
"""A crash that takes the process with it is looked at from outside."""

import subprocess
import sys


def report_signal(expected, eager, compiled):
    """The exit status: 1 where the process dies by the expected signal, 0 where it does not die."""
    if "--inside" in sys.argv:
        eager()
        print("eager: fine", flush=True)
        compiled()
        return 0
    command = [sys.executable, sys.argv[0], "--inside"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if "eager: fine" not in done.stdout:
        print("Inconclusive: it also fails without torch.compile.", file=sys.stderr)
        return 2
    if done.returncode == -expected:
        print(
            f"The bug is present: compiled code was killed by signal {expected}.", file=sys.stderr
        )
        return 1
    if done.returncode:
        print(f"Inconclusive: it exited with {done.returncode}.", file=sys.stderr)
        return 2
    print("The bug is fixed: it compiled and ran.")
    return 0
