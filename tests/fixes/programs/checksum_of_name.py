# ideal: pure-call-once
"""Layers are salted by a checksum of their name."""

import zlib

import torch


def salted(x, name):
    salt = zlib.crc32(name.encode()) % 7
    return x * (1 + salt)


compiled = torch.compile(salted, backend="eager")
for name in ("encoder.0", "encoder.1", "decoder.0"):
    print(name, compiled(torch.ones(2), name).tolist())
