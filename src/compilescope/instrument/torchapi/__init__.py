"""The only importer of torch's private names: whoever else needs one asks here.

Hooks watch choke points of torch.compile and report what they see to a `Sink` (`sinks`). They never
change a value, never raise into the program, and are context managers: what they patch, they put
back.
"""
