"""Asks a language model about causes, where a user wants that. Its answers are never trusted."""
