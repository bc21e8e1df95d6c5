"""Tensors that are cut along image axes over the processes of a mesh.

partition.py the mesh as one of its processes sees it
cutting.py   makes a graph that of one process: brings tensors to the layouts that operators read
rules.py     what each operator reads and leaves
"""
