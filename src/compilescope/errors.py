"""What a user can act on. Everything else that goes wrong is our bug and keeps its traceback."""

from __future__ import annotations


class ToolError(Exception):
    """One sentence for the user, a hint on what to do, and the exit code to leave with."""

    def __init__(self, message: str, hint: str = "", exit_code: int = 2) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.exit_code = exit_code
