"""The compilation at work now: its id, model, modes, and refusing it."""
