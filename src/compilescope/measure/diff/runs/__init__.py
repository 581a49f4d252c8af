"""One run of one side of a comparison: each starts from the same state, inputs and random numbers.

`sides` says what is run, `trial` runs it and keeps what came of it; `modes` and `model_state`
see to it that every run finds the same.
"""
