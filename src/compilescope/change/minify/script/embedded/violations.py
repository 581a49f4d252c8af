# ruff: noqa: T201
# mypy: ignore-errors
"""Does the device still refuse the graph, and for the same reason?"""

import sys


def find_violations(expected, compiled, refusal):
    """Does the device still refuse it for one of the expected reasons?"""
    try:
        compiled()
    except refusal as error:
        print(f"compilescope.ConstraintError: {error}", file=sys.stderr)
        found = {
            (each.rule, "input" if each.op.startswith(("input ", "parameter ")) else each.op)
            for each in error.violations
        }
        if found & expected:
            return True, "the device refuses the graph, see above."
        return None, "the device refuses the graph for other reasons."
    return False, "the device supports the graph."
