"""What people meet: the command, the dashboard, pytest, notebooks, lessons, the public names."""
