"""BackupAndRestore: a run that is interrupted and goes on has the bits of one that is not."""

import signal
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import pydtconv
from pydtconv import callbacks, layers, metrics, optimizers, replica, utils
from tests.callbacks.resuming import EPOCHS, RNG, Break, Broken, X, Y, check_resumed, fit, network, state_of
from tests.marks import slow

OPTIMIZERS = {
    "sgd": lambda: optimizers.SGD(0.01),
    "momentum": lambda: optimizers.SGD(0.01, momentum=0.9, nesterov=True, weight_decay=1e-3),
    "rmsprop": lambda: optimizers.RMSprop(momentum=0.5, centered=True),
    "adam": lambda: optimizers.Adam(amsgrad=True),
    "adamw": lambda: optimizers.AdamW(),
    "adamax": lambda: optimizers.Adamax(),
    "nadam": lambda: optimizers.Nadam(),
    "adagrad": lambda: optimizers.Adagrad(),
    "adadelta": lambda: optimizers.Adadelta(),
    "ftrl": lambda: optimizers.Ftrl(),
    "lion": lambda: optimizers.Lion(),
    "lamb": lambda: optimizers.Lamb(),
    "adafactor": lambda: optimizers.Adafactor(),
    "lars": lambda: optimizers.Lars(weight_decay=0.01),
    "muon": lambda: optimizers.Muon(),
    "schedulefree": lambda: optimizers.ScheduleFreeAdamW(),
    "average": lambda: optimizers.SGD(0.01, use_ema=True, ema_overwrite_frequency=5),
    "accumulation": lambda: optimizers.Adam(gradient_accumulation_steps=3, clipnorm=0.1),
    "schedule": lambda: optimizers.SGD(optimizers.schedules.CosineDecay(0.05, 20)),
    "scaled": lambda: optimizers.LossScaleOptimizer(optimizers.Adam()),
}


# the others differ in their formulas, which tests/optimizers knows
QUICK = ("momentum", "accumulation")


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in OPTIMIZERS]
)
def test_every_optimizer(name, tmp_path):
    check_resumed(tmp_path, lambda: network(OPTIMIZERS[name]()))


def test_every_optimizer_is_among_them():
    kinds = {type(make()).__name__ for make in OPTIMIZERS.values()}
    assert kinds == {name for name in optimizers.__all__ if name[0].isupper()} - {"Optimizer"}


PLACES = [(at, save_freq) for at in ((1, 0), (1, 1), (1, 7), (2, 7)) for save_freq in ("epoch", 1, 5, 8)]
QUICK_PLACES = [((1, 7), "epoch"), ((2, 7), 1)]


@pytest.mark.parametrize(
    ("at", "save_freq"),
    [place if place in QUICK_PLACES else pytest.param(*place, marks=pytest.mark.slow) for place in PLACES],
    ids=str,
)
def test_at_any_place(at, save_freq, tmp_path):
    check_resumed(tmp_path, at=at, save_freq=save_freq, validation_data=(X[:20], Y[:20]))


@pytest.mark.parametrize(
    "arguments",
    [
        slow({"shuffle": False}),
        {"shuffle": "batch", "class_weight": {0: 2.0, 3: 0.5}},
        slow({"steps_per_epoch": 4, "at": (1, 2)}),
        {"steps_per_epoch": 2, "at": (2, 1), "save_freq": 1},
        slow({"steps_per_epoch": 2, "at": (2, 0), "save_freq": "epoch"}),
        slow({"validation_split": 0.2, "validation_steps": 1, "validation_batch_size": 4}),
        {"validation_split": 0.2, "validation_freq": 2},
    ],
    ids=str,
)
def test_arguments_of_fit(arguments, tmp_path):
    check_resumed(tmp_path, **arguments)


@pytest.mark.parametrize(("at", "save_freq"), [((1, 6), 2), ((2, 0), 1)])
def test_steps_per_execution(at, save_freq, tmp_path):
    check_resumed(tmp_path, lambda: network(steps_per_execution=3), at=at, save_freq=save_freq)


class _Own(pydtconv.Model):
    """A step whose results no metric has."""

    def train_step(self, data):
        return {**super().train_step(data), "largest": pydtconv.ops.max(data[0])}


@pytest.mark.parametrize("at", [(1, 4), (2, 0)])
def test_steps_of_ones_own(at, tmp_path):
    def make():
        inputs = layers.Input((8, 8, 3))
        x = layers.Dropout(0.2)(layers.GlobalAveragePooling2D()(layers.Conv2D(4, 3)(inputs)))
        model = _Own(inputs, layers.Dense(4, "softmax")(layers.Dense(4)(x)))
        model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
        return model

    check_resumed(tmp_path, make, at=at, save_freq=1)


