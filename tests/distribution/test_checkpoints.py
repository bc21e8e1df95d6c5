"""Training on several ranks that is killed or interrupted goes on: equal bits on as many ranks, rounding on others."""

import signal
import subprocess

import numpy as np
import pytest

from tests.distribution.ranks import command, environment, needs_mpi, run, run_well

pytestmark = needs_mpi
LIMIT = 120


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Results of two ranks that were not interrupted."""
    folder = tmp_path_factory.mktemp("whole")
    run_well(2, "resume", folder / "saved", folder / "result", "epoch")
    return folder / "result"


def compare(result, ranks, whole, exact):
    with np.load(f"{whole}.0.npz") as expected:
        for rank in range(ranks):
            with np.load(f"{result}.{rank}.npz") as found:
                assert found.files == expected.files
                for name in found.files:
                    if exact:
                        assert found[name].tobytes() == expected[name].tobytes(), name
                    else:
                        np.testing.assert_allclose(found[name], expected[name], rtol=1e-7, atol=1e-9, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("dead", [0, 1])
def test_a_rank_killed_and_the_same_ranks_again(dead, whole, tmp_path):
    arguments = ("resume", tmp_path / "saved", tmp_path / "result", 3)
    assert run(2, *arguments, dead, 1, 7).returncode
    assert [path.name for path in (tmp_path / "saved").glob("checkpoint-*")]
    run_well(2, *arguments)
    compare(tmp_path / "result", 2, whole, exact=True)


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 3])
def test_other_numbers_of_ranks_go_on(ranks, whole, tmp_path):
    arguments = ("resume", tmp_path / "saved", tmp_path / "result", 3)
    assert run(2, *arguments, 1, 1, 7).returncode
    done = run_well(ranks, *arguments)
    assert "step 0 0" not in done.stdout
    compare(tmp_path / "result", ranks, whole, exact=False)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["INT", "TERM"])
def test_interrupts_of_all_ranks(number, whole, tmp_path):
    words = command(2, "resume", tmp_path / "saved", tmp_path / "result", "epoch")
    process = subprocess.Popen(
        words,
        env=environment(PAUSE=0.05),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        for line in process.stdout:
            if "step 1 5" in line:  # lines of two ranks may come as one
                break
        process.send_signal(number)
        _, error = process.communicate(timeout=LIMIT)
    finally:
        process.kill()
    assert process.returncode, error
    assert error.count("training ends after this step, with a checkpoint") == 1, error
    assert error.count("checkpoint: ") == 1, error
    done = run_well(2, "resume", tmp_path / "saved", tmp_path / "result", "epoch")
    assert "step 1 0" not in done.stdout
    compare(tmp_path / "result", 2, whole, exact=True)


@pytest.mark.slow
def test_a_signal_to_one_rank_after_the_last_step(whole, tmp_path):
    arguments = ("resume", tmp_path / "saved", tmp_path / "result", 3)
    done = run(2, *arguments, 1, 3, "end")
    assert done.returncode == 128 + signal.SIGTERM, done.stderr
    run_well(2, *arguments)
    compare(tmp_path / "result", 2, whole, exact=True)


@pytest.mark.slow
def test_a_torn_checkpoint_is_refused_on_all_ranks(tmp_path):
    arguments = ("resume", tmp_path / "saved", tmp_path / "result", 3)
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved" / "checkpoint-000001.npz").write_text("text")
    done = run(2, *arguments)
    assert done.returncode
    assert "no checkpoint can be used: " in done.stderr
