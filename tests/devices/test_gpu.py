"""The GPU backend: its code over a stand-in for CuPy, what is missing in one line, and, where there is one, a GPU."""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import config, conv, devices, fft, naming
from pydtconv.cli import gpu, main
from pydtconv.conv import ConvProblem, timings
from pydtconv.devices import DeviceError, names
from pydtconv.devices.gpu import missing
from tests.devices import cupy_stand_in
from tests.devices.test_training import OPTIMIZERS, convnet, losses_of


@pytest.fixture
def without_gpu(monkeypatch):
    """Nothing is known of a GPU, before and after."""
    monkeypatch.setattr(names, "_made", {name: made for name, made in names._made.items() if "gpu" not in name})


@pytest.mark.slow
def test_importing_costs_nothing():
    """Also where CuPy is installed: it is not imported before a GPU is asked for."""
    code = (
        "import sys, pydtconv as k; from pydtconv import layers, models, optimizers, conv, fft, trainers; "
        "k.Sequential([k.Input((3,)), layers.Dense(2)]).compile('adam', 'mse'); "
        "assert not [m for m in sys.modules if m.startswith(('cupy', 'pydtconv.devices.gpu', 'pydtconv.kernels.gpu'))]"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


@pytest.mark.parametrize("text", ["gpu:x", "tpu", "cpu:1", "gpu:-1", ""])
def test_names_that_are_none(text):
    with pytest.raises(ValueError, match="device: expected 'cpu', 'gpu', 'gpu:<number>' or 'host', got"):
        config.set_device(text)


def test_names():
    assert [naming.device_name(name) for name in ("GPU", "gpu:1", "cpu", "CPU:0", "host")] == [
        *("gpu:0", "gpu:1", "cpu", "cpu", "host")
    ]
    assert config.device() == "cpu"
    with keras.device("host"):
        assert config.device() == "host"
    assert config.device() == "cpu"


@pytest.mark.usefixtures("without_gpu")
class TestWhatIsMissing:
    """One line that says which of CuPy, driver and device; nothing has changed then."""

    def check(self, message, device="gpu"):
        with pytest.raises(DeviceError, match=message) as caught:
            config.set_device(device)
        assert "\n" not in str(caught.value)
        assert config.device() == "cpu"
        with pytest.raises(DeviceError, match=message), keras.device(device):
            pass

    def test_cupy(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "cupy", None)
        self.check(r"^device gpu: expected CuPy \(pip install 'pydtconv\[gpu\]'\), got none$")

    def test_driver(self, monkeypatch):
        cupy_stand_in.install(monkeypatch, error="cudaErrorInsufficientDriver: CUDA driver version\nis insufficient")
        self.check("^device gpu: expected NVIDIA's driver, got none that CuPy can use: cudaErrorInsufficientDriver")

    def test_device(self, monkeypatch):
        cupy_stand_in.install(monkeypatch, error="cudaErrorNoDevice: no CUDA-capable device is detected")
        self.check("^device gpu: expected an NVIDIA GPU, got none$")

    @pytest.mark.parametrize("library", ["cublas", "nvrtc"])
    def test_library(self, monkeypatch, library):
        cupy_stand_in.install(monkeypatch, without=library)
        self.check(
            rf"^device gpu: expected NVIDIA's {library} \(pip install 'pydtconv\[gpu\]'\), it cannot be loaded: "
        )

    def test_number(self, monkeypatch):
        cupy_stand_in.install(monkeypatch)
        self.check("^device gpu:3: expected a number below 1, the GPUs of this machine$", "gpu:3")

    def test_commands(self, monkeypatch, capsys):
        monkeypatch.setitem(sys.modules, "cupy", None)
        assert main(["train", "--model", "mlp", "--dataset", "digits", "--device", "gpu"]) != 0
        assert "--device: device gpu: expected CuPy" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.usefixtures("without_gpu")
def test_what_doctor_tells(monkeypatch):
    """Driver, device, memory, and what kernels reach of the device's peak."""
    cupy_stand_in.install(monkeypatch)
    monkeypatch.setattr(gpu, "SWEPT", 256)
    monkeypatch.setattr(gpu, "TRANSFORMED", 256)
    monkeypatch.setattr(gpu, "PRODUCT", 8)
    monkeypatch.setattr(gpu, "IMAGE", (1, 4, 4, 2))
    monkeypatch.setattr(gpu.seconds_of, "__defaults__", (1,))
    lines = list(gpu.report(measure=False))
    assert lines[0] == ("gpu:0", "stand-in, compute capability 80, 2 processors")
    assert lines[1][1].endswith("GiB free, driver for CUDA 12.4")
    found = [text for _, text in gpu.report(measure=True)][len(lines) :]
    transforms = [f"fourier.{way}_{n}" for n in (2, 4, 8, 16, 32, 64, 128, 256) for way in ("forward", "inverse")]
    kernels = ["elementwise.copy", "columns.column_sums", "optimizers.adam", "convolution.im2col", *transforms]
    assert [text.split()[0] for text in found] == [*kernels, "product,"]
    assert all("of the peak of" in text for text in found)


@pytest.mark.slow
@pytest.mark.usefixtures("without_gpu")
def test_the_code_around_cupy(monkeypatch):
    """Training with captured steps, transforms and convolutions, over a stand-in."""
    cupy = cupy_stand_in.install(monkeypatch)
    launched = cupy.cuda.Stream.launched
    want, predicted, _ = losses_of(convnet(), "cpu", "float64", (9, 8, 3), OPTIMIZERS["nesterov"], 4)
    got, found, model = losses_of(convnet(algorithm="fft"), "gpu", "float64", (9, 8, 3), OPTIMIZERS["nesterov"], 4)
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-10)
    np.testing.assert_allclose(found, predicted, rtol=0, atol=1e-10)
    assert cupy.cuda.Stream.launched == launched + 3, "the first step runs, and is captured; then the graph is launched"
    assert type(model.weights[0].value) is np.ndarray
    x = np.random.default_rng(1).normal(size=(3, 16, 4))
    spectrum = fft.rfft(cupy_stand_in.Array(x), axis=1)
    assert type(spectrum) is cupy_stand_in.Array
    np.testing.assert_allclose(spectrum.get(), np.fft.rfft(x, axis=1), atol=1e-12)
    p = ConvProblem(1, 5, 6, 2, 3, kernel=(3, 3), dtype="float64")
    x, w = (np.random.default_rng(2).normal(size=shape) for shape in (p.x_shape, p.w_shape))
    y = conv.forward(p, cupy_stand_in.Array(x), cupy_stand_in.Array(w))
    np.testing.assert_allclose(y.get(), conv.forward(p, x, w), atol=1e-12)
    with pytest.raises(ValueError, match="w: expected an array of device gpu:0, got one of cpu"):
        conv.forward(p, cupy_stand_in.Array(x), w)


