"""Steps of several ranks, against time lines drawn by hand."""

import pytest

from pydtconv.profiling import Profile, Timing
from pydtconv.simulation import Network, Workload, predict, strong_scaling, weak_scaling
from pydtconv.simulation.collectives import SUMMING
from pydtconv.simulation.scaling import blocking, overlapped, timeline
from pydtconv.simulation.workload import Bucket, Work


def profile(batch=8, scale=1.0, elements=100, **changes):
    """Forward 4 s, backward 2 s (variable 1, 60 elements) and 3 s (variable 2, 40 elements), optimizer 1 s."""
    timings = [
        Timing(0, "a", "conv", "forward", 4 * scale),
        Timing(1, "b", "conv", "backward_weights", 2 * scale, gradients=((0, 60),)),
        Timing(2, "a", "conv", "backward_weights", 3 * scale, gradients=((60, 100),)),
        Timing(-1, "optimizer", "optimizer", "outside", 1.0),
        Timing(-1, "metrics", "metrics", "outside", 0.5),
        Timing(-1, "inputs", "inputs", "outside", 0.25),
    ]
    values = {"dtype": "float32", "threads": 1, "variant": "AUTO", "cpu": "cpu", "samples": 1, "model": "net"}
    seconds = sum(timing.seconds for timing in timings)
    values |= {"batch_size": batch, "seconds": seconds, "gradient_elements": elements, "timings": timings} | changes
    return Profile(**values)


def test_gradients_are_ready_in_backward_order_and_cut_into_buckets():
    workload = Workload([profile()])
    work = workload.work(8, bucket_bytes=4 * 60)
    assert work.buckets == (Bucket(6.25, 240, 0.6), Bucket(9.25, 160, 0.4))
    assert (work.backward_end, work.optimizer, work.after, work.seconds) == (9.25, 1.0, 0.5, 10.75)
    assert workload.work(8, bucket_bytes=400).buckets == (Bucket(9.25, 400, 1.0),)
    assert len(workload.work(8, bucket_bytes=1).buckets) == 2  # each variable by itself


def test_plans_of_different_batch_sizes_may_have_other_parts():
    more = profile(16, scale=2.0)
    more.timings.insert(2, Timing(2, "c", "batchnorm", "recompute", 1.0))
    more.seconds += 1.0
    work = Workload([profile(8), more]).work(12, bucket_bytes=1)
    assert [bucket.ready for bucket in work.buckets] == [0.25 + 9.0, 0.25 + 9.0 + 5.0]
    assert work.backward_end == 0.25 + 9.0 + 5.0


def test_the_step_is_where_it_starts_from_not_the_sum_of_its_parts():
    work = Workload([profile(seconds=2 * 10.75)]).work(8, bucket_bytes=4 * 60)
    assert work.buckets == (Bucket(12.5, 240, 0.6), Bucket(18.5, 160, 0.4))
    assert (work.backward_end, work.optimizer, work.after, work.seconds) == (18.5, 2.0, 1.0, 21.5)
    late = profile()
    late.timings.append(Timing(-1, "wait", "wait", "outside", 5.0))  # for other processes, which are simulated
    late.seconds = 2 * 10.75 + 5.0
    assert Workload([late]).work(8, bucket_bytes=4 * 60) == work


def test_one_bucket_and_two_ranks():
    # 400 bytes by recursive doubling: 0.5 + 400 * 0.01 = 4.5 s, of which nothing can be hidden
    network = Network(alpha=0.5, beta=0.01, gamma=0.0)
    found = predict(Workload([profile()]), 2, 16, network, "recursive_doubling", 400)
    assert found.communication == pytest.approx(4.5)
    assert found.overlapped == found.blocking == pytest.approx(10.75 + 4.5)
    assert found.hidden == pytest.approx(0)
    assert found.images_per_second == pytest.approx(16 / 15.25)


def test_statistics_of_batch_normalization_are_summed_over_ranks():
    one = profile()
    one.timings.insert(0, Timing(0, "n", "batchnorm", "forward", 0.0, "8x4x4x5 -> 8x4x4x5"))
    network = Network(alpha=0.5, beta=0.01, gamma=0.0)
    apart, together = (
        predict(Workload([one]), 2, 16, network, "ring", 400, synchronized) for synchronized in (False, True)
    )
    assert apart.statistics == 0
    assert together.statistics == pytest.approx(2 * (0.5 + 8 * 11 * 0.01) + SUMMING)
    assert together.overlapped == pytest.approx(apart.overlapped + together.statistics)
    assert together.blocking == pytest.approx(apart.blocking + together.statistics)
    assert together.hidden == pytest.approx(apart.hidden)
    assert predict(Workload([one]), 1, 8, network, synchronized=True).statistics == 0


