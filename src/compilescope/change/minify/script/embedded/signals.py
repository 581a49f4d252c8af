# ruff: noqa: T201
# mypy: ignore-errors
"""Does compiled code kill its process? The script runs itself again as a child, and sees it die."""

import subprocess
import sys


def find_signal(expected, eager, compiled):
    """Does the process die by the expected signal?"""
    if "--inside" in sys.argv:
        eager()
        print("eager: fine", flush=True)
        compiled()
        sys.exit(0)
    command = [sys.executable, sys.argv[0], "--inside"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if "eager: fine" not in done.stdout:
        return None, "it also fails without torch.compile."
    if done.returncode == -expected:
        return True, f"compiled code was killed by signal {expected}."
    if done.returncode:
        return None, f"it exited with {done.returncode}."
    return False, "it compiled and ran."
