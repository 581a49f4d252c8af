"""Keeps the registry (`src/compilescope/knowledge/registry`) true to torch.

python tools/registry_upkeep.py compare torch-2.14.1-*.whl [--against SOURCE] [--record]
python tools/registry_upkeep.py lint [SOURCE]
python tools/registry_upkeep.py examples [ID ...] [--write]
python tools/registry_upkeep.py import CHECKOUT
"""

from __future__ import annotations

import sys

import click

from compilescope.base.errors import ToolError
from upkeep import compare, examples, lint, old_site


@click.group("registry_upkeep.py", help="Keep the registry of graph breaks true.")
def group() -> None:
    pass


for _command in (compare.COMMAND, lint.COMMAND, examples.COMMAND, old_site.COMMAND):
    group.add_command(_command)


def main(arguments: list[str]) -> int:
    try:
        return group.main(arguments, standalone_mode=False) or 0
    except ToolError as error:
        print(f"error: {error.message}", *filter(None, [error.hint]), sep="\n  ", file=sys.stderr)
        return error.exit_code
    except click.ClickException as error:
        error.show(sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
