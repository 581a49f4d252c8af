"""When what was compiled: lanes of bars and moments."""
