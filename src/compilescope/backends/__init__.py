"""Backends for torch.compile that check graphs against what a device takes."""
