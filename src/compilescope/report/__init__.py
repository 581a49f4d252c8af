"""Draws a Run: digest -> sections -> blocks -> terminal, markdown, HTML. Knows nothing of torch."""
