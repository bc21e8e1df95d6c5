"""How many reductions may be under way together."""

from pydtconv.distribution.gradients.window import Window

MIB = 1 << 20


def started(window, nbytes, limit=100):
    """So many of that size begin together at time 0."""
    count = 0
    while window.allows(nbytes) and count < limit:
        window.started(nbytes, 0.0)
        count += 1
    return count


def after(nbytes, rate):
    """The window after a step with two reductions, one after the other, at so many bytes a second."""
    window = Window()
    for i in range(2):
        window.started(nbytes, 10.0 * i)
        window.ended(nbytes, 10.0 * i + nbytes / rate)
    window.begin()
    return window


def test_two_at_first():
    assert started(Window(), 4 * MIB) == 2


def test_two_at_least():
    assert started(after(4 * MIB, rate=10 * MIB), 4 * MIB) == 2
    assert started(after(4 * MIB, rate=MIB), 100 * MIB) == 2


def test_what_takes_half_a_second():
    window = after(4 * MIB, rate=64 * MIB)
    assert started(window, 4 * MIB) == 8
    window.ended(4 * MIB, 1.0)
    assert started(window, 8 * MIB) == 0
    assert started(window, 4 * MIB) == 1


def test_the_last_step_counts():
    window = after(4 * MIB, rate=64 * MIB)
    assert started(window, 4 * MIB) == 8
    for _ in range(8):
        window.ended(4 * MIB, 8.0)
    window.begin()
    assert started(window, 4 * MIB) == 2
