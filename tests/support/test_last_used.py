"""What is kept for keys, up to a number of entries."""

from pydtconv.support.last_used import LastUsed


def test_the_one_that_was_not_used_for_longest_goes():
    kept = LastUsed(2)
    assert kept.put("a", 1) is None
    assert kept.put("b", 2) is None
    assert kept.get("a") == 1
    assert kept.put("c", 3) == ("b", 2)
    assert kept.get("b") is None
    assert kept.values() == [1, 3]
    assert kept.put("a", 4) is None
    assert kept.values() == [3, 4]
    kept.clear()
    assert kept.values() == []
