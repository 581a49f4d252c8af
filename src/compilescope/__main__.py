"""`compilescope` and `python -m compilescope`: a process that is there for one command."""

import gc
import sys
from typing import NoReturn

_YOUNG_OBJECTS = 200_000
"""As many are made before Python looks for garbage among them, as mypy does it: most commands keep
what they make until they end, and looking at 700 each time is a twentieth of a small one."""


def command() -> NoReturn:
    gc.set_threshold(_YOUNG_OBJECTS)
    _import_msgspec()
    from compilescope.cli.main import main
    from compilescope.cli.streams import end_process

    try:
        main()
    except SystemExit as ended:
        end_process(ended.code)
    raise AssertionError("main() ends the command")


def _import_msgspec() -> None:
    """Without `typing_extensions`: of that msgspec takes, where it is installed, what `typing` has
    had since Python 3.11, and importing it is a thirtieth of a small command. Only here: in a
    captured program msgspec may be the program's own too."""
    name = "typing_extensions"
    if sys.version_info < (3, 11) or name in sys.modules:
        return
    sys.modules[name] = None
    try:
        import msgspec  # noqa: F401
    finally:
        del sys.modules[name]


if __name__ == "__main__":
    command()
