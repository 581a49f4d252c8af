"""Fixes for graph breaks: one file each."""
