"""Sweeps: capture, and on request bench, diff and fix, over many programs or model classes."""
