"""Tensors: how they are copied, how results are taken apart, and how two of them are compared.

Knows torch's public API and nothing of models, backends or graphs.
"""
