"""Lessons on torch.compile: how they are read, run, checked, made into notebooks; their kit."""
