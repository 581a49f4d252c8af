"""Tries versions of a program, each in a process of its own, and compares them with the original.

A version is the program with other texts for some files. Nothing on disk is changed, and what was
not compared never counts as equal.
"""
