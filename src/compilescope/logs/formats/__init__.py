"""One file a log format; each carries its `FORMAT`."""
