"""Takes the user's paths, names, constants and source out of a run, so that it can be shared.

What is replaced is replaced everywhere alike, and the rules say the same of the run as before. A
word stays only if it is public: Python's, PyTorch's, or that of a well-known library.
"""
