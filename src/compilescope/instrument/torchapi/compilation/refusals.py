"""Errors that reach the user of torch.compile in a backend's own words.

Dynamo wraps whatever a backend raises and adds advice for a bug report. A device that refuses a
graph is no bug, so these errors pass as backend failures but keep their message.
"""

from __future__ import annotations

import inspect
from types import FrameType

from torch._dynamo.exc import BackendCompilerFailed

from compilescope.base.errors import ToolError


class BackendRefusal(BackendCompilerFailed):  # type: ignore[misc]
    """What Dynamo takes for a failed backend: it passes on, with the frames of Dynamo cut out.

    torch adds to a failure's words what a bug report needs. This is none, so its words stay.
    """

    def __init__(self, message: str, backend: str, frame: FrameType | None = None) -> None:
        self.message = message
        super().__init__(_BackendName(backend), self, frame or inspect.currentframe())
        self.args = (message,)

    def __str__(self) -> str:
        return self.message


class BackendMisuse(BackendRefusal, ToolError):
    """Something that the user can set right, found out while torch compiles."""

    def __init__(self, error: ToolError, backend: str, frame: FrameType | None = None) -> None:
        super().__init__(f"{error.message} {error.hint}".strip(), backend, frame)
        self.hint = error.hint
        self.exit_code = error.exit_code


class _BackendName:
    def __init__(self, name: str) -> None:
        self.__name__ = name
