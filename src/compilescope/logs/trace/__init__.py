"""TORCH_TRACE: from the records of torch's structured trace to events."""
