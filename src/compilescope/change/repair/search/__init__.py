"""The search: from what a program loses to the patches that win it back."""
