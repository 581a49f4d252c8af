"""Repro scripts for graph breaks that are known only from a log."""
