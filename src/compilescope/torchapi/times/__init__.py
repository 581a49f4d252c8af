"""Where time goes: in phases of compilations, and in compiled code."""
