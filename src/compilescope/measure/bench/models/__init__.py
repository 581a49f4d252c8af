"""The models that `compilescope bench` knows, one file each."""
