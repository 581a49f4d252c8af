"""Rows that a program selects, of which there may be none: what selects them, what is computed from
them alone, and what stays the same where there is nothing to compute."""
