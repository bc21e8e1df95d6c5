"""The `pydtconv` command: help, versions, near names, doctor."""

import os
import re
import signal
import subprocess
import sys

import pytest

import pydtconv as keras
from pydtconv import __version__, applications, config, layers, microkernels
from pydtconv.cli import COMMANDS, build_parser, doctor, main
from tests.marks import slow


def fails(capsys, *arguments):
    """What the command says of wrong arguments, with its exit status."""
    with pytest.raises(SystemExit) as error:
        main(arguments)
    return error.value.code, capsys.readouterr().err


def test_help_names_every_command_and_variable(capsys):
    assert main([]) == 0
    text = capsys.readouterr().out
    for name in (
        *COMMANDS,
        "PYDTCONV_NUM_THREADS",
        "PYDTCONV_UKR",
        "PYDTCONV_DATA",
        "PYDTCONV_LEVEL",
        "PYDTCONV_DEVICE",
        "KERAS_HOME",
    ):
        assert name in text


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_every_command_has_a_summary_and_help(command, capsys, monkeypatch):
    """In 80 columns; a command and an option are told of once."""
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as error:
        main([*command.split(), "--help"])
    assert error.value.code == 0
    text = capsys.readouterr().out
    assert f"usage: pydtconv {command}" in text
    assert len(text.splitlines()) > 6
    assert max(map(len, text.splitlines())) <= 80
    listed = text.partition("\noptions:")[2]
    heads = re.findall(r"^(?: {2}(--[\w-]+)| {4}(\w+) )", listed, re.M)
    assert len(heads) == len(set(heads))
    assert command or [name for _, name in heads if name] == list(COMMANDS)


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.split()[0] == "pydtconv"


def test_an_unknown_command_lists_the_near_ones(capsys):
    status, text = fails(capsys, "doctr")
    assert status == 2
    assert "unknown command 'doctr'; did you mean doctor?" in text
    assert f"expected one of {', '.join(COMMANDS)}" in fails(capsys, "zzz")[1]


def test_an_unknown_option_lists_the_near_ones(capsys):
    assert "unknown option '--quik'; did you mean --quick?" in fails(capsys, "doctor", "--quik")[1]
    assert "unknown option '--versoin'; did you mean --version?" in fails(capsys, "--versoin")[1]
    assert "unexpected argument 'now'" in fails(capsys, "doctor", "now")[1]


def test_options_are_not_abbreviated(capsys):
    assert "unknown option '--qui'" in fails(capsys, "doctor", "--qui")[1]


def test_the_script_keeps_its_own_options():
    args = build_parser().parse_args(["run", "script.py", "--quick", "--help", "-x", "1"])
    assert args.script == "script.py"
    assert args.arguments == ["--quick", "--help", "-x", "1"]


def test_a_script_that_is_not_there_is_one_line_with_the_near_ones(tmp_path):
    (tmp_path / "train.py").touch()
    command = [sys.executable, "-m", "pydtconv", "run", str(tmp_path / "trian.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    text = done.stderr
    assert text.startswith("pydtconv run: cannot open ")
    assert text.count("\n") == 1
    assert f"did you mean {tmp_path / 'train.py'}?" in text


def test_doctor_reports_what_is_there(capsys):
    main(["doctor", "--quick"])
    text = capsys.readouterr().out
    assert re.search(rf"^threads +{config.num_threads()} ", text, re.M)
    for dtype in ("float32", "float64"):
        name = microkernels.selected(dtype).name
        assert re.search(rf"^micro-kernel +{dtype} +{name} .*in use$", text, re.M)
    for label in ("pydtconv", "CPU", "features", "library", "BLIS", "OpenMP", "MPI", "data"):
        assert re.search(rf"^{label} ", text, re.M), label


def test_doctor_measures_kernels_against_the_peak():
    lines = [text for label, text in doctor.report() if label in ("peak", "micro-kernel")]
    peak = float(re.search(r"float32: ([\d.]+) GFLOPS per core", lines[0])[1])
    rate = float(re.search(r"([\d.]+) GFLOPS, +\d+% of the peak +in use", lines[1])[1])
    assert peak > 0
    assert rate > 0


def test_doctor_tells_what_to_mend(monkeypatch):
    assert not [problem for problem in doctor.find_problems() if "threads share" in problem]
    monkeypatch.setattr(doctor, "usable_cores", lambda: {0})
    monkeypatch.setattr(doctor, "openmp_runtimes", lambda: ["/lib/libgomp.so.1", "/lib/libiomp5.so"])
    config.set_num_threads(2)
    problems = " ".join(doctor.find_problems())
    assert "2 threads share 1 cores: set PYDTCONV_NUM_THREADS" in problems
    assert "2 OpenMP runtimes" in problems


def test_doctor_finds_data(monkeypatch, tmp_path):
    (tmp_path / "mnist").mkdir()
    (tmp_path / "mnist" / "mnist.npz").touch()
    monkeypatch.setenv("PYDTCONV_DATA", str(tmp_path))
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "cache"))
    lines = [text for _, text in doctor.report(measure=False)]
    assert f"mnist: {tmp_path / 'mnist' / 'mnist.npz'}" in lines
    assert "cifar10: not here, would be downloaded" in lines


