"""Statements that a graph cannot hold as they stand: output, checks, changes of a module's state.

There are two ways to take one out: as an operator of its own (`custom_operator`), or into a shell
around the rest (`shell`).
"""
