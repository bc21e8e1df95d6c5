"""What differs between ranks is found at the start, by all of them; an end that one asks for comes for all."""

import json

import pytest

import pydtconv
from tests.distribution.ranks import needs_mpi, run, run_well

pytestmark = needs_mpi
RANKS = 2
#: what the error names, where rank 1 differs
NAMED = {
    "values": "data: x[0] with the values ",
    "large": "data: x[0] with the values ",
    "labels": "data: y[0] with the values ",
    "length": "data: samples 24",
    "dtype": "data: x[0] of shape (32, 4), float64",
    "weights": "data: sample_weight[0] with the values ",
    "validation": "data: x[0] with the values ",
    "evaluate": "data: x[0] with the values ",
    "predict": "data: x[0] with the values ",
    "dataset": "data: the first batch: shape (8, 4), float32, values ",
    "batches": "data: num_batches 3",
    "generator": "data: the first batch: shape (32, 4), float32, values ",
    "metrics": "metrics: mse",
    "fewer metrics": "metrics: none'",
    "top k": "metric sparse_top_k_categorical_accuracy: SparseTopKCategoricalAccuracy of k=2",
    "loss": "loss 0: SparseCategoricalCrossentropy of from_logits=False",
    "loss function": "loss 0: LossFunctionWrapper of other_loss",
    "regularizer": "'l2': 0.5",
    "epochs": "fit: epochs=3",
    "frequency": "fit: validation_freq=2",
    "callback": "callback: EarlyStopping of patience=4",
    "other validation": "a run of 'test'",
    "other data": "data: StreamData",
    "other call": "a batch of 'train'",
    "split": "split: Split(depth=0.5, splits=(2, 2), ",
    "profiler": "callback: Profiler of steps=3",
    "profiler of one": "callback: Profiler of steps=2",
    "one callback": "callback: TerminateOnNaN",
    "config": "epsilon=1e-06",
}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("agree")
    run_well(RANKS, "agree", folder)
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(RANKS)]


@pytest.mark.slow
@pytest.mark.parametrize("case", NAMED)
def test_what_differs_on_one_rank_is_an_error_on_all(found, case):
    text = found[0][case]
    assert text.startswith("rank 1 differs from rank 0: expected on all ranks ")
    assert NAMED[case] in text.partition("got on rank 1 ")[2]
    assert [other[case] for other in found] == [text] * RANKS


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "words"), [("input", "input: expected extent 4 on axis -1"), ("class", "expected class numbers")]
)
def test_what_one_rank_alone_is_refused_all_are(found, case, words):
    first, second = (other[f"refused {case}"] for other in found)
    assert words in second
    assert first == f"rank 1 cannot take the first step: ValueError: {second}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "counts"), [("train", [2, 2]), ("epoch", [2, 2]), ("test", [2]), ("predict", [3, 24])]
)
def test_an_end_that_one_rank_asks_for(found, case, counts):
    assert [other[f"stop {case}"] for other in found] == [counts] * RANKS


@pytest.mark.slow
@pytest.mark.parametrize(("moment", "done"), [("train", [1, 1]), ("epoch", [1, 1]), ("test", [True]), ("predict", [8])])
def test_an_end_that_one_rank_asks_for_before_the_first_batch(found, moment, done):
    assert [other[f"stop before {moment}"] for other in found] == [done] * RANKS


@pytest.mark.slow
def test_a_file_that_rank_0_has_written_by_itself_is_not_taken_for_one_of_all(found):
    assert [other["saved again"] for other in found] == [[1.0] * 6] * RANKS
    weights, steps = found[0]["loaded by rank 0"]
    assert steps == 8
    assert all(other["loaded by rank 0"] == [weights, steps] for other in found)


@pytest.mark.slow
def test_scopes_that_are_entered_again_take_no_more_communicators(found):
    assert [other["scopes"] for other in found] == [[0, 0]] * RANKS


@pytest.mark.slow
def test_another_version():
    done = run(2, "fail", "version", 1)
    assert done.returncode
    assert f"expected version {pydtconv.__version__}, as rank 0 has, on all ranks, got 9.9.9 on rank 1" in done.stderr
