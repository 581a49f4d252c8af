"""The only importer of torch's private names.

Hooks watch choke points of torch.compile and say what they saw to a Sink. They never change a
value, never raise into the program, and are context managers: what they patch, they put back.
"""
