"""Random and damaged inputs: `python -m tests.fuzz ROOM ... --seconds 60`; a room is a module of this package.

A room has `run(seed) -> None`, which makes some trials from the seed alone and raises where one fails.  It counts with
`trials.count(kind, outcome)` and gives each input to `trials.keep(name, data)` before it is tried, so that what ends
the process, too, is found in the corpus.
"""
