"""What was compiled out of what."""
