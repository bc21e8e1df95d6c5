"""Images that are cut over ranks: weights, results of epochs, evaluation and predictions are those of one process."""

import json

import numpy as np
import pytest

from tests.distribution.ranks import needs_mpi, run, run_well
from tests.graph.spatial.networks import NETWORKS

pytestmark = needs_mpi
SCRIPT = """
import keras
import numpy as np

keras.utils.set_random_seed(1)
rng = np.random.default_rng(0)
x, y = rng.normal(size=(6, 12, 10, 2)), rng.integers(0, 3, (6, 12, 10))
inputs = keras.Input((12, 10, 2))
hidden = keras.layers.Dropout(0.2)(keras.layers.Conv2D(4, 3, padding="same", activation="relu")(inputs))
model = keras.Model(inputs, keras.layers.Conv2D(3, 3, padding="same", activation="softmax")(hidden))
model.compile("sgd", "sparse_categorical_crossentropy", metrics=["accuracy"])
history = model.fit(x, y, batch_size=2, epochs=2, verbose=0)
print("losses", *(f"{loss:.5f}" for loss in history.history["loss"]), model.predict(x, verbose=0).shape)
"""
#: of each start: the number of ranks, the meshes that it runs through, and the networks
STARTS = {
    "2": (2, ("height=2",), ("classifier", "unet@files", "unet@own")),
    "2 batch": (2, ("batch=2",), ("classifier",)),
    "2 batch more": (2, ("batch=2",), ("unet@files", "augmented", "weighted", "summed")),
    "2 more": (
        2,
        ("width=2", "height=2"),
        ("classifier", "unet@files", "augmented", "weighted", "summed", "unet@resumed"),
    ),
    "4 own": (4, ("height=2,width=2", "batch=2,height=2"), ("classifier@own", "arithmetic@own")),
    "4": (4, ("height=2,width=2", "batch=2,height=2"), ("odd", "unet", "arithmetic", "weighted", "summed")),
    "3": (3, ("height=3", "width=3"), tuple(NETWORKS)),
}
QUICK_AND_SLOW = ["2", *(pytest.param(start, marks=pytest.mark.slow) for start in STARTS if start != "2")]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """The folder with what each rank of each mesh has written, and one process alone."""
    folder = tmp_path_factory.mktemp("spatial")
    done = set()

    def found(start):
        ranks, meshes, names = STARTS[start]
        if start not in done:
            alone = [name for name in names if not (folder / f"{name} alone 0.npz").exists()]
            if alone:
                run_well(0, "spatial", folder, ",".join(alone), "alone")
            run_well(ranks, "spatial", folder, ",".join(names), *meshes, PYDTCONV_STALL_TIMEOUT=60)
            done.add(start)
        return folder

    return found


def loaded(path):
    with np.load(path) as file:
        return dict(file)


@pytest.mark.parametrize("start", QUICK_AND_SLOW)
def test_meshes_equal_one_process(outcomes, start):
    folder, (ranks, meshes, names) = outcomes(start), STARTS[start]
    for name in names:
        one = loaded(folder / f"{name} alone 0.npz")
        for mesh in meshes:
            for rank in range(ranks):
                several = loaded(folder / f"{name} {mesh} {rank}.npz")
                if name.endswith("@resumed") and mesh != meshes[-1]:
                    continue  # its first epoch alone
                assert several.keys() == one.keys()
                for key in one:
                    told = f"{name} {mesh} rank {rank}: {key}"
                    np.testing.assert_allclose(several[key], one[key], rtol=1e-9, atol=1e-10, err_msg=told)


@pytest.mark.slow
def test_one_process_takes_a_checkpoint_of_ranks(outcomes):
    folder = outcomes("2 more")
    run_well(0, "spatial", folder, "unet@taken", "alone")
    one, taken = (loaded(folder / f"unet@{how} alone 0.npz") for how in ("resumed", "taken"))
    assert taken.keys() == one.keys()
    for key in one:
        np.testing.assert_allclose(taken[key], one[key], rtol=1e-9, atol=1e-10, err_msg=key)


@pytest.mark.parametrize("start", QUICK_AND_SLOW)
def test_ranks_have_equal_weights(outcomes, start):
    folder, (ranks, meshes, names) = outcomes(start), STARTS[start]
    for name in names:
        for mesh in meshes:
            first, *others = (loaded(folder / f"{name} {mesh} {rank}.npz") for rank in range(ranks))
            for other in others:
                for key in first:
                    np.testing.assert_array_equal(other[key], first[key], err_msg=f"{name} {mesh}: {key}")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ("--mesh", "height=2,width=2"),
            "--mesh height=2,width=2: expected mpiexec -n 4, got 2 processes",
        ),
        (("--mesh", "depth=2"), "expected images with an axis 'depth'"),
        (("--mesh", "rows=2"), "expected axes among batch, depth, height, width, model"),
    ],
)
def test_meshes_that_cannot_be_are_errors_at_once(tmp_path, arguments, told):
    command = (
        "train",
        "--model",
        "resnet20",
        "--dataset",
        "digits",
        "--output",
        str(tmp_path / "out"),
        *arguments,
    )
    done = run(2, "-mpydtconv", *command, timeout=60)
    assert done.returncode not in (0, None)
    assert told in done.stderr


@pytest.mark.slow
def test_predictions_that_stay_cut_and_time_lines(tmp_path):
    done = run_well(2, "spatial:cut_predictions", tmp_path)
    assert {"rank 0 done", "rank 1 done"} <= set(done.stdout.splitlines())
    events = json.loads((tmp_path / "step.json").read_text())["traceEvents"]
    waits = [event for event in events if event["name"].startswith("halo of ") and "with rank" in event["name"]]
    assert len({event["pid"] for event in waits}) == 2
    names = {event["name"] for event in waits}
    assert any(name.startswith("halo of the gradient of") and "first" in name for name in names)


@pytest.mark.slow
def test_an_unmodified_script_on_a_mesh(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.py").write_text(SCRIPT)
    one = run_well(0, "-m", "pydtconv", "run", "script.py").stdout
    several = run_well(4, "-m", "pydtconv", "run", "--mesh", "height=2,width=2", "script.py").stdout
    assert one.startswith("losses ")
    assert several == one


@pytest.mark.slow
def test_training_on_a_mesh_by_the_command(tmp_path):
    words = ["train", "--model", "resnet20", "--dataset", "digits", "--epochs", "1", "--batch-size", "128"]
    done = run_well(2, "-m", "pydtconv", *words, "--mesh", "height=2", "--output", tmp_path / "out")
    assert "accuracy" in done.stdout
