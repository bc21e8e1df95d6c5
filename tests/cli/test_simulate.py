"""pydtconv simulate: measured here, and from files."""

import subprocess
import sys

import pytest

from pydtconv import config
from pydtconv.cli import main
from pydtconv.cli.simulate import parse_ranks


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("1", [1]),
        ("1,2,3,7", [1, 2, 3, 7]),
        ("1,2,4,...,32", [1, 2, 4, 8, 16, 32]),
        ("2, 6, ..., 54, 100", [2, 6, 18, 54, 100]),
        ("4,6,...,12", [4, 6, 8, 10, 12]),
    ],
)
def test_ranks_are_read(text, numbers):
    assert parse_ranks(text) == numbers


@pytest.mark.parametrize(
    "text", ["", "0", "1,x", "2,1", "1,...,8", "1,2,...", "1,2,...,9", "1,1,...,4", "1,2,...,8,...,16"]
)
def test_what_is_no_list_of_ranks_is_refused(text):
    with pytest.raises(ValueError, match="--ranks: expected growing numbers such as"):
        parse_ranks(text)


def test_a_network_is_profiled_here(tmp_path, capsys):
    picture = tmp_path / "scaling.png"
    words = ["--model", "mlp", "--image-size", "8", "--batch-per-rank", "16", "--batch", "48", "--steps", "1"]
    words += ["--ranks", "1,2,4,...,64", "--network", "1Gbps:100us", "--bucket-size", "0.01", "--picture", str(picture)]
    assert main(["simulate", *words]) == 0
    text = capsys.readouterr().out
    assert "timings at 1, 2, 16 images" in text
    weak, strong = text.split("scaling, ")[1:]
    assert "16 images a rank" in weak
    assert "48 images in all" in strong
    for part in (weak, strong):
        rows = [line.split() for line in part.splitlines() if line[:6].strip().isdigit()]
        assert [int(row[0]) for row in rows] == [1, 2, 4, 8, 16, 32, 64]
        assert rows[0][-7] == "100.0%"
    assert picture.read_bytes()[1:4] == b"PNG"


def test_a_picture_of_an_unknown_format_is_one_line(tmp_path, capsys):
    words = ["--model", "mlp", "--image-size", "4", "--batch-per-rank", "1", "--batch", "2", "--steps", "1"]
    assert main(["simulate", *words, "--ranks", "1,2", "--picture", str(tmp_path / "scaling.foo")]) == 2
    text = capsys.readouterr().err
    assert "--picture: expected a picture's file to end in one of " in text
    assert text.count("\n") == 1


@pytest.mark.parametrize("mesh", [[], ["--mesh", "batch=2", "height=2"]], ids=["ranks", "meshes"])
def test_networks_in_bfloat16(mesh, tmp_path, capsys):
    """Gradients are float32, so each bucket has the bytes of a float32 model's."""
    words = ["--model", "mnistconvnet", "--image-size", "16", "--batch-per-rank", "4", "--batch", "8", "--steps", "1"]
    words += ["--dtype", "mixed_bfloat16", *(mesh or ["--ranks", "1,2", "--picture", str(tmp_path / "scaling.png")])]
    before = config.dtype_policy()
    try:
        assert main(["simulate", *words]) == 0
    finally:
        config.set_dtype_policy(before)
    text = capsys.readouterr().out
    if mesh:
        assert "height=2" in text
    else:
        assert "4 images a rank" in text
        assert "100.0%" in text


@pytest.mark.slow
def test_a_profile_is_read_and_mpi_is_not(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    train = ["train", "--model", "mlp", "--dataset", "digits", "--samples", "300", "--epochs", "1"]
    assert main([*train, "--profile", "step.json"]) == 0
    code = (
        "import sys; from pydtconv.cli import main; status = main(sys.argv[1:]); "
        "assert 'mpi4py' not in sys.modules; sys.exit(status)"
    )
    command = [sys.executable, "-c", code, "simulate", "--profile", "step.json", "--ranks", "1,2"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "timings at 64 images" in result.stdout
    assert (tmp_path / "mlp_scaling.png").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "expected --model or --profile, one of them"),
        (["--model", "mlp", "--network", "100G"], "network: expected BANDWIDTH:LATENCY such as 100Gbps:1.5us"),
        (["--model", "mlp", "--ranks", "4,2"], "--ranks: expected growing numbers such as 1,2,4,...,64"),
        (["--model", "mlp", "--algorithm", "rign"], "unknown algorithm 'rign'; did you mean ring"),
        (["--model", "mlp", "--bucket-size", "0"], "--bucket-size: expected MiB above 0"),
        (["--model", "mlp", "--bucket-size", "inf"], "--bucket-size: expected MiB above 0"),
        (["--model", "mlp", "--batch-per-rank", "0"], "--batch-per-rank: expected 1 or more, got 0"),
        (["--profile", "nowhere.json"], "nowhere.json"),
        (["--model", "resnet33"], "no model is called 'resnet33'"),
    ],
    ids=["neither", "network", "ranks", "algorithm", "bucket", "infinite bucket", "batch", "file", "model"],
)
def test_what_is_wrong_is_one_line(words, message, capsys):
    assert main(["simulate", *words]) == 2
    text = capsys.readouterr().err
    assert message in text
    assert text.count("\n") == 1
