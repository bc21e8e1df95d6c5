"""What each option of `pydtconv train` does, on one tiny network and the digits of the package."""

import csv
import os
import re
import tomllib
import types

import numpy as np
import pytest

from pydtconv import Model, applications, config
from pydtconv.cli import build_parser, data, main, rates, reports, searches
from pydtconv.utils import PyDataset, save_img

BASE = ["train", "--model", "mlp", "--dataset", "digits", "--samples", "40", "--batch-size", "10", "--epochs", "1"]


@pytest.fixture
def train(tmp_path, monkeypatch, capsys):
    """A function of options: trains; gives the models, histories and data of all `fit`s, and what is said."""
    monkeypatch.chdir(tmp_path)
    config.set_num_threads(1)
    fit = Model.fit

    def run(*options, base=BASE):
        seen = []

        def noted(self, *given, **others):
            history = fit(self, *given, **others)
            seen.append((self, history, given))
            return history

        with monkeypatch.context() as patched:
            patched.setattr(Model, "fit", noted)
            assert main([*base, *options]) == 0, capsys.readouterr().err
        models, histories, given = zip(*seen, strict=True) if seen else ((), (), ())
        text = capsys.readouterr().out
        return types.SimpleNamespace(models=models, histories=histories, data=given, text=text)

    return run


def weights(classes=10, shape=(8, 8, 1), path="mlp.weights.h5"):
    model = applications.MLP(shape, classes)
    model.load_weights(path)
    return model.get_weights()


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("cosine", [0.05, 0.025, 0.0]),
        ("step", [0.05, 0.05, 0.0005]),
        ("onecycle", [0.002, 0.05 * np.cos(np.pi / 7) ** 2, 0.0]),
        ("constant", [0.05, 0.05, 0.05]),
        ("plateau", [0.05, 0.05, 0.05]),
    ],
)
def test_schedules(schedule, expected):
    args = build_parser().parse_args([*BASE, "--epochs", "5", "--schedule", schedule])
    optimizer, found = rates.optimizer(args, steps=20), []
    for step in (0, 50, 100):
        optimizer.iterations.assign(step)
        found.append(float(optimizer.learning_rate))
    np.testing.assert_allclose(found, expected, atol=1e-12)
    names = [type(callback).__name__ for callback in rates.callbacks(args)]
    assert names == (["ReduceLROnPlateau"] if schedule == "plateau" else [])


def test_how_long(train):
    stopped = train("--epochs", "5", "--early-stopping", "1", "--learning-rate", "1e-12", "--weight-decay", "0")
    assert len(stopped.histories[0].epoch) < 5
    short = train("--steps-per-epoch", "2", "--epochs", "3")
    assert int(short.models[0].optimizer.iterations) == 6


def test_fine_tuning(train):
    train("--output", "old", "--epochs", "1")
    old = weights(path="old.weights.h5")
    found = train("--pretrained", "old.weights.h5", "--freeze", "1", "--head-epochs", "2", "--csv", "epochs.csv")
    assert [len(history.epoch) for history in found.histories] == [2, 1]
    with open("epochs.csv") as file:
        assert [row["epoch"] for row in csv.DictReader(file)] == ["0", "1", "2"]
    new = weights()
    for before, after in zip(old[:-2], new[:-2], strict=True):
        np.testing.assert_array_equal(before, after)
    assert not np.array_equal(old[-2], new[-2])
    found = train("--pretrained", "old.weights.h5", "--classes", "12", "--head-epochs", "1", "--learning-rate", "1e-9")
    assert found.text.count("new, since old.weights.h5 does not fit: layer 'dense") == 1
    assert len(found.models[0].trainable_variables) == 6
    np.testing.assert_allclose(weights(12)[0], old[0], atol=1e-4)
    assert main([*BASE, "--freeze", "dens"]) == 2
    assert main([*BASE, "--weights", "old.weights.h5", "--classes", "12"]) == 2


def test_the_epochs_of_the_head_are_watched_as_the_others_are(tmp_path, monkeypatch):
    found = []

    def fit(self, *data, callbacks, **options):
        found.append(sorted(type(each).__name__ for each in callbacks))
        return types.SimpleNamespace(history={"loss": [1.0], "val_loss": [1.0], "val_accuracy": [0.5]})

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Model, "fit", fit)
    options = ["--head-epochs", "1", "--debug-nan", "--split", "0.5:2x2:0.2", "--csv", "epochs.csv"]
    assert main([*BASE, *options, "--model", "resnet20"]) == 0
    assert found == [["CSVLogger", "PreciseBatchNorm", "TerminateOnNaN"]] * 2