@pytest.mark.gpu
@pytest.mark.skipif(missing() is not None, reason=missing() or "")
def test_a_gpu_gives_the_cpus_losses():
    for dtype, tolerance in (("float32", 1e-4), ("float64", 1e-9)):
        for algorithm in ("im2col", "fft"):
            make = convnet(algorithm=algorithm)
            want, _, _ = losses_of(convnet(), "cpu", dtype, (9, 8, 3), OPTIMIZERS["adam"], 10)
            got, _, _ = losses_of(make, "gpu", dtype, (9, 8, 3), OPTIMIZERS["adam"], 10)
            np.testing.assert_allclose(got, want, rtol=0, atol=tolerance)


@pytest.mark.slow
@pytest.mark.usefixtures("without_gpu")
def test_threads_take_turns(monkeypatch):
    """What one of them captures is none of the other's work, and the other waits until it is captured."""
    stream = cupy_stand_in.install(monkeypatch).cuda.Stream
    begin = stream.begin_capture

    def trained(seed):
        model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(5, "tanh"), keras.layers.Dense(3, "softmax")])
        rng = np.random.default_rng(seed)
        model.set_weights([rng.normal(size=weight.shape) for weight in model.get_weights()])
        model.compile("sgd", "sparse_categorical_crossentropy")
        x, y = rng.normal(size=(4, 6)), rng.integers(0, 3, 4)
        with keras.device("gpu"):
            return [model.train_on_batch(x, y) for _ in range(4)]

    want = [trained(seed) for seed in range(4)]
    monkeypatch.setattr(stream, "begin_capture", lambda self: (begin(self), time.sleep(0.05)))
    with ThreadPoolExecutor(4) as threads:
        got = list(threads.map(trained, range(4)))
    assert got == want


