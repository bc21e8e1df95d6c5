"""Shards of the optimizer's state and of gradients: bits as without them, a part of the memory, checkpoints as ever."""

import json

import numpy as np
import pytest

from pydtconv import cli, optimizers, replica
from pydtconv.distribution.gradients import buckets
from pydtconv.distribution.options import Options
from pydtconv.graph.ir.variable import Variable
from pydtconv.graph.memory.parameter_store import ParameterStore
from tests.distribution import shards
from tests.distribution.ranks import needs_mpi, run_well

RANKS = 3
#: what each process would need all gradients for
OWN = {"own apply", "own step"}
#: sums in another order: of norms, of each process's pieces; of gradients that are summed in each step
REORDERED = ("by variable", "clipnorm", "global_clipnorm", "decayed", "accumulated")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"shard": True}, "shard: expected 'optimizer', 'gradients' or None, got True"),
        ({"shard": "weights"}, "shard: expected 'optimizer', 'gradients' or None, got 'weights'"),
        ({"shard": "optimizer", "bucket_size": "tune"}, "bucket_size: expected MiB with shard, .* got 'tune'"),
    ],
)
def test_options(given, told):
    with pytest.raises(ValueError, match=told):
        Options(**given)


class OfAll(optimizers.Optimizer):
    def build(self, variables):
        super().build(variables)
        self.sum = self.add_variable((), name="sum")

    def update_step(self, gradient, variable, learning_rate):
        """Nothing."""


def parts_of_plan(optimizer, **shared):
    model = shards.network()
    model.compile(optimizer, "sparse_categorical_crossentropy")
    with replica.one_of(4, **shared):
        plan = model.plan(8)
    return plan, plan.parts()


@pytest.mark.parametrize("steps", [None, 2])
def test_plans_know_of_shards(steps):
    given = {"use_ema": True, "gradient_accumulation_steps": steps}
    plan, whole = parts_of_plan(optimizers.Adam(**given))
    for shard in "optimizer", "gradients":
        _, found = parts_of_plan(optimizers.Adam(**given), shard=shard)
        accumulated = plan.trainable_bytes if steps and shard == "optimizer" else 0
        assert found["optimizer slots"] == (whole["optimizer slots"] - accumulated) // 4 + accumulated
        largest = max(tensor.spec.nbytes for tensor in plan.gradient_order)
        kept = largest + (whole["gradients"] - largest) // 4
        assert found["gradients"] == (kept if shard == "gradients" else whole["gradients"])
    for kind in optimizers.Lamb, optimizers.ScheduleFreeAdamW:  # whole variables
        _, found = parts_of_plan(kind(), shard="optimizer")
        _, plain = parts_of_plan(kind())
        sizes = [np.prod(variable.shape) for variable in shards.network().trainable_variables]
        assert found["optimizer slots"] == pytest.approx(plain["optimizer slots"] * max(sizes) / sum(sizes), abs=2)
    expected = "shard: expected an optimizer that updates each variable by itself, got"
    for own, told in (shards.Own(0.01), "one with an apply"), (OfAll(0.01), "'of_all/sum', which is of all"):
        with pytest.raises(NotImplementedError, match=f"{type(own).__name__}: {expected} {told}"):
            parts_of_plan(own, shard="optimizer")


@pytest.mark.parametrize("count", [1, 2, 3, 7])
@pytest.mark.parametrize("nbytes", [1, 4096, 1 << 30])
def test_pieces_of_whole_variables(count, nbytes):
    """They are all of each bucket, and processes differ by the largest variable at most."""
    rng = np.random.default_rng(0)
    sizes, dtypes = rng.integers(1, 3000, 40), ["float32", "float32", "float64", "float32"] * 10
    store = ParameterStore([Variable(np.zeros(n, d), name="v") for n, d in zip(sizes, dtypes, strict=True)])
    pieces, loads = buckets.WholeVariables(store, nbytes, count), np.zeros(count)
    starts = {store.slice_of(variable).start for variable in store.variables} | {store.size}
    for bucket in buckets.buckets_of(store, nbytes):
        found = [bucket.in_words(piece) for piece in pieces(bucket)]
        kept = sorted((piece.start, piece.stop) for piece in found if piece.stop > piece.start)
        assert [start for start, _ in kept] + [bucket.part.stop] == [bucket.part.start] + [stop for _, stop in kept]
        assert {end for piece in kept for end in piece} <= starts
        loads += [piece.stop - piece.start for piece in found]
    assert loads.max() - loads.min() <= 2 * (sizes.max() + 16)


