"""Makes the smallest script that still shows a problem, and runs it in a fresh process as proof."""
