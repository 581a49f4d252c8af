"""Tries what may make a program's step faster, and proves it by the clock and by the numbers."""
