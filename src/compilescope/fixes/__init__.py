"""Fixes: patches of the user's source, each proven by running before it is offered."""
