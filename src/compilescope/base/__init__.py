"""What everything stands on: errors, texts, settings, processes, files. Knows nothing of torch."""
