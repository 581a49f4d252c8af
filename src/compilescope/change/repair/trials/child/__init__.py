"""The code of ours that runs inside the processes of a program that is tried.

It records and replays calls of compiled regions. The program itself must not notice: its state,
random numbers and output stay what they would be.
"""
