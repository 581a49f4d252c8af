"""Compiles with AOTAutograd and Inductor: the stages on the way, and which part is to blame."""
