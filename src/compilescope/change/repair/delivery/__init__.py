"""What the user is handed: a diff, edited files, a script with patches."""
