"""What may make a step faster: a file each, or a row of a table where it is a flag."""
