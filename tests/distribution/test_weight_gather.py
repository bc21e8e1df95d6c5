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


def fake(gather, count=3, **more):
    """What is read of a reduction."""
    buckets = [Bucket(slice(16 * i, 16 * (i + 1)), ("a", "b"), "float32", 1) for i in range(count)]
    return SimpleNamespace(
        buckets=buckets,
        communicator=Communicator(),
        store=SimpleNamespace(itemsize=4),
        step=1,
        overlap=True,
        backend=SimpleNamespace(sends=True),
        gather=gather,
        **more,
    )


def test_no_bucket_is_over_while_it_starts():
    """MPI works without Python's lock, so that another thread may look just then."""
    seen = []

    def gather(number):
        seen.append((weights.is_over, number in weights._waiting or number in weights._under_way))
        return SimpleNamespace(Test=lambda: True)

    weights = WeightGather(fake(gather))
    weights.begin()
    weights.finish()
    assert weights.is_over
    assert seen == [(False, True)] * 3


def test_within_backward_few_start_while_no_sum_is_under_way():
    """And what other processes have not started yet holds up none of those that forward reads first."""
    started, done = [], set()

    def gather(number):
        started.append(number)
        return SimpleNamespace(Test=lambda: number in done)

    reduction = fake(gather, 7, is_idle=False)
    weights = WeightGather(reduction)
    for number in range(3):
        weights.add(number)
        weights.carry_on()
    assert not started
    reduction.is_idle = True
    weights.carry_on()
    assert started == [0]
    weights.begin(3)
    assert started == [0]  # others follow when the next step begins
    weights.carry_on()
    assert started == [0, 6, 5]
    done |= {0, 6}
    weights.carry_on()
    assert started == [0, 6, 5, 4]
    done |= set(range(7))
    weights.finish()
    assert started == [0, 6, 5, 4, 3, 2, 1]
