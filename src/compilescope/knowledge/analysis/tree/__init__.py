"""The compile tree: which compilation came out of which, by calls and by graph breaks."""
