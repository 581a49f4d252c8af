"""A run on its way to somebody else: archives, and what is redacted from them."""