class _Two(pydtconv.Model):
    """Two optimizers, of which compile has none."""

    def train_step(self, data):
        x, y = data
        first, second = self.layers[-2].trainable_variables, self.layers[-1].trainable_variables
        with pydtconv.GradientTape() as tape:
            loss = self.compute_loss(y=y, y_pred=self(x, training=True))
        of_first, of_second = tape.gradient(loss, [first, second])
        self.first_optimizer.apply(of_first, first)
        self.second_optimizer.apply(of_second, second)
        return {"loss": loss}


def test_optimizers_of_ones_own(tmp_path):
    def make():
        inputs = layers.Input((8, 8, 3))
        x = layers.Dense(4)(layers.GlobalAveragePooling2D()(inputs))
        model = _Two(inputs, layers.Dense(4, "softmax")(x))
        model.compile("adam", "sparse_categorical_crossentropy")
        model.first_optimizer = optimizers.Adam(0.1)
        model.second_optimizer = optimizers.Lamb(0.1)
        return model

    check_resumed(tmp_path, make)


class _Counting(layers.Layer):
    """Keeps a number and a text that are no variables by Keras's methods for that."""

    count, text = 0, ""

    def call(self, x):
        return x

    def save_own_variables(self, store):
        store["count"] = np.array(self.count)

    def load_own_variables(self, store):
        self.count = int(store["count"])

    def save_assets(self, folder):
        Path(folder, "text").write_text(self.text)

    def load_assets(self, folder):
        self.text = Path(folder, "text").read_text()


def test_what_layers_write_for_themselves(tmp_path):
    class Count(callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            layer = self.model.layers[0]
            layer.count, layer.text = layer.count + 1, f"{layer.text}{epoch}"

    def make():
        model = pydtconv.Sequential([layers.Input((8, 8, 3)), _Counting(), layers.Flatten(), layers.Dense(4)])
        model.compile("sgd", "mse")
        return model

    data = X, np.zeros((len(X), 4), "float32")
    with pytest.raises(Broken):
        fit(make(), tmp_path, Count(), Break(1, 4), data=data)
    resumed = make()
    fit(resumed, tmp_path, Count(), data=data)
    assert (resumed.layers[0].count, resumed.layers[0].text) == (EPOCHS, "012")


def test_metrics_within_an_epoch(tmp_path):
    def make():
        inputs = layers.Input((8, 8, 3))
        x = layers.Dropout(0.2)(layers.GlobalAveragePooling2D()(layers.Conv2D(4, 3)(inputs)))
        outputs = [layers.Dense(4, "softmax", name="a")(x), layers.Dense(1, "sigmoid", name="b")(x)]
        model = pydtconv.Model(inputs, outputs)
        labels = [metrics.AUC(multi_label=True, name="u"), metrics.F1Score(), metrics.Recall(name="r")]
        signs = [metrics.AUC(name="v"), metrics.Precision([0.3, 0.6], name="p"), metrics.MeanSquaredError()]
        model.compile("adam", ["categorical_crossentropy", "binary_crossentropy"], metrics=[labels, signs])
        return model

    targets = [np.eye(4, dtype="float32")[Y], (Y[:, None] > 1).astype("float32")]
    resumed = check_resumed(tmp_path, make, data=lambda: (X, targets), validation_data=(X, targets))
    assert len(resumed.metrics) == 4
    assert len(resumed.metrics[1].metrics) == 6


@pytest.mark.parametrize("save_freq", [slow("epoch"), 3])
def test_callbacks_go_on(save_freq, tmp_path):
    def others():
        return [
            callbacks.EarlyStopping("loss", patience=1, min_delta=10, restore_best_weights=True),
            callbacks.ReduceLROnPlateau("loss", patience=1, min_delta=10, factor=0.5, cooldown=1),
            callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.9),
            callbacks.ModelCheckpoint(tmp_path / "best.keras", "loss", save_best_only=True, mode="max"),
        ]

    resumed = check_resumed(tmp_path, others=others, save_freq=save_freq, epochs=6, at=(1, 4))
    assert resumed.history.epoch == [0, 1]  # stopped early


def test_training_that_was_stopped_early_is_not_gone_on_with(tmp_path):
    def run():
        utils.set_random_seed(1)
        model = network()
        backup = callbacks.BackupAndRestore(tmp_path, delete_checkpoint=False)
        stop = callbacks.EarlyStopping("loss", patience=0, min_delta=10)
        return model, model.fit(X, Y, epochs=5, verbose=0, callbacks=[backup, stop])

    first, second = run(), run()
    assert first[1].epoch == second[1].epoch == [0, 1]
    assert state_of(*first) == state_of(*second)


