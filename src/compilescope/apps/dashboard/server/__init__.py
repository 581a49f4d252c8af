"""The web server: its app, what guards it, what it keeps between requests, the frame of a page."""
