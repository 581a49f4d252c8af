"""`python -m compilescope`."""

from compilescope.cli.main import main

main()
