"""A batch for which there is no memory is an error that leaves the model as it was."""

import io
import os
import re
import subprocess
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest

import pydtconv as keras
from pydtconv.devices import get
from pydtconv.models import legacy_files, model_files
from pydtconv.support.lazy_zeros import untouched
from pydtconv.support.machine import memory_available, memory_left

SHAPE = (8, 8, 3)


def model():
    x = inputs = keras.Input(SHAPE)
    x = keras.layers.Conv2D(8, 3, activation="relu")(x)
    result = keras.Model(inputs, keras.layers.Dense(3)(keras.layers.Flatten()(x)))
    result.compile(keras.optimizers.SGD(0.1, momentum=0.9), "mse")
    return result


def batch(n):
    rng = np.random.default_rng(n)
    return rng.standard_normal((n, *SHAPE), np.float32), rng.standard_normal((n, 3), np.float32)


def test_a_model_goes_on_after_a_batch_for_which_there_is_no_memory(monkeypatch):
    device = get("cpu")
    trained, undisturbed = model(), model()
    undisturbed.set_weights(trained.get_weights())
    for each in (trained, undisturbed):
        each.train_on_batch(*batch(8))
        each.predict_on_batch(batch(16)[0])

    def none(nbytes):
        raise MemoryError(f"Unable to allocate {nbytes} bytes")

    monkeypatch.setattr(type(device), "arena", lambda self, nbytes: none(nbytes))
    with pytest.raises(MemoryError, match="Unable to allocate"):
        trained.train_on_batch(*batch(256))
    monkeypatch.undo()
    for each in (trained, undisturbed):
        each.train_on_batch(*batch(4))  # a smaller arena than the first step wants
        each.train_on_batch(*batch(8))
        each.train_on_batch(*batch(256))
    for ours, theirs in zip(trained.get_weights(), undisturbed.get_weights(), strict=True):
        assert np.array_equal(ours, theirs)


def test_an_arena_that_grows_gives_the_old_one_back_first(monkeypatch):
    trained = model()
    trained.train_on_batch(*batch(8))
    alive = []
    memory = trained._pydt_steps.memory
    make = memory.device.arena

    def watched(nbytes):
        alive.append(arena() is not None)
        return make(nbytes)

    arena = weakref.ref(memory.arena.base)
    monkeypatch.setattr(type(memory.device), "arena", lambda self, nbytes: watched(nbytes))
    trained.train_on_batch(*batch(64))
    assert alive == [False]


#: a model and what may be asked of it; `attempts` of each with so many bytes of address space left
LIMITED = """
import resource, sys
import numpy as np
import pydtconv as keras
from pydtconv import conv, gemm, layers

def made():
    keras.utils.set_random_seed(1)
    model = keras.Sequential([layers.Input((16, 16, 8)), layers.Conv2D(16, 3), layers.BatchNormalization(),
                              layers.ReLU(), layers.Flatten(), layers.Dense(256), layers.Dense(4)])
    model.compile("adam", "mse")
    return model

rng = np.random.default_rng(0)
x, a = rng.standard_normal((128, 16, 16, 8), np.float32), rng.standard_normal((700, 700), np.float32)
p = conv.ConvProblem(8, 32, 32, 16, 32, 3, padding="same")
image, filters = rng.standard_normal(p.x_shape, np.float32), rng.standard_normal(p.w_shape, np.float32)
folder, seed = sys.argv[1], int(sys.argv[2])
model = made()
model.train_on_batch(x[:8], np.zeros((8, 4)))
model.save(folder + "/a.keras")
model.save_weights(folder + "/a.weights.h5")
requests = {
    "train": lambda: made().fit(x, np.zeros((128, 4)), batch_size=64, verbose=0),
    "predict": lambda: model.predict_on_batch(x[: rng.integers(1, 128)]),
    "save": lambda: model.save(folder + "/b.keras"),
    "save h5": lambda: model.save(folder + "/b.h5"),
    "save weights": lambda: model.save_weights(folder + "/b.weights.h5"),
    "load": lambda: keras.models.load_model(folder + "/a.keras"),
    "load weights": lambda: model.load_weights(folder + "/a.weights.h5"),
    "product": lambda: gemm.gemm(a, a),
    "convolution": lambda: conv.forward(p, image, filters),
}
want = model.predict_on_batch(x[:8])
rng, errors = np.random.default_rng(seed), {name: 0 for name in requests}
for name, request in requests.items():
    for _ in range(8):
        pages = int(open("/proc/self/statm").read().split()[0])
        most = pages * resource.getpagesize() + int(2 ** rng.uniform(12, 24))
        resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
        try:
            request()
        except MemoryError as error:
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
            assert str(error), name
            errors[name] += 1
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
    assert np.array_equal(model.predict_on_batch(x[:8]), want), name
    request()
assert sum(errors.values()) > 5, errors
print("done")
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory as Linux has them")
def test_memory_that_runs_out_anywhere(tmp_path):
    """MemoryError with words, and all goes on."""
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path), "1"], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.stdout, done.stderr) == ("done\n", "")


@pytest.mark.parametrize("name", ["a.keras", "a.h5"])
def test_a_file_for_which_there_is_no_memory(name, tmp_path, monkeypatch):
    """HDF5's own error, of the file that it could not close, is not what is told."""
    large = model()
    large.save(tmp_path / name)
    before = (tmp_path / name).read_bytes()

    class Full(io.BytesIO):
        def write(self, data):
            if self.tell() + len(data) > 4096:
                raise MemoryError
            return super().write(data)

    for module in (model_files, legacy_files):
        monkeypatch.setattr(module.io, "BytesIO", Full)
    with pytest.raises(MemoryError, match=r"no memory to write weights of 0\.0 MiB"):
        large.save(tmp_path / name)
    monkeypatch.undo()
    assert (tmp_path / name).read_bytes() == before
    large.save(tmp_path / name)


