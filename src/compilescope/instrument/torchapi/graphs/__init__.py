"""From live FX graphs of torch to the portable graphs that all else reads."""
