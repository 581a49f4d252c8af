"""The kinds of findings, and how serious one is: said in records too, so they only ever grow."""

from __future__ import annotations

from typing import Literal

FindingKind = Literal["break", "recompile", "eager", "failure", "violation", "difference"]
Level = Literal["error", "warning", "note"]
