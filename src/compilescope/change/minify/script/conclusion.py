# mypy: allow-untyped-defs, allow-untyped-calls
"""How every repro script ends: one line that says whether the bug is present, and a status.

The source of `conclude` and `conclude_from` goes into the scripts as it stands; whoever verifies a
script asks `shows_bug`. Python itself leaves with 1 after any error, so the status alone is no
proof: the line must be there too.
"""

from __future__ import annotations

import inspect
import sys
import traceback
from collections.abc import Callable, Sequence

from compilescope.base.outputs import REPRO_MARK

PRESENT, FIXED, INCONCLUSIVE = 1, 0, 2
"""Exit statuses: a failure is what a test, or `git bisect run`, takes for "bad". An uncaught
exception is 1 as well, so whoever checks a script also looks for its last line."""
ENDING_IMPORTS = ("import sys", "import traceback")


def conclude(shown, words="", thing="bug"):
    """End the script: `shown` is True, False, or None where it cannot tell."""
    verdict = "Inconclusive"
    if shown is not None:
        verdict = f"The {thing} is present" if shown else f"The {thing} is fixed"
    sys.stderr.write(f"{verdict}: {words}\n" if words else f"{verdict}.\n")
    sys.exit(2 if shown is None else int(shown))


def conclude_from(main, thing="bug"):
    """End the script with what `main` returns: `shown` and words on it."""
    try:
        shown, words = main()
    except Exception as error:
        traceback.print_exc()
        shown, words = None, f"{type(error).__name__}: {error}"
    conclude(shown, words, thing)


def ending_source(*functions: Callable[..., None]) -> str:
    """Of `conclude`, or of both functions."""
    return "\n\n".join(inspect.getsource(each) for each in functions or (conclude, conclude_from))


def exits(thing: str = "bug") -> str:
    """What a script's docstring says of its exit status."""
    return f"{REPRO_MARK} the {thing} is present, 0 once it is fixed, 2 if inconclusive."


def shows_bug(status: int, stderr: Sequence[str]) -> bool:
    """Did a script end so? `stderr`: its lines."""
    said = any(line.startswith("The ") and " is present" in line for line in stderr)
    return said and status == PRESENT
