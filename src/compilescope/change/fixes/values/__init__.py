"""What is known of the values in a function: from its source, and from the run that was recorded.

Whether it is a tensor, its dtype and shape, whether it can change, and the numbers read out of it.
"""
