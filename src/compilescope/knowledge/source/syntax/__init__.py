"""One source file as a LibCST tree: read, looked through and edited, with all else left as it is.

Parsed (`module`), its imports and scopes (`imports`, `bindings`, `toplevel`), and changed with all
else left as it was written (`edit`). Nothing here knows what a change is for.
"""