def test_the_plan_of_a_rank(capsys):
    command = ["plan", "--model", "resnet20", "--optimizer", "adam", "--batch-size", "2"]
    assert not cli.main([*command, "--shard", "optimizer", "--ranks", "2"])
    lines = dict(line.split(":") for line in capsys.readouterr().out.splitlines() if line.endswith("MiB"))
    assert float(lines["         optimizer slots"][:-3]) == pytest.approx(
        float(lines["               gradients"][:-3]), abs=0.02
    )
    assert cli.main([*command, "--shard", "optimizer"])
    assert "expected --shard and --ranks together, got --shard optimizer, --ranks None" in capsys.readouterr().err


def loaded(path):
    with np.load(path) as found:
        return dict(found)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    one, several = tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("several")
    run_well(0, "shards", one)
    run_well(RANKS, "shards", several)
    return one, several


def on_ranks(test):
    for mark in (*needs_mpi, pytest.mark.slow):
        test = mark(test)
    return test


SHARDED = [way for way in shards.WAYS if "unsharded" not in way]


@on_ranks
@pytest.mark.parametrize("way", SHARDED)
def test_bits_are_those_without_shards(outcomes, way):
    _, folder = outcomes
    plain = loaded(folder / ("unsharded, bfloat16.0.npz" if "bfloat16" in way else "unsharded.0.npz"))
    for rank in range(RANKS):
        found = loaded(folder / f"{way}.{rank}.npz")
        names = shards.FEW if way not in shards.WHOLE_WAYS else shards.RUNS.keys() - OWN
        assert {key.split(":")[0] for key in found} == set(names)
        for key, value in found.items():
            if key.startswith(REORDERED):
                np.testing.assert_allclose(value, plain[key], 1e-9, 1e-11, err_msg=f"rank {rank}: {key}")
            else:
                np.testing.assert_array_equal(value, plain[key], err_msg=f"rank {rank}: {key}")


@on_ranks
@pytest.mark.parametrize("way", [way for way in SHARDED if "bfloat16" not in way])
def test_results_are_those_of_one_process(outcomes, way):
    one, folder = loaded(outcomes[0] / "unsharded.0.npz"), outcomes[1]
    for key, value in loaded(folder / f"{way}.1.npz").items():
        rtol, atol = (1e-4, 1e-5) if key.startswith("two dtypes") else (1e-7, 1e-9)
        np.testing.assert_allclose(value, one[key], rtol, atol, err_msg=key)


@on_ranks
def test_what_cannot_be_sharded_says_so(outcomes):
    for rank in range(RANKS):
        told = json.loads((outcomes[1] / f"optimizer.{rank}.json").read_text())
        assert told.keys() == OWN


@on_ranks
def test_state_of_a_rank_takes_its_part(outcomes):
    for rank in range(RANKS):
        parts = json.loads((outcomes[1] / f"memory.{rank}.json").read_text())
        assert 0.2 < parts["adam"] < 0.25  # a third of two slots; no gradients, which are applied within backward
        assert 0.25 < parts["schedulefreeadamw"] < 0.39  # three or four of eleven large variables


@on_ranks
def test_ranks_go_on_after_a_step_that_is_broken_off(outcomes):
    """They may have updated different buckets by then."""
    first = loaded(outcomes[1] / "broken.0.npz")
    for rank in range(1, RANKS):
        for key, value in loaded(outcomes[1] / f"broken.{rank}.npz").items():
            np.testing.assert_array_equal(value, first[key], err_msg=f"rank {rank}: {key}")


@on_ranks
def test_checkpoints_resume_on_any_number_of_ranks(tmp_path):
    for epochs, ranks, way in (1, 3, "gradients, sent"), (2, 0, "unsharded"), (3, 2, "optimizer"):
        run_well(ranks, "shards", tmp_path, epochs, way)
    run_well(0, "shards", tmp_path / "one", 3, "unsharded")
    one, resumed = loaded(tmp_path / "one/resumed3.0.npz"), loaded(tmp_path / "resumed3.1.npz")
    for key, value in one.items():
        np.testing.assert_allclose(resumed[key], value, 1e-7, 1e-9, err_msg=key)
