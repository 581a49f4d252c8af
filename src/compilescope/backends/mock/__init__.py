"""Backends for devices that are not there: they check, and refuse or warn."""
