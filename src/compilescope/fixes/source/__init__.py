"""LibCST at work on the user's files: what stands where, what it means, how it is changed."""
