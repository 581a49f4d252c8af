"""The record: events, the run they belong to, graphs and artifacts. Knows nothing of torch."""