def test_a_loss_of_the_head_that_is_not_finite_ends_training(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["--head-epochs", "2", "--debug-nan", "--learning-rate", "1e38", "--csv", "epochs.csv"]
    assert main([*BASE, *words]) == 1
    assert "first not finite: layer" in capsys.readouterr().err
    assert not (tmp_path / "epochs.csv").exists()


def test_images_and_labels(train):
    found = train("--mixup", "0.4", "--label-smoothing", "0.1", "--randaugment")
    (mixed,) = found.data[0]
    labels = mixed[0][1]
    np.testing.assert_allclose(labels.sum(-1), 1, rtol=1e-5)
    assert ((labels > 0.01) & (labels < 0.99)).any()
    assert found.models[0].loss.get_config()["label_smoothing"] == 0.1
    assert "RandAugment" in [type(layer).__name__ for layer in found.models[0].layers]
    state, before = mixed.get_state(), mixed[0]
    mixed.on_epoch_end()
    assert not np.array_equal(mixed[0][0], before[0])
    mixed.set_state(state)
    np.testing.assert_array_equal(mixed[0][0], before[0])
    assert isinstance(mixed, PyDataset)


def test_loss_and_averages(train):
    found = train("--loss", "mean_squared_error", "--metrics", "mean_absolute_error", "--ema", "0.5")
    assert found.models[0].loss == "mean_squared_error"
    assert re.search(r"test mean_absolute_error \d", found.text)
    optimizer = found.models[0].optimizer
    assert optimizer.use_ema
    assert optimizer.ema_momentum == 0.5
    averages = weights()
    train("--loss", "mean_squared_error")
    assert not np.array_equal(averages[0], weights()[0])


def test_data(train):
    split = train("--validation-split", "0.25")
    assert len(split.data[0][0]) == 30
    synthetic = train("--synthetic", "12", "--image-size", "4", base=["train", "--model", "mlp", "--epochs", "1"])
    assert synthetic.data[0][0].shape == (12, 4, 4, 3)


def test_what_is_written(train, tmp_path):
    pytest.importorskip("tensorboard")
    pytest.importorskip("matplotlib")
    train("--csv", "a.csv", "--tensorboard", "events", "--confusion-matrix", "matrix.png")
    assert (tmp_path / "a.csv").read_text().startswith("epoch,accuracy,loss,val_accuracy,val_loss\n0,")
    assert [*(tmp_path / "events").rglob("events.out.*")]
    assert (tmp_path / "matrix.png").read_bytes()[1:4] == b"PNG"


def test_confusion_matrix():
    model = types.SimpleNamespace(predict=lambda x, **options: np.eye(3)[[0, 1, 1, 2]])
    for labels in (np.array([0, 1, 2, 2]), np.eye(3)[[0, 1, 2, 2]]):
        found = data.Data(None, (np.zeros(4), labels), (1,), 3)
        assert reports.confusion_matrix(model, found, 2).tolist() == [[1, 0, 0], [0, 1, 0], [0, 1, 1]]


def test_a_run_is_repeated(train, tmp_path):
    train("--seed", "5", "--augment", "--learning-rate", "0.01", "--metrics", "accuracy", "sparse_categorical_accuracy")
    first, text = weights(), (tmp_path / "mlp.toml").read_text()
    assert "seed = 5\n" in text
    (tmp_path / "mlp.weights.h5").unlink()
    train("--config", "mlp.toml", base=["train"])
    for before, after in zip(first, weights(), strict=True):
        np.testing.assert_array_equal(before, after)
    assert (tmp_path / "mlp.toml").read_text() == text
    train("--config=mlp.toml", "--seed", "6", base=["train"])
    assert "seed = 6\n" in (tmp_path / "mlp.toml").read_text()
    (tmp_path / "bad.toml").write_text("epoch = 3\n")
    with pytest.raises(SystemExit):
        main(["train", "--config", "bad.toml"])


@pytest.mark.parametrize("text", ['model = "mlp"\n', "", "[project]\n"])
def test_a_file_that_no_run_has_written_is_not_replaced(text, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Model, "fit", None)
    (tmp_path / "mlp.toml").write_text(text)
    options = ["--config", "mlp.toml"] if "model" in text else []
    for name in ("MLP", "mlp"):
        assert main([*BASE, *options, "--model", name]) == 2
        assert "--output: expected another name than 'mlp': mlp.toml, which" in capsys.readouterr().err
    assert (tmp_path / "mlp.toml").read_text() == text
    assert not (tmp_path / "mlp.weights.h5").exists()


def test_searches(train, tmp_path):
    pytest.importorskip("matplotlib")
    found = train("--find-learning-rate", "rates.png")
    rate = float(re.search(r"learning rate: (\S+),", found.text)[1])
    assert 1e-6 <= rate <= 1
    assert sum(len(history.epoch) for history in found.histories) > 1
    found = train("--find-batch", "--memory-limit", "12")
    size = int(re.search(r"largest batch within 12.0 MiB: (\d+), with a peak of \d+ MiB", found.text)[1])
    assert not found.histories
    assert not (tmp_path / "mlp.weights.h5").exists()
    assert size > 1


def test_the_loss_over_rates_is_that_of_each_step(train):
    args = build_parser().parse_args(BASE)
    found = data.load(args, training=True)
    model = applications.MLP((8, 8, 1), dropout=0.0)
    model.compile("sgd", "sparse_categorical_crossentropy")
    first = float(model.evaluate(*found.train, verbose=0))
    grown, losses = searches.losses_over_rates(model, found.train, 4, batch_size=10)
    assert grown[0] == 1e-6
    assert len(losses) == len(grown) > 4
    np.testing.assert_allclose(losses[:4].mean(), first, rtol=0.1)
    assert losses[:4].std() > 0


@pytest.fixture
def photos(tmp_path):
    """A function of names: makes photos/ with a folder for each, of two images."""
    pytest.importorskip("PIL")

    def make(*names):
        for number, name in enumerate(names):
            folder = os.path.join(os.fsencode(tmp_path), b"photos", os.fsencode(name))
            os.makedirs(folder)
            for i in range(2):
                image = np.full((4, 4, 3), 99 * number + i)
                save_img(tmp_path / "photos" / f"{i}.png", image, scale=False)
                os.replace(tmp_path / "photos" / f"{i}.png", os.path.join(folder, b"%d.png" % i))

    return make


PHOTOS = ["train", "--model", "mlp", "--data", "photos", "--image-size", "4", "--validation-split", "0.5"]


def test_classes_that_have_no_folder_are_called_by_their_numbers(train, photos, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    photos("cat", "dog")
    train("--classes", "4", "--epochs", "1", "--confusion-matrix", "matrix.png", base=PHOTOS)
    text = (tmp_path / "mlp.toml").read_text()
    assert tomllib.loads(text)["result"]["names"] == ["cat", "dog", "2", "3"]
    (tmp_path / "mlp.toml").write_text(text.replace(', "2", "3"', ""))
    assert main(["predict", "photos/cat/0.png", "--trained", "mlp.toml", "--top", "5"]) == 0
    words = capsys.readouterr().out.splitlines()[1].split(",")
    assert sorted(words[1::2]) == ["2", "3", "cat", "dog"]


@pytest.mark.parametrize("flag", ["--output", "--data", "--csv"])
def test_options_that_are_not_utf8_are_refused(flag, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Model, "fit", None)
    assert main([*(PHOTOS if flag == "--data" else BASE), flag, os.fsdecode(b"a\xff")]) == 2
    assert f"{flag}: expected text that is UTF-8, got 'a\\udcff'" in capsys.readouterr().err


def test_names_of_files_are_any_bytes(train, photos, tmp_path, monkeypatch):
    photos("\U0001f436", os.fsdecode(b"\xff"))
    train("--epochs", "1", base=PHOTOS)
    names = tomllib.loads((tmp_path / "mlp.toml").read_text())["result"]["names"]
    assert sorted(names) == ["\\udcff", "\U0001f436"]
    predict = ["predict", "photos", "--trained", "mlp.toml", "--image-size", "4"]
    assert main([*predict, "--csv", "found.csv"]) == 0
    table = (tmp_path / "found.csv").read_bytes()
    assert b"photos/\xff/0.png," in table
    with open(tmp_path / "out", "w", encoding="utf-8") as file, monkeypatch.context() as patched:
        patched.setattr("sys.stdout", file)
        assert main(predict) == 0
        file.flush()
        assert (tmp_path / "out").read_bytes() == table
        patched.chdir(tmp_path / "photos" / os.fsdecode(b"\xff"))  # its name is in the paths that are printed
        assert main(BASE) == 0


@pytest.mark.slow
def test_predict_names_what_train_has_learned(train, tmp_path, capsys):
    pytest.importorskip("PIL")
    for name, level in (("dark", 20), ("light", 230)):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for i in range(8):
            save_img(tmp_path / "photos" / name / f"{i}.png", np.full((9, 9, 3), level + i), scale=False)
    words = ["--data", "photos", "--image-size", "8", "--validation-split", "0.25", "--batch-size", "4"]
    base = ["train", "--model", "mlp", "--optimizer", "adam", "--epochs", "20", "--confusion-matrix", "matrix.png"]
    train(*words, base=base)
    assert main(["predict", "photos", "--trained", "mlp.toml"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "file,class,score"
    assert all(line.split("/")[1] == line.split(",")[1] for line in lines[1:])
    assert main(["predict", "photos/dark/1.png", "--trained", "mlp.toml", "--top", "2", "--csv", "found.csv"]) == 0
    assert (tmp_path / "found.csv").read_text().splitlines()[0] == "file,class1,score1,class2,score2"
    assert main(["predict", "nowhere", "--trained", "mlp.toml"]) == 2


def test_models_lists_what_networks_take(capsys):
    assert main(["models"]) == 0
    assert set(re.findall(r"[\w]+", capsys.readouterr().out)) >= set(applications.names())
    assert main(["models", "mlp", "mnistconv*", "--batch-size", "2"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert [row[:3] for row in rows] == [["mlp", "28x28x1", "669,706"], ["mnistconvnet", "28x28x1", "34,826"]]
    assert main(["models", "resnet19"]) == 2
    assert "resnet18" in capsys.readouterr().err
