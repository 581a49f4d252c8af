"""`compilescope` and `python -m compilescope`: a process that is there for one command."""

import gc
from typing import NoReturn

_YOUNG_OBJECTS = 200_000
"""As many are made before Python looks for garbage among them, as mypy does it: most commands keep
what they make until they end, and looking at 700 each time is a twentieth of a small one."""


def command() -> NoReturn:
    gc.set_threshold(_YOUNG_OBJECTS)
    from compilescope.apps.cli.main import main
    from compilescope.apps.cli.streams import end_process

    try:
        main()
    except SystemExit as ended:
        end_process(ended.code)
    raise AssertionError("main() ends the command")


if __name__ == "__main__":
    command()
