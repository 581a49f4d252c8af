"""Causes in the user's own terms, and what can be done about them."""
