"""What a small program needs of torch to run as if it were alone in the process."""
