"""Repair: searches the fixes for what a program loses, and proves each by running the program."""
