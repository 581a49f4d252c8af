"""Passes as many hooks as one small program can, and every one of them fails."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from recorder.faults import plant_in_program

plant_in_program()

import passing_hooks

passing_hooks.main()
