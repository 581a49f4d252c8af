"""Fixes: pure proposals, from a finding and the user's source to a patch. `repair` proves them."""
