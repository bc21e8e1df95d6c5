"""An unmodified Keras script, and the command, under mpiexec: one prints, one writes, all read."""

import numpy as np
import pytest

from pydtconv import applications
from tests.distribution.ranks import needs_mpi, run, run_well

pytestmark = needs_mpi
SCRIPT = """
import keras
import numpy as np

x, y = np.random.default_rng(0).normal(size=(50, 6)), np.arange(50) % 2
model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(2, activation="softmax")])
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(x, y, epochs=2, verbose=2, callbacks=[keras.callbacks.CSVLogger("log.csv")])
model.save("model.keras")
again = keras.models.load_model("model.keras")
assert np.array_equal(again.predict(x, verbose=0), model.predict(x, verbose=0))
print("loaded")
"""


def test_script(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.py").write_text(SCRIPT)
    done = run_well(2, "-m", "pydtconv", "run", "--bucket-size", "1", "script.py")
    assert done.stdout.count("Epoch 2/2") == 1
    assert done.stdout.count("loaded") == 1
    assert (tmp_path / "log.csv").read_text().count("\n") == 3


@pytest.mark.slow
def test_script_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.py").write_text("from pydtconv import replica\nprint(f'size {replica.current().size}')")
    done = run_well(2, "-m", "pydtconv", "run", "--no-distribution", "script.py")
    assert done.stdout.count("size 1") == 2


@pytest.mark.slow
def test_train_gives_the_result_of_one_rank(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shared = ("--dataset", "digits", "--samples", "14", "--batch-size", "7", "--epochs", "1", "--dtype", "float64")

    def weights(ranks, *options):
        run_well(ranks, "-m", "pydtconv", "train", "--model", "resnet20", *shared, *options)
        network = applications.build("resnet20", (8, 8, 1), 10)
        network.load_weights("resnet20.weights.h5")
        return network.get_weights()

    one, several, apart = weights(0), weights(2), weights(2, "--no-sync-batchnorm")
    for expected, found in zip(one, several, strict=True):
        np.testing.assert_allclose(found, expected, 1e-5, 1e-6)
    assert max(np.abs(a - b).max() for a, b in zip(one, apart, strict=True)) > 0.01


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--no-sync-batchnorm"], "--no-sync-batchnorm: changes nothing for mlp, which has no batch normalization"),
        (["--mesh", "height=2", "--sync-batchnorm"], "--sync-batchnorm: changes nothing with --mesh"),
        (["--bucket-size", "much"], "--bucket-size: expected MiB above 0 or 'tune', got 'much'"),
        (["--warmup-epochs", "2"], "--warmup-epochs: expected --base-batch-size too"),
    ],
)
def test_wrong_options_are_told_once(options, told):
    done = run(2, "-m", "pydtconv", "train", "--model", "mlp", "--dataset", "digits", *options)
    assert done.returncode == 2
    assert done.stderr.count(told) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "count"), [((), 1), (("-m", "pydtconv", "run"), 0), (("-m", "pydtconv", "run", "--no-distribution"), 0)]
)
def test_a_script_that_trains_apart_is_told_so(options, count, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nimport numpy as np\nimport pydtconv as keras\n"
        "model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(2)])\n"
        "model.compile('sgd', 'mse')\n"
        "model.fit(np.ones((8, 6)), np.ones((8, 2)), verbose=0)\n"
        "assert ('mpi4py' in sys.modules) == ('run' in sys.orig_argv and '--no-distribution' not in sys.orig_argv)\n"
    )
    done = run_well(2, *(options or (str(script),)), *((script,) if options else ()))
    assert done.stderr.count("each trains a model of its own") == count
