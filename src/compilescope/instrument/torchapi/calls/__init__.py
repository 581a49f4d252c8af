"""The operators that a call of torch leads to, and what each of them does."""
