# ruff: noqa: T201
# mypy: ignore-errors
"""A graph that a device does not take."""

import sys


def report_violations(expected, compiled, refusal):
    """The exit status: 1 where the device still refuses it for one of the expected reasons."""
    try:
        compiled()
    except refusal as error:
        print(f"compilescope.ConstraintError: {error}", file=sys.stderr)
        found = {
            (each.rule, "input" if each.op.startswith(("input ", "parameter ")) else each.op)
            for each in error.violations
        }
        return 1 if found & expected else 2
    print("The bug is fixed: the device supports the graph.")
    return 0
