"""Passes: each takes a graph and changes it, before anything is scheduled."""
