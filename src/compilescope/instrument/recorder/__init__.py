"""Runs a program under the hooks and writes what they see. Only appends events; shows nothing."""
