"""The main part of a script that shows a crash: it runs the program and looks at how it ends."""

from __future__ import annotations

import inspect
from dataclasses import dataclass

from compilescope.minify.script.embedded import crashes
from compilescope.minify.source.causes import Cause
from compilescope.minify.source.crashes import crash_key

_BY_EXCEPTION = """
if __name__ == "__main__":
    failure = None
{before}    try:
{acts}
    except Exception as error:
        failure = error
    expected = {expected}
    if failure is not None and crash_sign(failure) != expected:
        print(f"Something else went wrong: {{type(failure).__name__}}: {{failure}}")
        sys.exit(2)
    print("The crash is present." if failure else "The crash is fixed.")
    sys.exit(1 if failure else 0)
"""
_BY_SIGNAL = """
if __name__ == "__main__":
    if os.environ.get("REPRO_INSIDE"):
{acts}
        sys.exit(0)
    inside = {{**os.environ, "REPRO_INSIDE": "1"}}
    status = subprocess.run([sys.executable, os.path.abspath(__file__)], env=inside).returncode
    if status not in (0, -{expected}):
        print(f"Something else went wrong: it exited with {{status}}.")
        sys.exit(2)
    print("The crash is present." if status else "The crash is fixed.")
    sys.exit(1 if status else 0)
"""
_VARIABLES = ("failure", "expected", "inside", "status", "innermost", "crash_sign")


@dataclass(frozen=True)
class CrashCheck:
    """A main part with `{acts}` for the program and other places to fill in."""

    text: str
    values: dict[str, str]
    imports: tuple[str, ...]
    definitions: str = ""
    variables: tuple[str, ...] = _VARIABLES


def crash_check(crash: Cause) -> CrashCheck:
    if crash.subject == "signal":
        values = {"expected": crash.reason}
        return CrashCheck(_BY_SIGNAL, values, ("import os", "import subprocess"))
    functions = (crashes.innermost, crashes.crash_sign)
    source = "\n\n".join(inspect.getsource(function) for function in functions)
    words = "".join(f"\n        {word!r}," for word in crash_key(crash))
    imports: tuple[str, ...] = ("import os", "import re", "import traceback")
    values = {"expected": f"({words}\n    )", "before": ""}
    if crash.subject == "backend":
        # What another program compiled of the same graph would spare it the crash.
        values["before"] = "    torch._inductor.config.force_disable_caches = True\n"
        imports += ("import torch._inductor.config",)
    return CrashCheck(_BY_EXCEPTION, values, imports, source)
