"""Changes of a program: fixes, the search that proves them, faster steps, smaller repros."""
