"""Runtime: steps bound to memory, and run."""
