"""Every flag of every command changes what the command says or does, or is refused beside what it cannot serve."""

import argparse
import dataclasses
import hashlib
import re
import types

import numpy as np
import pytest

from pydtconv import Model, applications, config, datasets
from pydtconv.cli import build_parser, main, searches, simulate
from pydtconv.conv import ConvProblem, tuning
from pydtconv.graph import disk_speed
from pydtconv.utils import PyDataset, clear_session, save_img, set_random_seed

#: flags whose effect is on several processes, or that measure this machine
ELSEWHERE = {
    ("train", "--no-distribution"), ("run", "--no-distribution"), ("evaluate", "--no-distribution"),
    ("doctor", "--mesh"), ("doctor", "--quick"), ("simulate", "--neighbour"),
    *(("run", flag) for flag in ("--bucket-size", "--blocking", "--no-shared-memory", "--wire", "--shard")),
    ("run", "--check-gradients"),
    ("run", "--mesh"), ("run", "--network"), ("run", "--columns"), ("run", "-m"),
    *(("launch", f"--{flag}") for flag in ("ranks", "hosts", "restarts", "min-ranks", "backoff", "launcher")),
}  # fmt: skip
#: arguments of each command that the flags below are added to
BASE = {
    "demo": [],
    "summary": ["--model", "mlp"],
    "plan": ["--model", "resnet20", "--batch-size", "4", "--image-size", "8"],
    "train": ["--model", "mlp", "--dataset", "digits", "--samples", "8", "--batch-size", "4"],
    "evaluate": ["--model", "mlp", "--dataset", "digits", "--samples", "12", "--weights", "old.weights.h5"],
    "simulate": ["--model", "mlp", "--ranks", "1,2", "--batch-per-rank", "4"],
    "tune": ["--model", "unet", "--image-size", "16"],
    "models": ["mlp"],
    "predict": ["photos", "--model", "mlp", "--weights", "old.weights.h5", "--classes", "10", "--image-size", "8"],
}
#: what is said where a flag changes nothing
NOTHING = "changes nothing"
SHAPE = {"--image-size": ["12"], "--channels": ["1"], "--classes": ["7"]}
ON_RANKS = {
    "--mesh": (["--mesh", "batch=2"], "expected mpiexec -n 2"),
    "--network": (["--network", "1Gbps:1us"], "expected --mesh too"),
    "--columns": (["--columns", "fc*"], "expected --mesh too"),
}
REDUCTION = {
    "--bucket-size": (["--no-distribution", "--bucket-size", "2"], NOTHING),
    "--blocking": (["--no-distribution", "--blocking"], NOTHING),
    "--no-shared-memory": (["--no-distribution", "--no-shared-memory"], NOTHING),
    "--wire": (["--no-distribution", "--wire", "bfloat16"], NOTHING),
    "--shard": (["--no-distribution", "--shard", "optimizer"], NOTHING),
    "--check-gradients": (["--check-gradients"], NOTHING),
}
STEP = {
    "--optimizer": ["adam"], "--augment": [], "--randaugment": [], "--mixup": ["0.2"], "--label-smoothing": ["0.1"],
    "--loss": ["mean_squared_error"], "--ema": [], "--freeze": ["0.5"], "--memory-limit": ["1"],
    "--workspace-limit": ["0"],
}  # fmt: skip
PRECISE = {"--dtype": ["float64"], "--variant": ["CGT"], "--matmul-precision": ["medium"], "--device": ["gpu:77"]}
DATA = {
    "--data": (["--data", "photos"], "expected one of them"),
    "--dataset": ["fashion_mnist"],
    "--samples": (["--samples", "4"], NOTHING, ["--model", "mlp", "--data", "photos", "--weights", "old.weights.h5"]),
    "--image-size": (["--image-size", "16"], NOTHING),
    "--skip-bad-files": (["--skip-bad-files"], NOTHING),
    "--classes": ["12"],
    "--batch-size": ["2"],
}
#: flag -> values that change something, or (arguments, what is said of them)
FLAGS = {
    "demo": {"--epochs": ["3"], "--batch-size": ["8"], "--output": ["other.png"], "--seed": ["2"]},
    "summary": {"--model": ["resnet20"], "--dtype": ["float64"], **SHAPE},
    "plan": {
        "--model": ["mlp"], **PRECISE, **SHAPE, **STEP, "--batch-size": ["2"], "--split": ["0.5:2x2:exact"],
        "--picture": ["plan.svg"],
        "--dump": ["graphs"], "--largest-batch": (["--largest-batch"], "expected --memory-limit too"),
        "--offload": (["--offload"], "expected memory_limit too"),
        "--shard": (["--shard", "optimizer"], "expected --shard and --ranks together"),
        "--ranks": (["--ranks", "2"], "expected --shard and --ranks together"),
    },
    "train": {
        "--model": ["smallvgg16"], **PRECISE, **DATA, **ON_RANKS, **REDUCTION, "--weights": ["old.weights.h5"],
        **STEP, "--epochs": ["3"], "--learning-rate": ["1"], "--schedule": ["step"], "--early-stopping": ["2"],
        "--steps-per-epoch": ["1"], "--pretrained": ["old.weights.h5"], "--head-epochs": ["1"],
        "--synthetic": (["--synthetic", "4"], "expected neither --data nor --dataset"), "--validation-split": ["0.5"],
        "--metrics": ["mean_squared_error"], "--csv": ["epochs.csv"], "--tensorboard": ["there"],
        "--confusion-matrix": ["matrix.png"], "--config": ["run.toml"], "--find-learning-rate": ["rates.png"],
        "--find-batch": (["--find-batch"], "expected --memory-limit too"),
        "--split": ["0.5:2x2"], "--weight-decay": ["0.1"], "--base-batch-size": ["2"],
        "--warmup-epochs": (["--warmup-epochs", "1"], "expected --base-batch-size too"), "--offload": ["there"],
        "--tune": ["1"], "--checkpoint": ["saved"], "--save-every": (["--save-every", "2"], "expected --checkpoint"),
        "--keep": (["--keep", "2"], "expected --checkpoint"), "--resume": (["--resume"], "expected --checkpoint"),
        "--debug-nan": [], "--profile": ["step.json"], "--trace": ["time.prv"], "--seed": ["2"], "--output": ["other"],
        "--trace-steps": (["--trace-steps", "2"], "expected --trace FILE or --profile FILE with it"),
        "--no-sync-batchnorm": (["--no-sync-batchnorm"], NOTHING),
    },
    "evaluate": {**PRECISE, **DATA, **ON_RANKS, "--model": ["smallvgg16"], "--weights": ["other.weights.h5"]},
    "simulate": {
        "--model": ["resnet20"], **PRECISE, **SHAPE, "--profile": (["--profile", "step.json"], "one of them"),
        "--ranks": ["1,4"], "--network": ["1Gbps:1us"], "--batch-per-rank": ["2"], "--batch": ["9"],
        "--bucket-size": ["1"], "--algorithm": ["ring"], "--threads": ["1"], "--steps": ["2"],
        "--mesh": (["--mesh", "batch=2"], NOTHING), "--ranks-per-host": ["2"],
        "--memory-limit": (["--memory-limit", "1"], NOTHING), "--picture": ["other.png"],
        "--columns": (["--columns", "fc*"], NOTHING),
        "--no-sync-batchnorm": (["--no-sync-batchnorm"], NOTHING),
    },
    "models": {"--batch-size": ["2"], "--image-size": ["8"], "--classes": ["7"]},
    "predict": {
        **PRECISE, "--model": ["smallvgg16"], "--weights": ["other.weights.h5"], "--image-size": ["9"],
        "--classes": ["7"], "--batch-size": ["2"], "--top": ["2"], "--csv": ["found.csv"],
        "--trained": (["--trained", "nope.toml"], "--trained: .*nope.toml"),
    },
    "tune": {
        "--model": ["resnet20"], **PRECISE, **SHAPE, "--image-size": ["32"], "--batch-size": ["2"], "--threads": ["1"],
        "--seconds": ["2"],
        "--workspace-limit": ["0"], "--offload": ["there"], "--calibrate": (["--calibrate"], "expected no --model"),
        "--again": [], "--all-bases": [],
    },
}  # fmt: skip
for _command in ("simulate", "tune"):
    FLAGS[_command].pop("--device" if _command == "simulate" else "--variant")


