"""train, evaluate, summary and plan on the smallest networks and data."""

import errno
import re
import shutil

import pytest

from pydtconv import config
from pydtconv.callbacks import PreciseBatchNorm
from pydtconv.cli import main
from pydtconv.profiling import Profile


@pytest.fixture(autouse=True)
def variant():
    before = config.conv_variant()
    yield
    config.set_conv_variant(before)


def test_train_writes_weights_and_curve_and_evaluate_reads_them(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    data = ["--model", "mlp", "--dataset", "digits", "--samples", "200"]
    assert main(["train", *data, "--epochs", "2", "--augment", "--output", "out"]) == 0
    text = capsys.readouterr().out
    accuracy = float(text.split("test accuracy ")[1].split("%")[0]) / 100
    assert (tmp_path / "out.weights.h5").exists()
    assert (tmp_path / "out.png").read_bytes()[1:4] == b"PNG"
    assert main(["evaluate", *data, "--weights", "out.weights.h5"]) == 0
    found = float(capsys.readouterr().out.rsplit("test accuracy ", 1)[1])
    assert found == pytest.approx(accuracy, abs=1e-3)


@pytest.mark.slow
def test_train_writes_a_profile(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["train", "--model", "mlp", "--dataset", "digits", "--samples", "200", "--epochs", "2"]
    assert main([*words, "--profile", "step.json"]) == 0
    assert "backward_weights" in capsys.readouterr().out
    assert Profile.load(tmp_path / "step.json").batch_size == 64
    assert main([*words, "--batch-size", "200", "--profile", "step.json"]) == 0  # one step is all there is
    assert "time line: step.json" in capsys.readouterr().out
    assert (tmp_path / "mlp.weights.h5").exists()


@pytest.mark.slow
def test_train_on_a_folder_of_images(tmp_path, monkeypatch, capsys):
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    for part in ("train", "val"):
        for name, level in (("dark", 20), ("light", 230)):
            (tmp_path / part / name).mkdir(parents=True)
            for i in range(4):
                image.new("RGB", (9, 9), (level + i,) * 3).save(tmp_path / part / name / f"{i}.jpg")
    monkeypatch.chdir(tmp_path)
    arguments = ["train", "--model", "mlp", "--data", str(tmp_path), "--image-size", "8", "--epochs", "1"]
    assert main([*arguments, "--batch-size", "4"]) == 0
    assert "belonging to 2 classes" in capsys.readouterr().out


SMALL = ["train", "--model", "mlp", "--dataset", "digits", "--samples", "100", "--epochs", "1"]


@pytest.mark.parametrize(
    ("option", "path", "told"),
    [
        ("--output", "file/out", "--output: cannot be written: .*Not a directory|File exists"),
        ("--output", "x" * 250, "--output: cannot be written: .*File name too long"),
        ("--output", "folder", "--output: cannot be written: .*expected the name of a file, got a folder: .*folder"),
        ("--profile", "folder", "--profile: cannot be written: .*got a folder"),
        ("--checkpoint", "file/saved", "--checkpoint: .*Not a directory|File exists"),
        ("--offload", "file/scratch", "offload: .*file/scratch"),
    ],
    ids=["below a file", "too long", "a folder", "profile", "checkpoint", "offload"],
)
def test_what_cannot_be_written_is_found_before_training(option, path, told, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder.weights.h5").mkdir()
    assert main([*SMALL, option, path]) == 2
    written = capsys.readouterr()
    assert re.search(told, written.err)
    assert "Epoch" not in written.out


def test_too_little_room_is_found_before_training(tmp_path, monkeypatch, capsys):
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr("pydtconv.files.whole_file.shutil.disk_usage", lambda path: usage._replace(free=1 << 10))
    assert main([*SMALL, "--output", str(tmp_path / "out")]) == 2
    assert re.search(
        r"--output: .*No space left on device: .* MiB to be written, 0\.0 MiB free", capsys.readouterr().err
    )


def test_weights_that_cannot_be_written_at_the_end_are_kept_elsewhere(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device", "out.weights.h5")

    monkeypatch.setattr("pydtconv.models.stored_weights.write_whole", full)
    assert main([*SMALL, "--output", "out"]) == 1
    written = capsys.readouterr()
    assert "--output: [Errno 28] No space left on device: 'out.weights.h5'" in written.err
    (kept,) = tmp_path.glob("out-*.weights.h5")
    assert f"weights: {kept}" in written.out
    data = ["--model", "mlp", "--dataset", "digits", "--samples", "100"]
    assert main(["evaluate", *data, "--weights", str(kept)]) == 0


@pytest.mark.parametrize(
    ("train", "val", "told"),
    [
        ("abc", "ab", r"got 3 and 2: 'c' only in .*train$"),
        ("ab", "abc", r"got 2 and 3: 'c' only in .*val$"),
        ("ab", "ac", r"got 2 and 2: 'b' only in .*train; 'c' only in .*val$"),
    ],
)
def test_train_and_val_of_other_classes(train, val, told, tmp_path, capsys):
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    for part, names in (("train", train), ("val", val)):
        for name in names:
            (tmp_path / part / name).mkdir(parents=True)
            image.new("RGB", (9, 9)).save(tmp_path / part / name / "a.jpg")
    arguments = ["train", "--model", "mlp", "--data", str(tmp_path), "--image-size", "8", "--epochs", "1"]
    assert main(arguments) == 2
    assert re.search(told, capsys.readouterr().err.strip())


def test_fewer_classes_than_folders(tmp_path, capsys):
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    for folder in (tmp_path / part / name for part in ("train", "val") for name in "abc"):
        folder.mkdir(parents=True)
        image.new("RGB", (9, 9)).save(folder / "a.jpg")
    assert main(["train", "--model", "mlp", "--data", str(tmp_path), "--image-size", "8", "--classes", "2"]) == 2
    assert "--classes: expected 3 or more, one for each folder of" in capsys.readouterr().err


def test_summary_and_plan(tmp_path, capsys):
    model = ["--model", "resnet20", "--image-size", "16", "--classes", "3"]
    assert main(["summary", *model]) == 0
    assert "resnet20" in capsys.readouterr().out
    picture = tmp_path / "plan.png"
    assert main(["plan", *model, "--batch-size", "2", "--variant", "cgt", "--picture", str(picture)]) == 0
    text = capsys.readouterr().out
    assert "convgemm" in text
    assert "predicted peak" in text
    assert picture.exists()


def test_plan_dumps_its_graphs(tmp_path, capsys):
    model = ["--model", "mlp", "--image-size", "8", "--classes", "3"]
    assert main(["plan", *model, "--batch-size", "2", "--dump", str(tmp_path / "graphs")]) == 0
    assert "activation -" in capsys.readouterr().out
    names = [path.name for path in sorted((tmp_path / "graphs").iterdir())]
    assert names[:2] == ["00-traced.svg", "00-traced.txt"]
    assert names[-1].endswith("-memory.txt")
    (tmp_path / "file").write_text("")
    assert main(["plan", *model, "--dump", str(tmp_path / "file")]) != 0
    assert "dump: expected a folder, got the file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["summary", "--model", "resnet33"], "no model is called 'resnet33'; did you mean resnet"),
        (["plan", "--model", "mlp", "--variant", "CTG"], "unknown variant 'CTG'; did you mean CGT"),
        (["train", "--model", "mlp", "--dataset", "digits", "--data", "photos"], "expected one of them, got 'photos'"),
        (["train", "--model", "mlp", "--dataset", "cifar11"], "unknown data set 'cifar11'; did you mean cifar10"),
        (["train", "--model", "mlp", "--data", "nowhere"], "directory: expected a folder"),
        (["plan", "--model", "mlp", "--memory-limit", "1"], "memory_limit: expected at least"),
        (["evaluate", "--model", "mlp"], "--weights: expected the file"),
    ],
    ids=["model", "variant", "both", "dataset", "folder", "limit", "weights"],
)
def test_what_is_wrong_is_one_line(arguments, message, capsys):
    assert main(arguments) == 2
    text = capsys.readouterr().err
    assert message in text
    assert text.count("\n") == 1


@pytest.mark.slow
def test_plans_with_offload_and_patches(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PYDTCONV_CACHE", str(tmp_path))
    shape = ["plan", "--model", "resnet20", "--batch-size", "16", "--image-size", "32"]
    assert main([*shape, "--memory-limit", "14", "--offload", "--split", "0.5:2x1"]) == 0
    text = capsys.readouterr().out
    assert "offloaded:" in text
    assert "writes: |" in text
    assert "patches: 2x1 of 11 convolutions, up to " in text
    assert main([*shape, "--split", "0.1:2x2:exact:image"]) == 0
    assert "% of their multiplications are done again" in capsys.readouterr().out


@pytest.mark.slow
def test_trains_with_offload_and_patches(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYDTCONV_CACHE", str(tmp_path / "cache"))
    (tmp_path / "scratch").mkdir()
    words = ["train", "--model", "resnet20", "--dataset", "digits", "--samples", "32", "--epochs", "1"]
    words += ["--batch-size", "16", "--memory-limit", "14"]
    seen = []
    monkeypatch.setattr(PreciseBatchNorm, "refresh", lambda self: seen.append(self.model))
    assert main([*words, "--split", "0.5:2x1", "--offload", "scratch"]) == 0
    assert len(seen) == 2  # before evaluation, and at the end
    capsys.readouterr()
    assert main([*words, "--offload", "none"]) == 2
    assert "offload: expected a folder that is there, got 'none'" in capsys.readouterr().err
    assert main([*words, "--split", "0.5"]) == 2
    assert "--split: split: expected a Split or a text such as" in capsys.readouterr().err


def plan_lines(capsys, *words):
    status = main(["plan", "--model", "resnet20", "--batch-size", "16", *words])
    told = capsys.readouterr()
    return status, told.out.splitlines()[-2:], told.err


@pytest.mark.slow
def test_patches_pay_within_a_limit_and_plan_and_its_errors_say_so(capsys):
    config.set_num_threads(1)
    status, lines, _ = plan_lines(capsys, "--split", "0.5:2x2")
    assert status == 0
    assert lines[0].startswith("patches: 2x2 of ")
    assert re.fullmatch(r"without --split: \d+\.\d\d MiB; patches pay within a --memory-limit", lines[1])
    status, _, told = plan_lines(capsys, "--memory-limit", "10")
    assert status == 2
    least = int(re.search(r"expected at least (\d+) bytes", told)[1])
    assert re.search(r"layer 'resnet20/.*' needs most, in its backward; --split 0\.5:2x2 would do$", told)
    status, lines, _ = plan_lines(capsys, "--split", "0.5:2x2", "--memory-limit", "10")
    assert status == 0
    assert lines[1] == f"without --split: no plan below {least / 2**20:.2f} MiB"


def test_the_error_of_a_limit_says_what_needs_it(capsys):
    _, _, told = plan_lines(capsys, "--memory-limit", "1")
    assert re.search(r"; variables, gradients and optimizer slots alone take 3\.\d MiB$", told)


def test_help_says_when_patches_pay(capsys):
    with pytest.raises(SystemExit):
        main(["plan", "--help"])
    assert "pays within a --memory-limit" in " ".join(capsys.readouterr().out.split())
