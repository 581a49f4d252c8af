"""Reduces an FX graph to the few operations that still show what is wrong with the whole."""
