"""The hooks: a file for each function of torch that is watched, with a `HOOK`, or for several that
are watched for one thing, with `HOOKS`.

To add a hook is to add a file; see `torchapi.hook` for what a hook may do.
"""
