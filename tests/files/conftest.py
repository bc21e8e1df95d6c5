"""A folder of images."""

import pytest


@pytest.fixture
def folder(tmp_path):
    """Five dark JPEGs in a/, six bright ones in b/."""
    Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    for name, count, level in (("a", 5, 40), ("b", 6, 200)):
        (tmp_path / name).mkdir()
        for i in range(count):
            Image.new("RGB", (20 + i, 16), (level, level, level + i)).save(tmp_path / name / f"{i}.jpg")
    return tmp_path
