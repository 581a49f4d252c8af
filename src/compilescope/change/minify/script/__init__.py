"""The text of repro scripts: each exits with 1 where the problem is present, 0 where it is gone."""
