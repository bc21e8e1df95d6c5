"""Benchmarks: each is one command that writes CSV and PNG into benchmarks/results/."""
