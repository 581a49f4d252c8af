"""The smallest program that still shows what was found, proven in a fresh process."""
