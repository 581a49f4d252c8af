"""Numbers: one backend held against another, and the operation at which they part."""
