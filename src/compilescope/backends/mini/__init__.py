"""The small compiler of cpp/ as a backend: translates graphs, builds its library, calls it."""
