"""How each ATen operator is written for the small compiler: one file a family."""