def flags_of(command):
    """The options of a command, by their long names."""
    subparsers = next(a for a in build_parser()._actions if isinstance(a, argparse._SubParsersAction))
    actions = subparsers.choices[command]._actions
    return {action.option_strings[-1] for action in actions if action.option_strings} - {"--help"}


def test_each_flag_is_looked_at():
    subparsers = next(a for a in build_parser()._actions if isinstance(a, argparse._SubParsersAction))
    for command in subparsers.choices:
        known = {*FLAGS.get(command, {}), *(flag for of, flag in ELSEWHERE if of == command)}
        assert flags_of(command) == known, command


def described(value):
    """What a call was given, as a text."""
    if isinstance(value, Model):
        weights = hashlib.md5(b"".join(np.asarray(w).tobytes() for w in value.get_weights())).hexdigest()
        optimizer = value.optimizer.get_config() if value.optimizer else None
        names = [type(layer).__name__ for layer in value.layers]
        return repr(
            (
                value.count_params(),
                len(value.trainable_variables),
                names,
                value.layers[-1].dtype,
                optimizer,
                value.split,
                weights,
            )
        )
    if isinstance(value, np.ndarray):
        return repr((value.shape, value.dtype, hashlib.md5(value.tobytes()).hexdigest()))
    if isinstance(value, (list, tuple)):
        return [described(each) for each in value]
    if isinstance(value, argparse.Namespace):
        return repr(value.steps)
    if isinstance(value, tuning.Bench):
        return repr((value.device, value.all_bases))
    if isinstance(value, PyDataset):
        return repr((type(value).__name__, len(value)))
    plain = isinstance(value, (int, float, str, type(None), ConvProblem))
    return repr(value) if plain else type(value).__name__


