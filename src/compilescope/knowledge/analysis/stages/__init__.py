"""What became of each captured graph: its stages, and which of their lines belong together."""
