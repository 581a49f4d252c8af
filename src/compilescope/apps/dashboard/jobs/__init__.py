"""Commands that a browser started.

Each has a keeper process and a folder of its own, so that it outlives the server.
"""
