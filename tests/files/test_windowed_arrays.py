"""Files of images, of which a process reads its part."""

import h5py
import numpy as np
import pytest

from pydtconv import replica
from pydtconv.graph.spatial.partition import Partition
from pydtconv.trainers.data_adapters.streams import StreamData
from pydtconv.utils import WindowedArrays


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(5, 9, 8, 3)), rng.integers(0, 3, (5, 9, 8))
    np.save(tmp_path / "x.npy", x)
    with h5py.File(tmp_path / "y.h5", "w") as file:
        file["labels"] = y
    return tmp_path, x, y


def on_mesh(rank):
    here = replica.Replica()
    here.partition = Partition(("height", "width"), (2, 2), (0, 1, 2, 3), rank)
    replica.set_current(here)


def test_alone_all_is_read(files):
    folder, x, y = files
    data = WindowedArrays(folder / "x.npy", (folder / "y.h5", "labels"), 2)
    assert len(data) == 3
    for index in range(3):
        part = slice(2 * index, 2 * index + 2)
        np.testing.assert_array_equal(data[index][0], x[part])
        np.testing.assert_array_equal(data[index][1], y[part])


def test_a_process_reads_its_part(files):
    folder, x, y = files
    data = WindowedArrays(folder / "x.npy", (folder / "y.h5", "labels"), 2)
    rows, columns = (slice(0, 5), slice(5, 9)), (slice(0, 4), slice(4, 8))
    try:
        for rank in range(4):
            on_mesh(rank)
            where = (slice(None), rows[rank // 2], columns[rank % 2])
            batch, labels = data.read_share(1, lambda count: slice(0, count))
            for found, whole in ((batch, x[2:4]), (labels, y[2:4])):
                assert found.shape == whole.shape
                np.testing.assert_array_equal(found[where], whole[where])
                assert np.count_nonzero(found) == np.count_nonzero(whole[where])
    finally:
        replica.set_current(None)


def test_what_is_no_image_is_read_whole():
    x, y = np.ones((4, 6, 6, 2)), np.arange(4)
    try:
        on_mesh(0)
        batch, labels = WindowedArrays(x, y, 4)[0]
        assert batch.sum() == 4 * 3 * 3 * 2
        np.testing.assert_array_equal(labels, y)
    finally:
        replica.set_current(None)


def test_bad_arguments(tmp_path):
    with pytest.raises(ValueError, match="as many samples in y as in x, 4, got 3"):
        WindowedArrays(np.ones((4, 6, 6, 2)), np.ones(3))
    with pytest.raises(ValueError, match="batch_size: expected an integer of 1 or more, got 0"):
        WindowedArrays(np.ones((4, 6, 6, 2)), batch_size=0)
    with pytest.raises(ValueError, match="x: expected a path"):
        WindowedArrays(3)


def test_equal_files_have_one_digest(files):
    folder, x, y = files
    digest = WindowedArrays(folder / "x.npy", (folder / "y.h5", "labels"), 2).digest()
    assert digest == WindowedArrays(x, y, 2).digest()
    assert digest != WindowedArrays(x, y, 1).digest()
    assert digest != WindowedArrays(x, y[::-1], 2).digest()


def test_nothing_of_other_parts_is_copied():
    """What stands in where other processes have more samples takes no memory: zeros, which nobody has touched."""

    class Share(replica.Replica):
        size = 2

        def counted(self, size, whole):
            return 0, 4

        def share(self, count):
            return slice(0, count)

    replica.set_current(Share())
    try:
        data = StreamData(WindowedArrays(np.ones((4, 6, 6, 2)), np.ones((4, 6, 6)), 4))
        assert data.first().size == 4
        x, y, _ = data._stand_in
        assert (x.shape, y.shape, x.any(), y.any()) == ((1, 6, 6, 2), (1, 6, 6), False, False)
    finally:
        replica.set_current(None)


def test_arrays_of_tiff_and_zarr(files, tmp_path):
    """Whatever reads when it is sliced; here a zarr array and the pages of a TIFF file, where these libraries are."""
    _, x, y = files
    zarr, tifffile = pytest.importorskip("zarr"), pytest.importorskip("tifffile")
    stored = zarr.open(str(tmp_path / "x.zarr"), mode="w", shape=x.shape, chunks=(1, 4, 4, 3), dtype=x.dtype)
    stored[:] = x
    tifffile.imwrite(tmp_path / "y.tif", y.astype("int32"), photometric="minisblack")
    pages = tifffile.imread(tmp_path / "y.tif", aszarr=True)
    try:
        on_mesh(3)
        labels = zarr.open(pages, mode="r")
        batch, found = WindowedArrays(stored, labels, 2).read_share(1, lambda count: slice(0, count))
        np.testing.assert_array_equal(batch[:, 5:9, 4:8], x[2:4, 5:9, 4:8])
        np.testing.assert_array_equal(found[:, 5:9, 4:8], y[2:4, 5:9, 4:8])
    finally:
        replica.set_current(None)
        pages.close()
