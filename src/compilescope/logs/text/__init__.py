"""The engine for console text: lines of many writers and processes in one stream."""
