"""What `benchmarks/peers.py` compares: programs, their truths, tools, and how answers score."""
