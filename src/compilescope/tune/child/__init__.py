"""The code of ours that runs inside the processes of a program that is tuned."""
