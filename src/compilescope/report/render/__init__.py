"""One format a file: blocks in, text out."""
