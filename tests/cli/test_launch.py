"""`pydtconv launch`: how often it starts ranks again, on how many, and when it ends."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pydtconv.cli import main

TRAIN = ("train", "--model", "mlp", "--dataset", "digits")
#: only notes how it is called
LAUNCHER = """#!/bin/sh
cd $(dirname $0)
if [ "$1" = -hosts ]; then grep -qx $2 gone && exit 1; exit 0; fi
[ "$1" = -f ] && tr '\\n' ' ' < $2 >> calls
printf '%s\\n' "$*" >> calls
status=$(head -1 statuses)
sed -i 1d statuses
exit $status
"""


@pytest.fixture
def launch(tmp_path, monkeypatch, capsys):
    """A function of statuses with which ranks end, and of words: the exit status, the calls and what was said."""
    launcher = tmp_path / "launcher"
    launcher.write_text(LAUNCHER)
    launcher.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gone").touch()
    (tmp_path / "hosts").write_text("node1:2\nnode2:2  # the second one\n\nnode3\n")

    def call(statuses, *words):
        (tmp_path / "statuses").write_text("".join(f"{status}\n" for status in statuses))
        (tmp_path / "calls").write_text("")
        try:
            status = main(["launch", "--launcher", str(launcher), "--backoff", "0", *words])
        except SystemExit as error:
            status = error.code
        calls = [line.replace(sys.executable, "python") for line in (tmp_path / "calls").read_text().splitlines()]
        return status, [re.sub("-f /[^ ]*", "-f", line) for line in calls], capsys.readouterr().err

    return call


def test_a_job_goes_on_until_it_ends_well(launch):
    status, calls, told = launch([9, 1, 0], "-n", "2", *TRAIN, "--checkpoint", "saved")
    words = f"-n 2 python -m pydtconv {' '.join(TRAIN)} --checkpoint saved"
    assert (status, calls) == (0, [words, f"{words} --resume", f"{words} --resume"])
    assert "ended with status 9 on 2 ranks; restart 1 in 0 s" in told
    status, calls, _ = launch([9, 0], "-n", "2", "run", "--wire", "bfloat16", "script.py", "--checkpoint", "x")
    assert (status, set(calls)) == (0, {"-n 2 python -m pydtconv run --wire bfloat16 script.py --checkpoint x"})


def test_a_job_ends_after_so_many_restarts(launch):
    status, calls, told = launch([1] * 9, "-n", "2", "--restarts", "2", *TRAIN, "--checkpoint", "saved", "--resume")
    assert (status, len(calls), len(set(calls))) == (1, 3, 1)
    assert told.endswith("ended with status 1 on 2 ranks; no restart is left\n")
    assert launch([7], "-n", "2", "--restarts", "0", *TRAIN)[0] == 7


@pytest.mark.parametrize("status", [0, 2, 129, 130, 143])
def test_an_end_that_was_asked_for_and_an_error_in_the_options_stay(status, launch):
    found, calls, _ = launch([status], "-n", "2", *TRAIN, "--checkpoint", "saved")
    assert (found, len(calls)) == (status, 1)


def test_hosts_that_are_gone_are_left_out(launch, tmp_path):
    options = ("--hosts", "hosts", "--restarts", "1", *TRAIN, "--checkpoint", "saved")
    (tmp_path / "gone").write_text("node2\n")
    status, calls, told = launch([0], *options)
    assert status == 0
    assert calls[0].startswith("node1:2 node3:1 -f -n 3 python -m pydtconv train")
    assert "no answer from node2" in told
    status, calls, told = launch([0], "--min-ranks", "4", *options)
    assert (status, calls) == (1, [])
    assert told.count("3 of 5 ranks are left, expected --min-ranks 4") == 2
    (tmp_path / "gone").write_text("")
    assert launch([0], "-n", "4", *options)[1][0].startswith("node1:2 node2:2 node3:1 -f -n 4 python")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["-n", "2", *TRAIN], "expected --checkpoint FOLDER"),
        (["-n", "2", *TRAIN, "--epoch", "3"], "unknown option '--epoch'"),
        (["-n", "0", *TRAIN], "-n/--ranks: expected an integer of 1 or more"),
        (["-n", "2", "plan"], "unknown value of"),
        (["-n", "2", "run", "-"], "run: expected a file"),
        (["-n", "2", "--min-ranks", "1", "run", "x.py"], "--min-ranks: expected --hosts FILE with it"),
        (["--hosts", "hosts", "--min-ranks", "9", "run", "x.py"], "--min-ranks: expected at most the 5 ranks"),
        (["--hosts", "hosts", "-n", "6", "run", "x.py"], "-n 6: expected at most the 5 ranks of --hosts"),
        (["--hosts", "nowhere", "run", "x.py"], "--hosts: .*nowhere"),
        (["--hosts", "gone", "run", "x.py"], "--hosts: gone: expected lines such as node1:2, got none"),
        (["--hosts", "launcher", "run", "x.py"], "expected lines such as node1:2, each host once, got '"),
        (["--launcher", "no-such", "-n", "2", "run", "x.py"], "--launcher: found no 'no-such'"),
        (["--launcher", "", "-n", "2", "run", "x.py"], "--launcher: found no ''"),
    ],
)
def test_wrong_words_are_refused_before_anything_is_started(words, told, launch):
    status, calls, found = launch([0], *words)
    assert (status, calls) == (2, [])
    assert re.search(told, found), found


def test_launch_is_not_launched(launch, monkeypatch):
    monkeypatch.setenv("PMI_SIZE", "2")
    assert launch([0], "-n", "2", *TRAIN, "--checkpoint", "saved")[:2] == (2, [])


@pytest.mark.slow
def test_one_rank_needs_no_launcher(monkeypatch, tmp_path, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.py").write_text(
        "import os\nif not os.path.exists('x'): open('x', 'w'); os.kill(os.getpid(), 9)"
    )
    assert main(["launch", "--backoff", "0", "run", "script.py"]) == 0
    assert "ended with status 137 on 1 rank; restart 1 in 0 s" in capfd.readouterr().err


@pytest.mark.slow
def test_a_signal_ends_the_ranks_and_is_no_reason_for_a_restart(tmp_path):
    (tmp_path / "script.py").write_text("import time\nprint('here', flush=True)\ntime.sleep(60)")
    words = [sys.executable, "-m", "pydtconv", "launch", "--backoff", "0", "run", "script.py"]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "here\n"
        start = time.monotonic()
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(30) == 128 + signal.SIGTERM
    assert time.monotonic() - start < 30


@pytest.mark.parametrize(
    ("status", "count", "requeued"),
    [
        *((status, "", status > 128) for status in (0, 1, 2, 130, 137, 143)),
        *((137, "9", True), (137, "10", False), (143, "50", True)),
    ],
)
def test_the_batch_script_of_the_docs_goes_back_to_the_queue(status, count, requeued, tmp_path):
    text = (Path(__file__).parents[2] / "docs" / "guides" / "clusters.md").read_text()
    (script,) = re.findall(r"^```\w*\n(#!/bin/bash\n#SBATCH.*?)^```$", text, re.M | re.S)
    for name, line in {"srun": f"exit {status}", "scontrol": 'echo "$@" > asked'}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)
    found = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SLURM_JOB_ID": "7"}
    found |= {"SLURM_CPUS_PER_TASK": "2"} | ({"SLURM_RESTART_COUNT": count} if count else {})
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=found, check=False, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (status, b"")
    asked = tmp_path / "asked"
    assert (asked.read_text() if asked.exists() else None) == ("requeue 7\n" if requeued else None)
