"""Values of options that cannot be: one line that names option, what was expected and what came, and status 2."""

import os
import subprocess
import sys

import pytest

from pydtconv.cli import main
from tests.marks import slow

TRAIN = ["train", "--model", "mlp", "--dataset", "digits"]
CASES = [
    ([*TRAIN, "--learning-rate", "nan"], "--learning-rate: expected a finite number above 0, got 'nan'"),
    ([*TRAIN, "--learning-rate", "0"], "--learning-rate: expected a finite number above 0, got '0'"),
    ([*TRAIN, "--weight-decay", "inf"], "--weight-decay: expected a finite number of 0 or more, got 'inf'"),
    ([*TRAIN, "--warmup-epochs", "inf"], "--warmup-epochs: expected a finite number of 0 or more, got 'inf'"),
    ([*TRAIN, "--base-batch-size", "0"], "--base-batch-size: expected an integer of 1 or more, got '0'"),
    ([*TRAIN, "--bucket-size", "x"], "--bucket-size: expected MiB above 0 or 'tune', got 'x'"),
    ([*TRAIN, "--bucket-size", "nan"], "--bucket-size: expected MiB above 0 or 'tune', got 'nan'"),
    ([*TRAIN, "--samples", "0"], "--samples: expected an integer of 1 or more, got '0'"),
    ([*TRAIN, "--samples", "²"], "--samples: expected an integer of 1 or more, got '²'"),
    ([*TRAIN, "--seed", "-1"], "--seed: expected an integer from 0 to 4294967295, got '-1'"),
    ([*TRAIN, "--epochs", "0"], "--epochs: expected an integer of 1 or more, got '0'"),
    ([*TRAIN, "--epochs", "1.5"], "--epochs: expected an integer of 1 or more, got '1.5'"),
    ([*TRAIN, "--batch-size", "0"], "--batch-size: expected an integer of 1 or more, got '0'"),
    ([*TRAIN, "--memory-limit", "inf"], "--memory-limit: expected MiB, or a size such as 800MiB or 1GB, got 'inf'"),
    ([*TRAIN, "--memory-limit", "9" * 400], "--memory-limit: expected MiB, or a size such as 800MiB or 1GB, got '999"),
    ([*TRAIN, "--memory-limit", "1e305"], "--memory-limit: expected MiB, or a size such as 800MiB or 1GB, got '1e305'"),
    (
        [*TRAIN, "--workspace-limit", "1e305"],
        "--workspace-limit: expected MiB, or a size such as 800MiB or 1GB, got '1e305'",
    ),
    ([*TRAIN, "--workspace-limit=--"], "--workspace-limit: expected a value, got '--'"),
    (["tune", "--model", "mlp", "--batch-size", "0"], "--batch-size: expected an integer of 1 or more, got '0'"),
    (["demo", "--epochs", "0"], "--epochs: expected an integer of 1 or more, got '0'"),
    (["demo", "--seed", "-1"], "--seed: expected an integer from 0 to 4294967295, got '-1'"),
    (["plan", "--model", "mlp", "--memory-limit", "much"], "--memory-limit: expected MiB"),
    (["plan", "--model", "mlp", "--image-size", "0"], "--image-size: expected an integer of 1 or more"),
    (["summary", "--model", "mlp", "--image-size", "100000"], "mlp for images of 100000x100000x3 and 10 classes: "),
]


@pytest.mark.parametrize(("words", "told"), CASES, ids=lambda value: " ".join(value[-2:]) if value[1:] else value)
def test_a_value_that_cannot_be(words, told, capsys):
    try:
        status = main(words)
    except SystemExit as end:
        status = end.code
    assert status == 2
    error = capsys.readouterr().err
    assert told in error
    assert "Traceback" not in error


def test_memory_limits_have_units(capsys):
    assert main(["plan", "--model", "mlp", "--image-size", "8", "--batch-size", "2", "--memory-limit", "1GB"]) == 0
    assert main(["plan", "--model", "mlp", "--image-size", "8", "--batch-size", "2", "--memory-limit", "1kB"]) == 2
    told = capsys.readouterr()
    assert "--memory-limit:     953.67 MiB" in told.out
    assert "got 1000 bytes" in told.err


def test_a_largest_batch_is_looked_for_within_the_limit_that_is_told(capsys):
    words = ["plan", "--model", "mlp", "--image-size", "8", "--largest-batch"]
    assert main([*words, "--memory-limit", "16"]) == 0
    assert capsys.readouterr().out.startswith("largest batch within 16.0 MiB: ")
    assert main([*words, "--memory-limit", "1kB"]) == 2
    assert "got 1000 bytes" in capsys.readouterr().err
    assert main([*words, "--memory-limit", "16", "--picture", "plan.svg"]) == 2
    assert "--picture: changes nothing with --largest-batch" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("PYDTCONV_NUM_THREADS", ["summary", "--model", "mlp"]),
        slow("PYDTCONV_LEVEL", ["doctor", "--quick"]),
        slow("PYDTCONV_UKR", ["doctor", "--quick"]),
        slow("PYDTCONV_TUNE", ["--help"]),
        slow("PYDTCONV_DEVICE", ["summary", "--model", "mlp"]),
        slow("PYDTCONV_DATA", ["doctor", "--quick"]),
    ],
)
def test_a_variable_of_the_environment_that_cannot_be(name, words):
    """A line that names it, though it is found when modules are imported."""
    others = {key: value for key, value in os.environ.items() if key != "PYDTCONV_NUM_THREADS"}
    command = [sys.executable, "-m", "pydtconv", *words]
    ended = subprocess.run(command, env=others | {name: "x"}, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 2
    *_, last = ended.stderr.splitlines()
    assert last.startswith(f"pydtconv: {name}")
    assert "Traceback" not in ended.stderr
