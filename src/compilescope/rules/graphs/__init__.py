"""Portable graphs: where they come from, what they lack, what they hold."""
