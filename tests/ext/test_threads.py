"""The number of threads: what may be set, and that nothing which runs notices another thread setting it."""

import contextlib
import ctypes
import platform
import subprocess
import sys
import threading

import numpy as np
import pytest

import pydtconv
from pydtconv import config, conv, gemm, layers
from pydtconv._ext import optimizers, runtime
from pydtconv.conv import ConvProblem
from pydtconv.graph import Executor, Graph, Memory, build_plan
from pydtconv.ops.base import spec_of

P = ConvProblem(2, 16, 16, 16, 16, 3, padding="same")


@pytest.mark.parametrize("threads", [0, -1, 1025, 2**31 - 1, 2**40, 2.0, "2", True, None])
def test_numbers_that_are_refused(threads):
    before = config.num_threads()
    with pytest.raises(ValueError, match=r"set_num_threads: expected an integer of 1 or more, at most 1024, got"):
        config.set_num_threads(threads)
    assert config.num_threads() == before


@pytest.mark.parametrize("text", ["100000", "0", "-1", "²", "٣", "1e3", "abc", "9" * 5000])
def test_environment_variables_that_are_no_numbers(monkeypatch, text):
    """Ours is refused; that of all programs with OpenMP is passed over."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setenv("PYDTCONV_NUM_THREADS", text)
    with pytest.raises(ValueError, match="PYDTCONV_NUM_THREADS: expected an integer of 1 or more, at most 1024, got '"):
        config.default_num_threads()
    monkeypatch.delenv("PYDTCONV_NUM_THREADS")
    usual = config.default_num_threads()
    monkeypatch.setenv("OMP_NUM_THREADS", text)
    with pytest.warns(RuntimeWarning, match="OMP_NUM_THREADS: expected an integer .* got '.*': passed over"):
        assert config.default_num_threads() == usual


def test_c_bounds_what_it_is_told():
    runtime.set_num_threads(2**31 - 1)
    assert runtime.get_num_threads() == runtime.MOST_THREADS
    runtime.set_num_threads(-5)
    assert runtime.get_num_threads() == 1


def test_a_hold_is_of_one_thread_and_ends():
    config.set_num_threads(2)
    seen = []
    with config.hold_num_threads(3):
        config.set_num_threads(4)
        with config.hold_num_threads():
            assert config.num_threads() == 3
        other = threading.Thread(target=lambda: seen.append(config.num_threads()))
        other.start()
        other.join()
        assert config.num_threads() == 3
    assert seen == [4]
    assert config.num_threads() == 4


def test_a_hold_ends_wherever_ctrl_c_comes():
    """Also as the block is left, where Python code would be interrupted before it has said so."""
    config.set_num_threads(2)

    def interrupt(frame, event, arg):
        if frame.f_code.co_name == "__exit__":
            raise KeyboardInterrupt

    hold, usual = config.hold_num_threads(3), sys.gettrace()  # one that measures what tests cover
    with contextlib.suppress(KeyboardInterrupt):
        with hold:
            sys.settrace(interrupt)
        sys.settrace(None)
    sys.settrace(usual)
    assert config.num_threads() == 2


class Setter:
    """Sets the number of threads again and again, until the block ends."""

    def __enter__(self):
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._set)
        self._thread.start()

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()

    def _set(self):
        while not self._over.is_set():
            for threads in (1, 3, 2, 4):
                runtime.set_num_threads(threads)


@pytest.fixture
def short_switches():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("short_switches")
@pytest.mark.parametrize("algorithm", ["direct", "convgemm_trans", "winograd", "rdx", "exchanged_strides"])
def test_convolutions_while_the_number_changes(algorithm):
    random = np.random.default_rng(0)
    x, dy = (random.standard_normal(shape).astype(P.dtype) for shape in (P.x_shape, P.y_shape))
    want = conv.backward_weights(P, x, dy, algorithm=algorithm)
    with Setter():
        for _ in range(150):
            assert np.array_equal(conv.backward_weights(P, x, dy, algorithm=algorithm), want)


@pytest.mark.usefixtures("short_switches")
def test_products_while_the_number_changes():
    random = np.random.default_rng(0)
    a, b = random.standard_normal((200, 64)), random.standard_normal((64, 96))
    want = gemm.gemm(a, b)
    with Setter():
        for _ in range(150):
            assert np.array_equal(gemm.gemm(a, b), want)


#: where fenv_t of the C library has MXCSR or FPCR, and its bits for denormal numbers that are zeros
FLUSHES = {"x86_64": (7, 0x8040), "aarch64": (0, 1 << 24)}


@contextlib.contextmanager
def flushed_denormals():
    """In the calling thread denormal numbers are zeros, as after torch.set_flush_denormal(True)."""
    if sys.platform != "linux" or platform.machine() not in FLUSHES:
        pytest.skip("the state of floating-point numbers is set as in glibc")
    libm, before = ctypes.CDLL("libm.so.6"), (ctypes.c_uint32 * 8)()
    libm.fegetenv(before)
    place, bits = FLUSHES[platform.machine()]
    changed = type(before)(*before)
    changed[place] |= bits
    libm.fesetenv(changed)
    try:
        yield
    finally:
        libm.fesetenv(before)


SMALL = np.random.default_rng(0).uniform(1e-39, 1e-37, 1 << 18).astype("float32")


def of_convolutions(algorithm):
    x, w = SMALL[: 2 * 16**3].reshape(P.x_shape), np.full(P.w_shape, 1e-3, "float32")
    return lambda: conv.forward(P, x, w, algorithm=algorithm)


def of_updates():
    params, velocity = np.zeros_like(SMALL), SMALL.copy()
    optimizers.momentum(params, SMALL, velocity, 0.1, 0.9, False)
    return velocity


COMPUTE = {
    "gemm": lambda: gemm.gemm(SMALL.reshape(512, 512), np.full((512, 64), 1e-3, "float32")),
    **{f"forward-{algorithm}": of_convolutions(algorithm) for algorithm in ("direct", "convgemm", "im2col")},
    "momentum": of_updates,
    "pooling": lambda: np.asarray(pydtconv.ops.average_pool(SMALL.reshape(4, 64, 64, 16), 3)),
}


@pytest.mark.parametrize("name", COMPUTE)
def test_all_threads_treat_denormal_numbers_as_the_caller_does(name):
    compute = COMPUTE[name]
    config.set_num_threads(1)
    usual = compute()
    with flushed_denormals():
        want = compute()
        config.set_num_threads(4)
        got = [compute() for _ in range(40)]
    assert not np.array_equal(want, usual)
    assert all(np.array_equal(value, want) for value in got)
    assert np.array_equal(compute(), usual)  # the threads have come back


class _Sets:
    """A hook that sets another number of threads before each step of a plan."""

    def __init__(self):
        self.seen = []

    def before(self, index, step):
        config.set_num_threads(1 + index % 4)
        self.seen.append(runtime.get_num_threads())

    def after(self, index, step):
        pass

    def gradient_ready(self, part):
        pass


def test_a_plan_runs_on_the_threads_it_was_made_for():
    """Its workspaces have room for these only."""
    x = np.random.default_rng(0).standard_normal(P.x_shape).astype(P.dtype)
    config.set_num_threads(1)
    graph = Graph()
    with graph:
        tensor = graph.input("x", spec_of(x))
        for _ in range(3):
            tensor = layers.Conv2D(16, 3, padding="same", activation="relu")(tensor)
    graph.outputs = {"y": tensor}
    executor = Executor(build_plan(graph), Memory())
    want = executor.run({"x": x})["y"].copy()
    executor.hooks = hooks = _Sets()
    assert np.array_equal(executor.run({"x": x})["y"], want)
    assert set(hooks.seen) == {1}


@pytest.mark.usefixtures("short_switches")
def test_training_while_the_number_changes():
    """The same bits as without: a step is planned and run on one number."""
    x, y = np.random.default_rng(0).standard_normal((64, 8, 8, 4)).astype("float32"), np.arange(64) % 10

    def weights(**options):
        pydtconv.utils.set_random_seed(1)
        model = pydtconv.Sequential([layers.Conv2D(8, 3, activation="relu"), layers.Flatten(), layers.Dense(10)])
        model.compile("sgd", pydtconv.losses.SparseCategoricalCrossentropy(from_logits=True))
        model.fit(x, y, batch_size=16, epochs=3, verbose=0, shuffle=False)
        return model.get_weights()

    want = weights()
    with Setter():
        got = weights()
    assert all(np.array_equal(a, b) for a, b in zip(got, want, strict=True))


@pytest.mark.slow
def test_exit_while_a_thread_trains():
    """Daemon threads do not keep the process, and its end does not crash under them."""
    code = """
