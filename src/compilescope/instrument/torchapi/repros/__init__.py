"""Live graphs, their backends and the user's objects as source, for repro scripts."""
