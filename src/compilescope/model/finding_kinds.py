"""The kinds of findings and their levels. Stored runs name them, so none is renamed or removed."""

from __future__ import annotations

from typing import Literal

FindingKind = Literal["break", "recompile", "eager", "failure", "violation", "difference"]
Level = Literal["error", "warning", "note"]
