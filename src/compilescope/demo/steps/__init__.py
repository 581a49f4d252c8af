"""One step of the tour a file. Each carries a STEP."""
