"""Functions whose source goes into repro scripts as it stands. They need nothing but torch.

Each may use what its file imports and the other functions here, if the script brings them too.
"""
