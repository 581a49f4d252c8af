"""What a function's code does with its values, read from its syntax tree without running it.

Which are read later (`liveness`), which share memory (`aliasing`), which expressions do more than
give a value (`purity`, `operators`), and where a function can be cut (`cuts`). Where it cannot
tell, it takes the worst for true.
"""
