"""What a log tells of a program elsewhere: its graphs, why each exists, what the log lacks."""
