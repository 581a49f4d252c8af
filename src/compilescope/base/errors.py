"""ToolError: what a user can act on. Anything else that goes wrong is a bug, with a traceback."""

from __future__ import annotations

import errno


class ToolError(Exception):
    """One sentence for the user, a hint on what to do, and the exit code to leave with."""

    def __init__(self, message: str, hint: str = "", exit_code: int = 2) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.exit_code = exit_code


_LIMITS = {
    errno.EMFILE: ("This process may not open more files.", "Raise the limit: ulimit -n 1024"),
    errno.ENFILE: ("The system may not open more files.", ""),
    errno.EAGAIN: ("The system starts no more processes or threads.", "See `ulimit -u`."),
    errno.ENOMEM: ("There is not enough memory.", ""),
    errno.ENOSPC: ("No space left on the disk.", "Make room there, or set TMPDIR to another disk."),
    errno.EDQUOT: ("The disk quota is used up.", "Make room there, or set TMPDIR to another disk."),
    errno.EROFS: ("The file system is read-only.", ""),
    errno.EACCES: ("Permission denied.", "Name a file or folder that you may read and write."),
}


def as_limit(error: BaseException) -> ToolError | None:
    """The sentence for a limit of the system that any call may meet; None: it is something else."""
    if isinstance(error, RuntimeError) and "start new thread" in str(error):
        number = errno.EAGAIN
    elif isinstance(error, OSError) and not hasattr(error, "characters_written"):
        number = error.errno or 0  # A stream that would block says how much it has written.
    else:
        return None
    if number not in _LIMITS:
        return None
    message, hint = _LIMITS[number]
    path = getattr(error, "filename", None)
    return ToolError(f"{message[:-1]}: {path}." if isinstance(path, str) else message, hint)
