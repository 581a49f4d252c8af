"""What tt-xla writes: the module of every graph at every stage of its compilation."""
