"""One pattern of recompiles a file. Each carries a RULE."""
