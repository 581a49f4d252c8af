"""Adapters that work: one that only checks, one that compiles with another compiler."""