@pytest.fixture
def _highest():
    yield
    config.set_float32_matmul_precision("highest")


@pytest.mark.usefixtures("without_gpu", "_highest")
def test_products_round_where_that_is_allowed(monkeypatch):
    """Of float32 alone; plans say so, and times are kept apart."""
    cupy = cupy_stand_in.install(monkeypatch)
    monkeypatch.setattr(cupy.cuda.Stream, "modes", [])
    p = ConvProblem(1, 4, 4, 2, 3, kernel=(1, 1))
    keys, gpu_device = [], devices.get("gpu")
    for precision in ("highest", "high", "medium"):
        config.set_float32_matmul_precision(precision)
        x, w = (cupy_stand_in.Array(np.ones(shape, "float32")) for shape in (p.x_shape, p.w_shape))
        conv.forward(p, x, w)
        keys.append(timings.key(p, "forward", gpu_device.name))
    double = (cupy_stand_in.Array(np.ones(shape)) for shape in (p.x_shape, p.w_shape))
    conv.forward(ConvProblem(1, 4, 4, 2, 3, kernel=(1, 1), dtype="float64"), *double)
    assert cupy.cuda.Stream.modes == [3, 0]
    assert len(set(keys)) == 3
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    model.compile("sgd", "mse")
    with keras.device("gpu"):
        assert "medium: operands rounded to TF32" in str(model.plan(4))
    with keras.device("host"):
        assert "medium: operands of convgemm rounded to TF32" in str(model.plan(4))


@pytest.mark.gpu
@pytest.mark.skipif(missing() is not None, reason=missing() or "")
@pytest.mark.usefixtures("_highest")
def test_a_gpu_rounds_where_that_is_allowed():
    import cupy

    capability = cupy.cuda.Device(0).compute_capability
    if int(capability) < 80:
        pytest.skip(f"needs a GPU with TF32, of compute capability 80 or more, got {capability}")
    p = ConvProblem(2, 8, 8, 64, 128, kernel=(3, 3), padding="same")
    rng, exact = np.random.default_rng(0), ConvProblem(2, 8, 8, 64, 128, kernel=(3, 3), padding="same", dtype="float64")
    x, w = (rng.normal(size=shape).astype("float32") for shape in (p.x_shape, p.w_shape))
    want = conv.forward(exact, x.astype("float64"), w.astype("float64"))
    away = {}
    for precision in ("highest", "high", "highest"):
        config.set_float32_matmul_precision(precision)
        got = conv.forward(p, cupy.asarray(x), cupy.asarray(w), algorithm="im2col").get()
        away[precision] = np.linalg.norm(got - want) / np.linalg.norm(want)
    assert away["highest"] < 1e-6 < 1e-5 < away["high"] < 1e-3


@pytest.mark.gpu
@pytest.mark.skipif(missing() is not None, reason=missing() or "")
def test_transforms_on_a_gpu():
    import cupy

    for n in (2, 4, 8, 16, 32, 64, 128, 256):
        x = np.random.default_rng(n).normal(size=(5, n, 7))
        np.testing.assert_allclose(fft.rfft(cupy.asarray(x), axis=1).get(), np.fft.rfft(x, axis=1), atol=1e-11)
    assert devices.of(cupy.asarray(x)).name == "gpu:0"
