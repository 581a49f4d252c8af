"""The Model Context Protocol server: the commands as tools for an agent, and runs as resources."""