def test_a_finished_training_goes_on_with_more_epochs(tmp_path):
    def run(epochs, folder, seed):
        utils.set_random_seed(seed)
        model = network()
        backup = callbacks.BackupAndRestore(folder, delete_checkpoint=False)
        return state_of(model, model.fit(X, Y, epochs=epochs, verbose=0, callbacks=[backup]))

    run(2, tmp_path / "a", 1)
    assert run(4, tmp_path / "a", 2) == run(4, tmp_path / "b", 1)
    assert run(4, tmp_path / "a", 3) == run(4, tmp_path / "b", 4)


class _Told(replica.Replica):
    """Another process is sent SIGTERM after the last step."""

    def share_signals(self, what):
        self.asked = signal.SIGTERM


def test_a_signal_to_another_process_after_the_last_step(tmp_path):
    replica.set_current(_Told())
    try:
        with pytest.raises(SystemExit, match=str(128 + signal.SIGTERM)):
            network().fit(X, Y, verbose=0, callbacks=[callbacks.BackupAndRestore(tmp_path / "saved")])
    finally:
        replica.set_current(None)
    assert list((tmp_path / "saved").glob("checkpoint-*"))


@pytest.mark.parametrize("save_freq", [False, "epoch"])
def test_in_another_thread_signals_are_not_waited_for(save_freq, tmp_path):
    """What would write at signals only says that there are none; handlers stay."""
    backup = callbacks.BackupAndRestore(tmp_path, save_freq=save_freq)
    with warnings.catch_warnings(record=True) as told, ThreadPoolExecutor(1) as pool:
        warnings.simplefilter("always")
        pool.submit(network().fit, X, Y, verbose=0, callbacks=[backup]).result()
    want = (
        ["BackupAndRestore: expected fit to run in the main thread, which signals reach"] if save_freq is False else []
    )
    assert [str(warning.message).partition(": save_freq")[0] for warning in told] == want


def test_the_csv_file_has_each_epoch_once(tmp_path):
    log = tmp_path / "log.csv"
    check_resumed(tmp_path, others=lambda: [callbacks.CSVLogger(log)], at=(2, 1), save_freq=5)
    assert [line.split(",")[0] for line in log.read_text().splitlines()] == ["epoch", "0", "1", "2"]


class Shuffled(utils.PyDataset):
    """Batches in an order that changes between epochs, as Keras's documentation shows it."""

    def __init__(self, **arguments):
        super().__init__(**arguments)
        self.order = np.arange(len(X))

    def __len__(self):
        return 7

    def __getitem__(self, index):
        chosen = self.order[index * 10 : index * 10 + 10]
        return X[chosen], Y[chosen]

    def on_epoch_end(self):
        np.random.shuffle(self.order)  # noqa: NPY002


class Kept(Shuffled):
    def get_state(self):
        return {"order": self.order}

    def set_state(self, state):
        self.order = state["order"].copy()


@pytest.mark.parametrize("workers", [slow(1), 3])
@pytest.mark.parametrize("shuffle", [True, slow(False)])
def test_data_sets_with_a_state(workers, shuffle, tmp_path):
    check_resumed(tmp_path, data=lambda: (Kept(workers=workers), None), shuffle=shuffle)


def test_folders_of_images(tmp_path):
    image = pytest.importorskip("PIL.Image")
    for i in range(30):
        (tmp_path / "images" / str(i % 3)).mkdir(parents=True, exist_ok=True)
        pixels = RNG.integers(0, 255, (9, 9, 3), dtype=np.uint8)
        image.fromarray(pixels).save(tmp_path / "images" / str(i % 3) / f"{i}.png")

    def data():
        options = {"image_size": (8, 8), "batch_size": 4, "verbose": False}
        return utils.image_dataset_from_directory(tmp_path / "images", **options), None

    check_resumed(tmp_path, data=data)
    check_resumed(tmp_path / "epoch", data=data, save_freq="epoch")
    check_resumed(tmp_path / "steps", data=data, save_freq=1, steps_per_epoch=2, at=(2, 1))


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (lambda: (Shuffled(), None), r"Shuffled changes between epochs and has no get_state"),
        (lambda: (((X[:10], Y[:10]) for _ in range(100)), None), "a generator cannot be set to a position: training"),
        (lambda: (Restarting(), None), "a Restarting cannot be set to a position: its first 3 batches are read again"),
    ],
    ids=["shuffling", "generator", "iterable"],
)
def test_data_without_a_position_is_told_of(data, told, tmp_path):
    with pytest.raises(Broken):
        fit(network(), tmp_path, Break(1, 4), data=data(), steps_per_epoch=7, save_freq=10)
    with pytest.warns(UserWarning, match=told):
        history = fit(network(), tmp_path, data=data(), steps_per_epoch=7)
    assert len(history.epoch) == EPOCHS


class Restarting:
    def __iter__(self):
        return iter([(X[:10], Y[:10])] * 7)
