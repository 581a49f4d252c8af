"""The arguments of compiled functions: what calls pass, what guards say of it, how to change it."""
