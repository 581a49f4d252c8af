"""The dashboard: runs, jobs, devices and the registry in a browser."""
