"""Live FX graphs: read, written as source, and cut up."""
