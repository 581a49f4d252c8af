"""The runs of a folder as rows: the index, the process that reads for it, what pages ask of it."""
