"""What is known about graph breaks before any program runs: PyTorch's own table and our taxonomy.

Nothing here imports torch: the table is a file of the torch installation and is read as one.
"""
