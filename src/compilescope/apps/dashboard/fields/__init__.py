"""What forms are made of: fields, their kinds, and what a browser may name in them."""