import threading, time, numpy as np, pydtconv
from pydtconv import config, conv
config.set_num_threads(2)
p = conv.ConvProblem(8, 32, 32, 32, 32, 3, padding="same")
x, w = np.ones(p.x_shape, "float32"), np.ones(p.w_shape, "float32")
def work():
    while True:
        conv.forward(p, x, w)
for _ in range(2):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.3)
print("over", flush=True)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "over\n", "")


SHORT_OF_MEMORY = """
import resource
import threading
import numpy as np
from pydtconv import config, conv
p = conv.ConvProblem(8, 32, 32, 16, 16, 3, padding="same")
rng = np.random.default_rng(0)
x, w, y = (rng.standard_normal(shape, np.float32) for shape in (p.x_shape, p.w_shape, p.y_shape))
config.set_num_threads(1)
want = conv.forward(p, x, w)

config.set_num_threads(6)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (20 << 20), resource.RLIM_INFINITY))  # two stacks of 8 MiB
for _ in range(3):
    assert np.array_equal(conv.forward(p, x, w, out=y), want)
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
assert np.array_equal(conv.forward(p, x, w, out=y), want)
print("done")
"""


@pytest.mark.slow
@pytest.mark.skipif(runtime.spin_seconds() is None, reason="the compiler's OpenMP starts the threads")
def test_fewer_threads_compute_where_there_is_no_memory_for_more():
    """Other libraries of OpenMP end the process: "Thread creation failed"."""
    done = subprocess.run([sys.executable, "-c", SHORT_OF_MEMORY], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("done\n", "")
