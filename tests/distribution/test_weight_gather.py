"""The all-gather of weights: what is looked at from one thread while another one starts it."""

from types import SimpleNamespace

from pydtconv.distribution.gradients.buckets import Bucket
from pydtconv.distribution.gradients.weight_gather import WeightGather


class Communicator:
    mpi = SimpleNamespace(Query_thread=lambda: 0, THREAD_MULTIPLE=3)

    def observed(self, request, what):
        return request

    def wait(self, request, what):
        while not request.Test():
            pass


def test_no_bucket_is_over_while_it_starts():
    """MPI works without Python's lock, so that another thread may look just then."""
    seen = []

    def gather(bucket):
        number = reduction.buckets.index(bucket)
        seen.append((weights.is_over, number in weights._waiting or number in weights._under_way))
        return SimpleNamespace(Test=lambda: True)

    buckets = [Bucket(slice(16 * i, 16 * (i + 1)), ("a", "b"), "float32", 1) for i in range(3)]
    reduction = SimpleNamespace(
        buckets=buckets,
        communicator=Communicator(),
        store=SimpleNamespace(itemsize=4),
        step=1,
        overlap=True,
        backend=SimpleNamespace(sends=True),
        gather=gather,
    )
    weights = WeightGather(reduction)
    weights.begin()
    weights.finish()
    assert weights.is_over
    assert seen == [(False, True)] * 3
