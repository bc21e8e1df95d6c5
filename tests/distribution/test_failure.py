"""What goes wrong on one rank ends all of them, soon, and is told once."""

import re

import pytest

from tests.distribution.ranks import HERE, needs_mpi, run

pytestmark = needs_mpi
#: seconds after which waiting is an error; where the end of a run does not depend on it, no run may wait for it.  On a
#: busy machine ranks wait seconds for each other when they start.
STALL, NEVER = 6, 1000


def failed(what, *given, ranks=2, rank=1, **options):
    """The output of a run that goes wrong; it must end with an error, not reach its end, and not be ended by us.

    given: options of DataParallel.
    """
    done = run(ranks, "fail", what, rank, *given, **{"PYDTCONV_STALL_TIMEOUT": NEVER} | options)
    assert done.returncode != 0
    assert "not reached" not in done.stdout
    return done


def test_exception():
    done = failed("exception")
    assert done.stderr.count("Traceback") == 1
    assert "rank 1 on " in done.stderr
    assert "KeyError: 'on purpose'" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("what", "state"), [("stop", "is stopped"), ("slow", "does not answer")])
def test_waiting_for_a_rank(what, state):
    done = failed(what, ranks=3, rank=2, PYDTCONV_STALL_TIMEOUT=STALL)
    waits = r"rank \d has waited \d+ s in step 5: bucket 1 of 1 of the gradients \(last/kernel to first/bias\)"
    assert re.search(rf"{waits} for rank 2 on \S+, which {state}", done.stderr)


SHARDS = ("shard='gradients'", "shared_memory=False")


@pytest.mark.slow
def test_waiting_for_a_rank_with_shards():
    done = failed("stop", *SHARDS, ranks=3, rank=2, PYDTCONV_STALL_TIMEOUT=STALL)
    assert re.search(r"rank \d has waited \d+ s in step 5: .* for rank 2 on \S+, which is stopped", done.stderr)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("caught", "rank 0 waits in step 5: .* for rank 1 on .*has left fit: KeyError: 'on purpose'"),
        ("options", "rank 1 differs from rank 0: expected on all ranks .*shard='gradients'.*, got .*shard=None"),
    ],
)
def test_a_rank_that_fails_with_shards(what, told):
    done = failed(what, *SHARDS)
    assert re.search(told, done.stderr + done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("kill", r"rank \d has .* s,? in .* for rank 3 on \S+, which is dead"),
        ("stop", r"rank \d has waited \d+ s in step 5: .* for rank 3 on \S+, which is stopped"),
        ("caught", r"rank \d waits in step 5: .* for rank 3 on .*has left fit: KeyError: 'on purpose'"),
        ("model", "'layer 1: Conv2D of filters=4', got on rank 3 'layer 1: Conv2D of filters=5'"),
    ],
)
def test_ranks_of_several_hosts(what, told):
    """Two ranks of each, with sums in memory within each: MPICH takes one host for two."""
    stall = {"PYDTCONV_STALL_TIMEOUT": STALL} if what == "stop" else {}
    wrapper = {"wrapper": ("sh", str(HERE / "wrapped.sh"))} if what == "kill" else {}
    done = failed(what, ranks=4, rank=3, MPIR_CVAR_NUM_CLIQUES=2, **stall, **wrapper)
    assert re.search(told, done.stderr), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("exit", "has left fit: SystemExit: 0|has ended its program"),
        ("return", "has ended its program"),
        ("caught", "has left fit: KeyError: 'on purpose'"),
        ("os._exit", r"has ended its program by os\._exit\(0\)"),
    ],
)
def test_a_rank_that_leaves(what, told):
    done = failed(what)
    first = "the comparison of models"
    where = first if what == "return" else "step 5: bucket 1 of 1 of the gradients .*"
    assert re.search(rf"rank 0 waits in {where} for rank 1 on \S+, which ({told})", done.stderr)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "told"),
    [
        (
            "rate",
            r"expected on all ranks 'optimizer: SGD of learning_rate=\S+', got on rank 1 '.* of learning_rate=0.5'",
        ),
        ("weights", "expected equal weights on all ranks, got variables 'first/kernel' of the norms"),
    ],
)
def test_what_a_callback_changes_on_one_rank(what, told):
    assert re.search(f"rank 1 differs from rank 0: {told}", failed(what).stderr)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["evaluate", "predict"])
def test_a_rank_that_leaves_another_method(method):
    done = failed(method)
    assert re.search(
        rf"rank 0 waits in .* for rank 1 on \S+, which has left {method}: KeyError: 'on purpose'", done.stderr
    )


@pytest.mark.slow
def test_a_rank_that_leaves_with_a_status():
    done = failed("os._exit 3")
    assert re.search(r"rank 1 on \S+ ends by os\._exit\(3\)", done.stderr)


@pytest.mark.slow
def test_the_status_of_a_rank_that_the_others_wait_for():
    done = failed("exit 3")
    assert re.search(r"rank 0 waits in .* for rank 1 on \S+, which has .*3", done.stderr)
    assert done.returncode == 3


@pytest.mark.slow
def test_all_ranks_may_leave_by_os_exit():
    done = run(2, "fail", "leave together", 1)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("leaves") == 2


@pytest.mark.slow
def test_killed_rank():
    done = failed("kill")
    assert done.stdout.count("shared memory with a name: 0") == 2  # it would stay there
    assert "Killed (signal 9)" in done.stdout + done.stderr


@pytest.mark.slow
def test_killed_rank_that_the_launcher_does_not_see():
    done = failed("kill", ranks=3, wrapper=("sh", str(HERE / "wrapped.sh")))
    assert re.search(r"rank \d has .* s,? in .* for rank 1 on \S+, which is dead", done.stderr)


@pytest.mark.slow
def test_other_model():
    done = failed("model")
    assert "rank 1 differs from rank 0" in done.stderr
    assert "'layer 1: Conv2D of filters=4', got on rank 1 'layer 1: Conv2D of filters=5'" in done.stderr
    assert done.stderr.count("Traceback") == 1


@pytest.mark.slow
def test_other_data():
    done = failed("data", ranks=3)
    assert "expected on all ranks 'data: samples 64', got on rank 1 'data: samples 63'" in done.stderr


@pytest.mark.slow
def test_another_call():
    done = failed("astray")
    assert "\"a run of 'train'\", got on rank 1 \"a run of 'test'\"" in done.stderr


@pytest.mark.slow
def test_a_rank_that_predicts_alone():
    done = failed("alone")
    told = "rank 1, in the predictions of a batch: expected all ranks to call the same methods of the same model"
    assert told in done.stderr
    assert "got another call from rank 0" in done.stderr


@pytest.mark.slow
def test_gradient_that_is_not_finite():
    done = failed("nan")
    assert "step 3: the gradient is not finite, first that of last/kernel on rank 1; conv" in done.stderr
