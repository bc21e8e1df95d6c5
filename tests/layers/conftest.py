"""What tests of layers of images share."""

import pytest

from pydtconv.ops import augment


@pytest.fixture
def drawn(monkeypatch):
    """What operators drew."""
    found = []
    for kind, change in augment.CHANGES.items():

        def noted(*args, draw=change.draw, **settings):
            found.append(draw(*args, **settings))
            return found[-1]

        monkeypatch.setitem(augment.CHANGES, kind, change._replace(draw=noted))
    return found
