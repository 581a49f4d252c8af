"""Runs while they happen: event files are followed, and every viewer of a run shares one reader."""
