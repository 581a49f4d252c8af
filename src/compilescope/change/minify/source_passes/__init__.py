"""Ways to make a Python program smaller: each file has one, called `PASS`, or a family, `PASSES`.

A pass only proposes. Whether the smaller program still shows the problem is tried each time, so a
proposal may change what the program does.
"""
