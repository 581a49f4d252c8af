"""The timeline of a run: which compilation and phase ran when, on which thread."""
