"""Benchmarks: models on backends, measured in processes that take turns."""
