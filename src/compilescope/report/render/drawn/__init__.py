"""Templates as Python: what draws most pages, without Jinja."""