def settings():
    names = ("conv_variant", "float32_matmul_precision", "conv_workspace_limit", "conv_tuning", "device", "num_threads")
    return {name: getattr(config, name)() for name in names} | {"dtype_policy": config.dtype_policy()}


@pytest.fixture(scope="module")
def profile():
    args = argparse.Namespace(model="mlp", image_size=4, channels=3, classes=10, steps=1)
    return simulate.measured(applications.build("mlp", (4, 4, 3), 10), args, 1)


@pytest.fixture
def seen(monkeypatch, tmp_path, capsys, profile):
    """A function of arguments: all that a command says, writes, sets and would run, without running it."""
    config.set_num_threads(2)
    before, notes = settings(), []
    rng = np.random.default_rng(0)

    def data(high):
        def load_data(image_size=8):
            images = rng.integers(0, high, (12, image_size, image_size), np.uint8)
            return ((images, np.arange(12) % 10),) * 2

        return load_data

    def noted(what, result):
        def call(*args, **kwargs):
            notes.append((what, [described(each) for each in args], {k: described(v) for k, v in kwargs.items()}))
            return result(*args) if callable(result) else result

        return call

    def timed(model, args, images):
        return dataclasses.replace(profile, batch_size=images)

    def through(name):
        method = getattr(Model, name)

        def call(self, *args, **kwargs):
            notes.append((name, [described(each) for each in args], {k: described(v) for k, v in kwargs.items()}))
            return method(self, *args, **kwargs)

        return call

    history = types.SimpleNamespace(history={"accuracy": [0.5], "val_accuracy": [0.5], "val_loss": [1.0]})
    monkeypatch.setattr(searches, "losses_over_rates", noted("rates", (np.geomspace(0.1, 1, 9), np.arange(9.0))))
    monkeypatch.setattr(Model, "compile", through("compile"))
    monkeypatch.setattr(Model, "predict", through("predict"))
    monkeypatch.setattr(datasets.digits, "load_data", data(256))
    monkeypatch.setattr(datasets.fashion_mnist, "load_data", data(99))
    monkeypatch.setattr(Model, "fit", noted("fit", history))
    monkeypatch.setattr(Model, "evaluate", noted("evaluate", (1.0, 0.5)))
    monkeypatch.setattr(tuning, "tune", noted("tune", tuning.Tuned()))
    monkeypatch.setattr(disk_speed, "measured_anew", noted("disk", types.SimpleNamespace(write=1, read=1, together=1)))
    monkeypatch.setattr(simulate, "measured", noted("measured", timed))

    def look(folder, argv):
        nonlocal rng
        folder.mkdir()
        monkeypatch.chdir(folder)
        rng = np.random.default_rng(0)
        (folder / "run.toml").write_text("epochs = 3\n")
        channels = 1
        if argv[0] == "predict":
            channels = 3
            (folder / "photos").mkdir()
            for i in range(3):
                save_img(folder / "photos" / f"{i}.png", rng.integers(0, 256, (8, 8, 3)))
        for seed in ("old", "other"):
            config.set_dtype_policy("float32")
            set_random_seed(len(seed))
            applications.build("mlp", (8, 8, channels), 10).save_weights(f"{seed}.weights.h5")
        clear_session(free_memory=False)
        set_random_seed(1)
        notes.clear()
        try:
            status = main(argv)
        except SystemExit as error:
            status = error.code
        told, now = capsys.readouterr(), settings()
        for name, value in before.items():
            if now[name] != value:
                getattr(config, f"set_{name}")(value)
        text = re.sub(r"after [0-9.]+ s", "", told.out)
        return told.err, (status, text, told.err, list(notes), sorted(path.name for path in folder.rglob("*")), now)

    return lambda name, argv: look(tmp_path / name, argv)


