"""The hooks: one file for each function of torch that is watched, each with a HOOK.

To add a hook is to add a file; see `torchapi.hook` for what a hook may do.
"""