@pytest.mark.slow
def test_the_command_runs_as_a_module():
    result = subprocess.run([sys.executable, "-m", "pydtconv", "--version"], capture_output=True, text=True, check=True)
    assert __version__ in result.stdout


@pytest.mark.parametrize("where", ["pydtconv.cli.networks.build", "pydtconv.cli.build_parser"], ids=["work", "imports"])
def test_an_interrupt_is_one_line(where, monkeypatch, capsys):
    def interrupted(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(where, interrupted)
    assert main(["summary", "--model", "mlp"]) == 130
    assert capsys.readouterr().err == "pydtconv: interrupted\n"


def test_an_interrupt_while_a_picture_is_drawn_is_one_line(monkeypatch, capsys, tmp_path):
    figure = pytest.importorskip("matplotlib.figure", reason="matplotlib is not installed")

    def interrupted(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(figure.Figure, "savefig", interrupted)
    picture = str(tmp_path / "plan.png")
    assert main(["plan", "--model", "mlp", "--picture", picture]) == 130
    assert capsys.readouterr().err == "pydtconv: interrupted\n"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "arguments", [["doctor"], slow(["plan", "--model", "resnet20", "--batch-size", "2"])], ids=" ".join
)
def test_output_that_nobody_reads_ends_a_command_quietly(arguments):
    with subprocess.Popen(
        [sys.executable, "-m", "pydtconv", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as command:
        command.stdout.close()
        assert command.stderr.read() == b""
        assert command.wait(100) == 128 + signal.SIGPIPE


def test_the_demo_ends_well_where_its_picture_cannot_be_drawn(monkeypatch, capsys, tmp_path):
    def network(input_shape, classes):
        return keras.Sequential([keras.Input(input_shape), layers.Flatten(), layers.Dense(classes, "softmax")])

    monkeypatch.setattr(applications, "MNISTConvNet", network)
    (tmp_path / "file").touch()
    assert main(["demo", "--epochs", "1", "--output", str(tmp_path / "file" / "digits.png")]) == 0
    text = capsys.readouterr().out
    assert "\ntest accuracy" in text
    assert "\nno learning curve: " in text
    assert "\nnext:\n" in text


def test_the_demo_says_what_happens_shows_digits_and_three_next_commands(monkeypatch, capsys, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert main(["demo", "--epochs", "1", "--output", str(tmp_path / "digits.png")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert (
        lines[0] == "A convolutional network looks at 1438 handwritten digits, 1 times each, and then reads 359 others."
    )
    assert lines[1] == "It takes some seconds, and nothing is downloaded."
    assert max(map(len, lines)) <= 110
    end = next(
        i for i, line in enumerate(lines) if re.match(r"a \d, \d+% sure +a \d, \d+% sure +a \d, \d+% sure", line)
    )
    assert all(set(line) <= set(" .:-=+*#%@") for line in lines[end - 8 : end])
    assert sum("@" in line for line in lines[end - 8 : end]) > 2
    assert "no learning curve: plot_learning_curve needs matplotlib: pip install 'pydtconv[plot]'" in lines
    commands = [line.split("   ")[0].split() for line in lines if line.startswith("  pydtconv ")]
    assert len(commands) == 3
    for _, *words in commands:  # those are commands that there are
        build_parser().parse_args(words)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is full")
@pytest.mark.parametrize(
    "arguments", [["--version"], slow(["plan", "--help"]), slow(["doctor", "--quick"])], ids=" ".join
)
def test_output_to_a_full_disk_is_one_line(arguments):
    environment = os.environ | {"PYTHONUNBUFFERED": ""}
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "pydtconv", *arguments]
        done = subprocess.run(command, env=environment, stdout=full, stderr=subprocess.PIPE, text=True, timeout=100)
    assert done.stderr == "pydtconv: standard output: No space left on device\n"
    assert done.returncode == 1


@pytest.mark.slow
@pytest.mark.parametrize("where", ["a full disk", "nobody"])
def test_training_goes_on_where_its_output_cannot_be_written(where, tmp_path):
    options = ["--dataset", "digits", "--samples", "64", "--epochs", "2", "--output", str(tmp_path / "net")]
    command = [sys.executable, "-m", "pydtconv", "train", "--model", "mlp", *options]
    if where == "nobody":
        inward, outward = os.pipe()
        os.close(inward)
    else:
        outward = os.open("/dev/full", os.O_WRONLY)
    assert subprocess.run(command, stdout=outward, stderr=subprocess.PIPE, timeout=100).returncode not in (0, 120)
    os.close(outward)
    assert (tmp_path / "net.weights.h5").exists()
