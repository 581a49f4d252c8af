"""One pattern of whole programs a file. Each carries a RULE."""
