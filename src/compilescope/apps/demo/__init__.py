"""The tour: every capability on one small model, each as the command that one would type.

Everything here runs commands in child processes; torch stays out of this one.
"""
