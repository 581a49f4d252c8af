"""One section of the report a file. Each carries a SECTION."""
