"""Other frameworks that benchmarks compare with; each runs in a process of its own that does not load pydtconv."""
