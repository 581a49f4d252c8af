"""A model's numbers on one backend compared with another's, and the operation where they part."""
