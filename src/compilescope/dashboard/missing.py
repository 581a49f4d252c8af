"""What was asked for is not there."""

from __future__ import annotations

from compilescope.errors import ToolError


class Missing(ToolError):
    """What was asked for is not there: the answer's status says so too."""