def test_arrays_fresh_from_the_system_are_errors_of_memory():
    with pytest.raises(MemoryError, match=r"Unable to allocate \d+\.0 MiB for an array of float32"):
        untouched((1 << 60,), "float32")


GROUPS = {
    "second version": {
        "proc/self/cgroup": "0::/jobs/one\n",
        "sys/fs/cgroup/jobs/one/memory.max": "max\n",
        "sys/fs/cgroup/jobs/one/memory.stat": "anon 100\nfile 5000\nshmem 20\n",
        "sys/fs/cgroup/jobs/memory.max": "1000\n",
        "sys/fs/cgroup/jobs/memory.stat": "anon 300\nfile 5000\nshmem 20\n",
    },
    "first version": {
        "proc/self/cgroup": "4:cpu,memory:/jobs\n1:cpuset:/\n0::/\n",
        "sys/fs/cgroup/memory/jobs/memory.limit_in_bytes": "1000\n",
        "sys/fs/cgroup/memory/jobs/memory.stat": "rss 1\ntotal_rss 300\ntotal_shmem 20\ntotal_cache 9000\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        "sys/fs/cgroup/memory/memory.stat": "total_rss 4000\n",
    },
    "in a container": {
        "proc/self/cgroup": "4:memory:/docker/of/the/host\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "1000\n",
        "sys/fs/cgroup/memory/memory.stat": "total_rss 320\n",
    },
}


@pytest.mark.parametrize("files", GROUPS.values(), ids=GROUPS)
@pytest.mark.parametrize("swap", [0, 3])
def test_what_control_groups_leave(files, swap, tmp_path):
    for name, text in (files | {"proc/meminfo": f"MemTotal: 9 kB\nSwapFree: {swap} kB\n"}).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert memory_left(tmp_path) == 680 + 1024 * swap


def test_no_limits_of_control_groups(tmp_path):
    assert memory_left(tmp_path) is memory_available(tmp_path) is None


@pytest.mark.parametrize(("limit", "available"), [(None, 7 << 10), (5 << 10, 4 << 10), (9 << 10, 7 << 10)])
def test_what_the_system_has_counts_within_the_limits(tmp_path, limit, available):
    files = {"proc/meminfo": "MemTotal: 9 kB\nMemAvailable: 7 kB\n"}
    if limit is not None:
        files |= {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": f"{limit}"}
        files["sys/fs/cgroup/memory.stat"] = "anon 1024\n"
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert memory_available(tmp_path) == available


IN_A_GROUP = """
import sys
import numpy as np
import pydtconv as keras
from pydtconv import layers
model = keras.Sequential([layers.Input((64, 64, 1)), layers.Conv2D(64, 3), layers.GlobalAveragePooling2D()])
x = np.ones((1024, 64, 64, 1), "float32")
want = model.predict_on_batch(x[:4])
open(sys.argv[1] + "/cgroup.procs", "w").write("0")
try:
    model.predict_on_batch(x)
except MemoryError as error:
    print(error)
assert np.array_equal(model.predict_on_batch(x[:4]), want)
"""


@pytest.fixture
def control_group():
    """The folder of a control group whose processes may have 300 MiB."""
    root = Path("/sys/fs/cgroup")
    first = (root / "memory").is_dir()
    folder = root / ("memory" if first else "") / f"pydtconv-test-{os.getpid()}"
    try:
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    try:
        (folder / ("memory.limit_in_bytes" if first else "memory.max")).write_text(str(300 << 20))
        yield folder
    except OSError as error:
        pytest.skip(f"control groups have no limits of memory here: {error}")
    finally:
        folder.rmdir()


@pytest.mark.slow
def test_a_batch_beyond_the_limit_of_a_control_group(control_group):
    """The system would end the process when it used the memory that it was given."""
    done = subprocess.run(
        [sys.executable, "-c", IN_A_GROUP, str(control_group)], capture_output=True, text=True, timeout=60, check=False
    )
    assert re.search(r"UserWarning: a step takes \d+ MiB, more than the \d+ MiB .*memory_limit=", done.stderr)
    told = r"Unable to allocate \d+\.\d MiB: the memory limit of this control group leaves \d+\.\d MiB\n"
    assert re.fullmatch(told, done.stdout)
