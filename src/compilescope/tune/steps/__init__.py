"""What a step of the program is: the loop that leads to its compiled code, and marks in it."""