SLOW = ("plan", "train", "simulate", "tune", "predict")


@pytest.mark.parametrize(
    "command", [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in FLAGS]
)
def test_a_flag_changes_something_or_is_refused(command, seen):
    usual = seen("usual", [command, *BASE[command]])[1]
    assert usual[0] == 0, usual
    for flag, value in FLAGS[command].items():
        if isinstance(value, tuple):
            argv, words, base = (*value, BASE[command])[:3]
            told, found = seen(flag, [command, *base, *argv])
            assert found[0] == 2, flag
            assert re.search(words, told), (flag, told)
        else:
            assert seen(flag, [command, *BASE[command], flag, *value])[1] != usual, f"{flag} changes nothing"


@pytest.mark.parametrize(
    ("argv", "flag"),
    [
        (["tune", "--calibrate", "--again"], "--again"),
        (["tune", "--calibrate", "--all-bases"], "--all-bases"),
        (["tune", "--calibrate", "--batch-size", "2"], "--batch-size"),
        (["tune", "--calibrate", "--image-size", "8"], "--image-size"),
        (["simulate", "--profile", "step.json", "--threads", "2"], "--threads"),
        (["simulate", "--profile", "step.json", "--dtype", "float64"], "--dtype"),
        (["simulate", "--model", "mlp", "--mesh", "batch=2", "--algorithm", "ring"], "--algorithm"),
        (["simulate", "--model", "mlp", "--mesh", "batch=2", "--picture", "x.png"], "--picture"),
    ],
)
def test_what_would_change_nothing_is_refused(argv, flag, capsys):
    assert main(argv) == 2
    assert f"{flag}: {NOTHING} with --" in capsys.readouterr().err


