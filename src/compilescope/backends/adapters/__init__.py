"""Backends that users write: an adapter, and all that it is given."""
