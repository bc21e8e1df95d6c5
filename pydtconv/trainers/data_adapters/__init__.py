"""Batches out of what fit, evaluate and predict are given.

arrays.py   arrays that are whole in memory, and a Batch
streams.py  whatever yields batches: generators, data sets with `__getitem__`, loaders, any iterable
"""
