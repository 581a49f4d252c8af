"""Log files of machines that one cannot touch, read into runs."""
