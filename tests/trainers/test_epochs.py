"""Epochs of `fit`: how many batches they have, where they go on, and what is said where data ends."""

import numpy as np
import pytest

import pydtconv
from pydtconv import layers, optimizers
from pydtconv.cli.data import Batches, Mixed
from pydtconv.compat.tensorflow.folder import FolderDataset
from pydtconv.preprocessing import image
from pydtconv.trainers.data_adapters.streams import StreamData
from pydtconv.trainers.epochs import Epochs
from pydtconv.utils import PyDataset, image_dataset_from_directory
from tests.trainers.small_models import XS, YS, line


class _Parts(PyDataset):
    def __len__(self):
        return 5

    def __getitem__(self, i):
        return XS[2 * i : 2 * i + 2, None], YS[2 * i : 2 * i + 2, None]


def _walked(kind, folder):
    """Data sets of this package, of 20 samples that tell their number, in batches of 2."""
    x = np.arange(20, dtype="float32").reshape(20, 1, 1, 1)
    if kind == "iterator":
        return image.ImageDataGenerator().flow(x, x[:, 0, 0, 0], batch_size=2, seed=3)
    if kind in ("batches", "mixed"):
        batches = Batches(x, np.eye(20, dtype="float32"), 2, 3)
        return batches if kind == "batches" else Mixed(batches, 1.0, 3)
    pil = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    for i in range(20):
        pil.new("L", (1, 1), i).save(folder / f"{i:02}.png")
    options = {"labels": list(range(20)), "image_size": (1, 1), "color_mode": "grayscale", "batch_size": 2, "seed": 3}
    found = image_dataset_from_directory(folder, verbose=False, workers=1 + (kind == "threads"), **options)
    return FolderDataset(found) if kind == "compat" else found


def _targets(data, count, state=None):
    """The targets of so many epochs of 3 steps, and the state then."""
    epochs = Epochs(StreamData(data), 3, 1)
    if state:
        epochs.set_state(state)
    seen = [[np.asarray(batch.y) for _, batch in epochs] for _ in range(count)]
    epochs.done = 0  # as `fit` has it between epochs
    return [np.flatnonzero(y.sum(0)) if y.ndim == 2 else y for epoch in seen for y in epoch], epochs.get_state()


@pytest.mark.parametrize("kind", ["iterator", "batches", "mixed", "folder", "threads", "compat"])
def test_epochs_of_fewer_steps_than_a_walk_give_each_sample_once(kind, tmp_path):
    data = _walked(kind, tmp_path)
    with pytest.warns(UserWarning, match="ran out of data"):
        whole, _ = _targets(data, 9)
    walks = np.concatenate(whole[:10]), np.concatenate(whole[10:20])
    assert [sorted(walk) for walk in walks] == [list(range(20))] * 2
    assert not np.array_equal(*walks)
    first, state = _targets(_walked(kind, tmp_path), 2)
    with pytest.warns(UserWarning, match="ran out of data"):
        rest, _ = _targets(_walked(kind, tmp_path), 7, state)
    np.testing.assert_array_equal(np.concatenate(first + rest), np.concatenate(whole))


def test_a_data_set_of_ones_own_changes_between_epochs_at_once():
    """As in Keras."""

    class Own(_Parts):
        turn = 0

        def __getitem__(self, i):
            return XS[:2, None], np.full((2, 1), 10 * self.turn + i)

        def on_epoch_end(self):
            self.turn += 1

    found = Own()
    epochs = Epochs(StreamData(found), 2, 1)
    assert [[int(batch.y[0, 0]) for _, batch in epochs] for _ in range(2)] == [[0, 1], [12, 13]]
    assert found.turn == 2


def _endless():
    while True:
        yield from (_Parts()[i] for i in range(5))


@pytest.mark.parametrize(
    ("data", "again"), [(lambda: (XS[:, None], YS[:, None]), True), (_Parts, True), (_endless, False)]
)
def test_validation_steps_are_of_the_same_batches_in_each_epoch(data, again):
    """Where data can begin again: a generator goes on."""
    model = line(optimizer=optimizers.SGD(0.0))
    options = {"epochs": 3, "batch_size": 2, "validation_data": data(), "validation_steps": 1, "verbose": 0}
    found = model.fit(XS[:, None], YS[:, None], **options).history["val_loss"]
    parts = [np.mean(YS[2 * i : 2 * i + 2] ** 2) for i in range(3)]
    np.testing.assert_allclose(found, [parts[0]] * 3 if again else parts, rtol=1e-5)


def test_initial_epoch_steps_and_validation_frequency():
    model = line()
    history = model.fit(
        XS[:, None],
        YS[:, None],
        batch_size=2,
        initial_epoch=2,
        epochs=4,
        steps_per_epoch=2,
        validation_data=(XS[:, None], YS[:, None]),
        validation_freq=2,
        verbose=0,
    )
    assert history.epoch == [2, 3]
    assert len(history.history["loss"]) == 2
    assert len(history.history["val_loss"]) == 1
    assert int(model.optimizer.iterations) == 4


@pytest.mark.parametrize("own", [False, True])
def test_an_epoch_without_batches_is_none(own, tmp_path):
    class Own(pydtconv.Sequential):
        def train_step(self, data):
            return super().train_step(data)

    model = (Own if own else pydtconv.Sequential)([layers.Input((2,)), layers.Dense(1)])
    model.compile("sgd", "mse")
    best = pydtconv.callbacks.ModelCheckpoint(tmp_path / "a.weights.h5", "loss", 0, True, True)
    batch = np.ones((2, 2)), np.ones((2, 1))
    with pytest.warns(UserWarning, match="ran out of data"):
        history = model.fit((batch for _ in range(2)), epochs=3, verbose=0, callbacks=[best])
    assert history.epoch == [0]
    assert best.best == history.history["loss"][0] > 0
    with pytest.raises(ValueError, match="expected at least one batch, got an empty generator"):
        model.fit((batch for _ in ()), verbose=0)


def test_a_generator_that_ran_dry_warns_and_stops():
    model = line()
    with pytest.warns(UserWarning, match="ran out of data"):
        history = model.fit(((XS[:5, None], YS[:5, None]) for _ in range(3)), steps_per_epoch=2, epochs=4, verbose=0)
    assert int(model.optimizer.iterations) == 3
    assert len(history.epoch) == 2


def test_validation_data_that_are_used_up_have_no_results():
    data = iter([(XS[:5, None], YS[:5, None]), (XS[5:, None], YS[5:, None])])
    with pytest.warns(UserWarning, match="validation has fewer batches"):
        found = line().fit(XS[:, None], YS[:, None], epochs=3, validation_data=data, verbose=0).history
    assert [len(found["loss"]), len(found["val_loss"])] == [3, 1]
