"""A process that has imported torch and forks itself for each run of a program."""
