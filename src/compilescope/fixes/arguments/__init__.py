"""The arguments of compiled functions: what calls pass, what guards say of it, how to change it.

Its calls, what a failed guard says of an argument, and changes of what is passed.
"""
