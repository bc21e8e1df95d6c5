"""The processes of a mesh as threads of this one: each runs the plan of its part, messages are queues."""

from __future__ import annotations

import itertools
import queue
import threading

import numpy as np

from pydtconv import replica, tree
from pydtconv.distribution.data_parallel.synchronizer import Synchronizer
from pydtconv.graph import Executor, Memory, build_plan
from pydtconv.graph.memory.columns import Columns, arrange
from pydtconv.graph.spatial.partition import Partition
from pydtconv.trainers.data_adapters.arrays import Batch
from pydtconv.trainers.dense_columns import put_on
from pydtconv.trainers.tracing import trace

TIMEOUT = 60


class Wires:
    """Queues between all pairs of ranks, and a place where all meet."""

    def __init__(self, size):
        self.size = size
        # made before there are threads: two that meet a missing one might make two
        self.queues = {pair: queue.Queue() for pair in itertools.product(range(size), repeat=2)}
        self.barrier = threading.Barrier(size)
        self.rows = [None] * size

    def allgather(self, rank, row):
        self.barrier.wait(TIMEOUT)
        self.rows[rank] = np.array(row)
        self.barrier.wait(TIMEOUT)
        return np.stack(self.rows)


class Exchanger:
    def __init__(self, wires, group, rank):
        self.wires, self.group, self.rank = wires, group, rank

    def transfer(self, sends, receives, what):
        return _Transfer(self, sends, receives)


class _Transfer:
    def __init__(self, exchanger, sends, receives):
        self.exchanger, self.sends, self.receives = exchanger, sends, receives

    def start(self):
        here = self.exchanger
        for other, buffer in self.sends:
            here.wires.queues[here.rank, here.group[other]].put(buffer.copy())

    def wait(self):
        here = self.exchanger
        for other, buffer in self.receives:
            buffer[...] = here.wires.queues[here.group[other], here.rank].get(timeout=TIMEOUT)


class Communicator:
    def __init__(self, wires, rank):
        self.wires, self.rank = wires, rank

    def allgather(self, row, what):
        return self.wires.allgather(self.rank, row)

    def allreduce(self, array, what):
        array[...] = self.wires.allgather(self.rank, array).sum(0)
        return array


class Result:
    def __init__(self, found, plan, gradients, state):
        self.loss = float(found["loss"]) if "loss" in found else None
        self.outputs = {name: value.copy() for name, value in found.items() if value.ndim}
        self.placements = plan.graph.placements
        self.plan, self.gradients, self.state = plan, gradients, state


class _Several(replica.Replica):
    size = 2


def plan_of(model, arrays, kind="train", partition=None, targets=True, **options):
    """(plan, traced) of a step on these arrays, (x, y, weights)."""
    batch = Batch(*arrays, len(tree.flatten(arrays[0])[0]))
    replica.set_current(_Several())
    try:
        traced = trace(model, kind, batch, model._pydt_targets if targets else None)
    finally:
        replica.set_current(None)
    put_on(traced.graph, model, partition)
    return build_plan(traced.graph, **options), traced


def run(model, arrays, kind="train", partition=None, wires=None, offset=0, total=None, lock=None, steps=1, **options):
    """One rank's results of a step; `arrays` are those of its samples."""
    with lock or threading.Lock():  # tracing looks at the active replica
        plan, traced = plan_of(model, arrays, kind, partition, **options)
    if partition is not None:
        arrange(plan.graph, Columns(partition.index, len(partition.group), None))
    memory = Memory()
    memory.state.seed = 5
    size = len(tree.flatten(arrays[0])[0])
    memory.state.sample_offset = offset
    memory.state.portions = {"samples": size / (total or size)}
    if wires is not None:
        memory.state.exchanger = Exchanger(wires, partition.group, partition.rank)
        memory.state.synchronizer = Synchronizer(Communicator(wires, partition.rank))
    executor = Executor(plan, memory)
    targets = model._pydt_targets
    names = [*traced.x, *traced.y, *traced.weights]
    values = [*tree.flatten(arrays[0]), *targets.arrange(arrays[1], "y"), *targets.weights(arrays[2])]
    inputs = {name: value for name, value in zip(names, values, strict=True) if name is not None}
    for name, placed in plan.graph.placements.items():
        if name in inputs:
            inputs[name] = inputs[name][placed.slices]
    for output, name, weight in zip(targets.outputs, traced.weights, targets.weights(arrays[2]), strict=True):
        if name is not None and weight is not None:
            own = np.array([inputs[name].sum()])
            every = own if wires is None else wires.allgather(partition.rank, own)
            memory.state.portions[f"weights of {output.name}"] = float(own[0] / every.sum())
    for _ in range(steps):
        found = executor.run(inputs)
    store = memory.store
    gradients = [] if store is None else [store.gradient_of(v).copy() for v in model.trainable_variables]
    state = [v.numpy() for v in model.non_trainable_variables]
    return Result(found, plan, gradients, state)


def run_mesh(make, arrays, names, shape, kind="train", network=None, columns=(), **options):
    """The results of all ranks of a mesh; make() gives a model, the same each time."""
    ranks = tuple(range(int(np.prod(shape))))
    wires = Wires(len(ranks))
    results, errors = [None] * len(ranks), []
    given = {"network": network, "columns": columns}
    partitions = [Partition(tuple(names), tuple(shape), ranks, rank, **given) for rank in ranks]
    count = len(tree.flatten(arrays[0])[0])
    models = [make() for _ in ranks]
    for model in models[1:]:
        model.set_weights(models[0].get_weights())
    lock = threading.Lock()

    def work(rank):
        try:
            part = partitions[rank]
            batches, mine = part.extent("batch"), part.coordinate("batch")
            bounds = [-(-i * count // batches) for i in range(batches + 1)]  # the first ones have more
            own = slice(bounds[mine], bounds[mine + 1])
            cut = tree.map_structure(lambda a: None if a is None else a[own], arrays)
            results[rank] = run(models[rank], cut, kind, part, wires, own.start, count, lock, **options)
        except BaseException as error:
            errors.append(error)
            wires.barrier.abort()

    threads = [threading.Thread(target=work, args=(rank,)) for rank in ranks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise next((e for e in errors if not isinstance(e, (threading.BrokenBarrierError, queue.Empty))), errors[0])
    return results


def whole(results, name):
    """A result of all ranks, put together."""
    placed = results[0].placements[name]
    samples = sum(r.placements[name].box[0][1] for r in results if _first(r, name))
    array = np.full((samples, *placed.shape[1:]), np.nan)
    at = {}
    for result in results:
        place = result.placements[name]
        if place.counts:
            batch = result.plan.graph.partition.coordinate("batch")
            start = at.setdefault(batch, sum(at_size(results, b, name) for b in range(batch)))
            box = (slice(start, start + place.shape[0]), *place.slices[1:])
            array[box] = result.outputs[name]
    assert not np.isnan(array).any()
    return array


def at_size(results, batch, name):
    return next(r.placements[name].shape[0] for r in results if r.plan.graph.partition.coordinate("batch") == batch)


def _first(result, name):
    partition = result.plan.graph.partition
    return partition.index == 0
