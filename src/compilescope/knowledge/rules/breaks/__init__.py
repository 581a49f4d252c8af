"""One pattern of graph breaks a file. Each carries a RULE."""
