"""What runs within the processes of a program that is tried."""
