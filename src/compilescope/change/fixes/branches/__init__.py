"""An `if` on a tensor, read so that something else can stand in its place.

`branch` finds it and replaces it, `condition` is its test as a tensor, `effects` and `returns` are
what its sides do, `predication` and `closures` the same as straight-line code or as functions of
`torch.cond`.
"""
