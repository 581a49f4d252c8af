"""Where a program applies torch.compile, with which settings, and which frames that leads to.

What it gives to `torch.compile`, with which settings, in which of its own files, and what decides
whether a line is reached.
"""