#: options whose value can be wrong by itself: a wrong value, and what is said of it before anything is loaded or built
WRONG = {
    "--model": ("foo", "--model: no model is called 'foo'"),
    "--dtype": ("fp16", "--dtype: .*'fp16'"),
    "--variant": ("CGX", "--variant: unknown variant 'CGX'; did you mean CGT"),
    "--matmul-precision": ("best", "--matmul-precision: .*'best'"),
    "--device": ("gpu:77", "--device: "),
    "--weights": ("nope.h5", "--weights: expected a file, found none at 'nope.h5'; did you mean note.h5"),
    "--dataset": ("mnits", "--dataset: unknown data set 'mnits'; did you mean mnist"),
    "--data": ("nowhere", "--data and --dataset: expected one of them"),
    "--split": ("a:b", "--split: .*'a:b'"),
    "--offload": ("nowhere", "offload: expected |nowhere"),
    "--output": ("file/weights", "--output: "),
    "--profile": ("file/step.json", "--profile: |--model or --profile"),
    "--trace": ("file/time.json", "--trace: "),
    "--picture": ("file/plan.png", "--picture: "),
    "--tune": ("-1", "--tune: expected seconds"),
    "--warmup-epochs": ("1", "--warmup-epochs: expected --base-batch-size"),
    "--checkpoint": ("file", "--checkpoint: "),
    "--keep": ("1", "--keep: expected --checkpoint"),
    "--save-every": ("1", "--save-every: expected --checkpoint"),
    "--resume": (None, "--resume: expected --checkpoint"),
    "--mesh": ("batch=2", "--mesh.*: expected |with --mesh"),
    "--columns": ("fc1,,fc2", "--columns: expected names of dense layers with commas between them, got 'fc1,,fc2'"),
    "--network": ("fast", "--network.*: |network: "),
    "--algorithm": ("tree", "--algorithm: unknown algorithm 'tree'"),
    "--ranks": ("4,2", "--ranks: expected (growing numbers|an integer)"),
    "--ranks-per-host": ("0", "--ranks-per-host: expected 1 or more"),
    "--batch-per-rank": ("0", "--batch-per-rank: expected 1 or more"),
    "--batch": ("0", "--batch: expected 1 or more"),
    "--steps": ("0", "--steps: expected 1 or more"),
    "--threads": ("0", "threads: expected"),
    "--seconds": ("0", "--seconds: expected a number above 0"),
    "--bucket-size": ("0", "--bucket-size: expected MiB above 0"),
    "--pretrained": ("nope.h5", "--pretrained: expected a file, found none at 'nope.h5'; did you mean note.h5"),
    "--freeze": ("2", "--freeze: expected a share from 0 to 1, or the name of a layer, got 2"),
    "--loss": ("mean_square_error", "--loss: unknown loss 'mean_square_error'; did you mean mean_squared_error"),
    "--label-smoothing": ("1", "--label-smoothing: expected a share from 0 to below 1, got 1"),
    "--optimizer": ("adm", "--optimizer: unknown optimizer 'adm'; did you mean adam"),
    "--ema": ("1", "--ema: expected a momentum from 0 to below 1, got 1"),
    "--metrics": ("acuracy", "--metrics: .*'acuracy'"),
    "--csv": ("file/table.csv", "--csv: cannot be written"),
    "--tensorboard": ("file/events", "--tensorboard: .*Not a directory|File exists"),
    "--confusion-matrix": ("file/matrix.png", "--confusion-matrix: .*Not a directory|File exists"),
    "--find-learning-rate": ("file/rates.png", "--find-learning-rate: .*Not a directory|File exists"),
    "--find-batch": (None, "--find-batch: expected --memory-limit too"),
    "--largest-batch": (None, "--largest-batch: expected --memory-limit too"),
    "--config": ("nope.toml", "--config: .*nope.toml"),
    "--trained": ("nope.toml", "--trained: .*nope.toml"),
    "--validation-split": ("1", "--validation-split: expected a share between 0 and 1, got 1"),
    "--synthetic": ("4", "--synthetic: expected neither --data nor --dataset"),
    "--no-sync-batchnorm": (None, None),  # which depends on the network
    "--dump": (None, None),
}
#: said by the parser, which knows what each of these takes
PARSED = {
    "--image-size", "--channels", "--classes", "--batch-size", "--samples", "--epochs", "--seed",
    "--wire", "--shard", "--learning-rate", "--base-batch-size", "--weight-decay", "--memory-limit", "--schedule",
    "--workspace-limit", "--early-stopping", "--steps-per-epoch", "--head-epochs", "--mixup", "--top",
    "--trace-steps",
}  # fmt: skip
SWITCHES = {
    "--augment", "--randaugment", "--skip-bad-files", "--no-distribution", "--blocking", "--no-shared-memory",
    "--check-gradients", "--calibrate", "--again", "--all-bases", "--neighbour", "--quick", "-m", "--debug-nan",
}  # fmt: skip


@pytest.mark.parametrize("command", [name for name in BASE if name != "demo"])
def test_a_wrong_value_is_refused_before_anything_is_loaded_or_built(command, monkeypatch, tmp_path, capsys):
    def never(*args, **kwargs):
        raise AssertionError("too late")

    monkeypatch.chdir(tmp_path)
    for name in ("file", "note.h5"):
        (tmp_path / name).touch()
    for module, name in ((applications, "build"), (datasets.digits, "load_data")):
        monkeypatch.setattr(module, name, never)
    base = [word if word != "old.weights.h5" else "note.h5" for word in BASE[command]]
    for flag in flags_of(command) - PARSED - SWITCHES:
        value, said = WRONG[flag]
        if said is None:
            continue
        argv = [command, *base, flag, *([] if value is None else [value])]
        try:
            status = main(argv)
        except SystemExit as error:
            status = error.code
        told = capsys.readouterr().err
        assert status == 2, (flag, told)
        assert re.search(said, told), (flag, told)
        assert len(told) < 500, (flag, told)