def test_two_buckets_of_which_the_first_is_hidden():
    # the first goes from 6.25 to 9.15, before backward ends; the second from 9.25 to 11.35, beside the optimizer
    network = Network(alpha=0.5, beta=0.01, gamma=0.0)
    found = predict(Workload([profile()]), 2, 16, network, "recursive_doubling", 240)
    assert found.communication == pytest.approx(2.9 + 2.1)
    assert found.overlapped == pytest.approx(9.25 + 2.1 + 0.4 + 0.5)
    assert found.blocking == pytest.approx(10.75 + 5.0)
    assert found.hidden == pytest.approx((5.0 - 1.5) / 5.0)


def test_reductions_go_one_after_the_other_and_nothing_is_hidden_where_all_gradients_come_last():
    work = Work((Bucket(1.0, 4, 0.5), Bucket(2.0, 4, 0.5)), 2.0, 1.0, 0.0)
    assert overlapped(work, [5.0, 3.0]) == pytest.approx(1 + 5 + 3 + 0.5)  # the second waits for the first until 6
    late = Work((Bucket(2.0, 4, 0.5), Bucket(2.0, 4, 0.5)), 2.0, 0.0, 0.0)
    assert overlapped(late, [5.0, 3.0]) == blocking(late, [5.0, 3.0]) == 10.0


def test_the_cores_of_a_rank_work_for_the_network_beside_backward_and_within_the_cost_after_it():
    work = Work((Bucket(1.0, 4, 0.5), Bucket(7.0, 4, 0.5)), 7.0, 0.0, 0.0)
    # 4 s of computing beside 4 s of reduction take 4 + 2 s, then 2 s are left; the second bucket falls behind backward
    line = timeline(work, [4.0, 3.0], [2.0, 1.0])
    assert line.arrivals == (7.0, 12.0)
    assert (line.backward_end, line.beside) == (9.0, 4.0)
    # a reduction of 8 s, 6 of which are beside backward with 3 s of its work
    line = timeline(work, [8.0, 3.0], [4.0, 1.0])
    assert line.arrivals == (1.0 + 8.0 + 3.0, 1.0 + 8.0 + 3.0 + 3.0)
    assert (line.backward_end, line.beside) == (1.0 + 6.0 + 3.0, 6.0)
    assert overlapped(work, [8.0, 3.0], [4.0, 1.0]) == 15.0
    assert timeline(work, [0.0, 0.0], [1.0, 0.0]).backward_end == 8.0


def test_what_the_network_takes_from_the_cores_is_predicted():
    busy, idle = (Network(0.5, 0.01, 0.0, delta) for delta in (0.002, 0.0))
    slower, faster = (
        predict(Workload([profile()]), 2, 16, network, "recursive_doubling", 240) for network in (busy, idle)
    )
    assert slower.blocking == faster.blocking
    # the first bucket, of 240 bytes, is beside backward
    assert slower.overlapped - faster.overlapped == pytest.approx(240 * 0.002)


def test_infinite_bandwidth_is_compute():
    for ranks in (1, 2, 1000):
        found = predict(Workload([profile()]), ranks, 8 * ranks, Network(0, 0, 0), "ring", 240)
        assert found.overlapped == pytest.approx(found.compute) == pytest.approx(found.blocking)
        assert found.compute == pytest.approx(10.75)
        assert found.hidden is None


def test_weak_and_strong_scaling():
    workload, perfect = Workload([profile(8), profile(2, 0.25)]), Network(0, 0, 0)
    weak = weak_scaling(workload, [1, 4], 8, perfect, "best", 240)
    assert [p.images for p in weak] == [8, 32]
    assert [p.efficiency for p in weak] == pytest.approx([1, 1])
    strong = strong_scaling(workload, [1, 3, 4], 8, perfect, "best", 240)
    # 8, 3 and 2 images on the fullest rank: 9, 9 / 8 * 3 and 9 / 4 s beside 1.75 s that do not depend on them
    assert [p.compute for p in strong] == pytest.approx([10.75, 3.375 + 1.75, 2.25 + 1.75])
    assert strong[2].efficiency == pytest.approx(10.75 / 4 / 4)


def test_batch_sizes_between_and_beyond_those_of_the_profiles():
    workload = Workload([profile(8, 1.0), profile(4, 0.75)])  # 4.5 s + 0.5625 s an image
    for images, seconds in ((4, 6.75), (6, 7.875), (8, 9.0), (16, 13.5), (1, 5.0625)):
        assert workload.work(images, 1).backward_end == pytest.approx(seconds + 0.25)
    assert Workload([profile(8)]).work(2, 1).backward_end == pytest.approx(9 / 4 + 0.25)


def test_profiles_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="expected one or more"):
        Workload([])
    with pytest.raises(ValueError, match="different batch sizes, got 8 twice"):
        Workload([profile(8), profile(8)])
    other = profile(4, model="other")
    del other.timings[2]
    with pytest.raises(ValueError, match=r"steps of one model, got other \(100 gradients, float32\) and net \(100 "):
        Workload([profile(8), other])
    with pytest.raises(ValueError, match="expected steps with gradients"):
        Workload([profile(elements=0)])
    with pytest.raises(ValueError, match="images: expected 1 or more"):
        predict(Workload([profile()]), 2, 0, Network(0, 0))
