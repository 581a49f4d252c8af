"""The forms that start commands from the dashboard: one file each, with a `FORM`."""
