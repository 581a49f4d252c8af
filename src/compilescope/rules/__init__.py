"""Pure: reads a Run and says what it means. Knows nothing of torch, prints nothing."""
