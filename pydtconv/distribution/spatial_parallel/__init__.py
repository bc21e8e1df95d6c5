"""Spatial parallelism: images are cut along height, width or depth, and every process computes on its part.

distribution.py  `SpatialParallel`, and which part of an image is this process's
worker.py        the strategy of training in one of the processes
exchanger.py     messages between the processes that share images
"""

from pydtconv.distribution.spatial_parallel.distribution import SpatialParallel, window

__all__ = ["SpatialParallel", "window"]
