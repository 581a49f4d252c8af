"""Guards of compiled code: which failed, and what checking them costs."""
