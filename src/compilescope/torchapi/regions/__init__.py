"""The compiled regions of a program: what torch.compile gives back, and each call of it."""
