"""Algorithms and strategies of convolutions are timed on a device, kept by its name, and chosen from then on."""

from __future__ import annotations

import json

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import config, conv, devices, layers
from pydtconv.cli import main
from pydtconv.conv import ConvProblem, timings, tuning
from pydtconv.devices import names
from pydtconv.devices.tuning import DeviceBench
from pydtconv.engine import first_use
from pydtconv.kernels.gpu.convolutions import family
from tests.devices import cupy_stand_in

P = ConvProblem(1, 6, 5, 2, 3, kernel=(3, 3), padding="same")
FASTEST = "fft 8x8 complex"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(timings, "path", lambda: tmp_path / "convolutions.json")  # kernels stay compiled
    monkeypatch.setattr(tuning, "ROUNDS", 1)  # how well is measured is no question here
    timings.forget()
    yield tmp_path / "convolutions.json"
    timings.forget()


@pytest.fixture
def _fast_transforms(monkeypatch):
    """Times as if this strategy were the fastest."""

    def measure(self, p, direction, names, seconds):
        best = FASTEST if FASTEST in names else [name for name in names if family(name) == "fft"][-1]
        return {name: 1e-3 if name == best else 2e-3 for name in names}

    monkeypatch.setattr(DeviceBench, "measure", measure)


def bench():
    return DeviceBench(devices.get("host"))


@pytest.mark.slow
def test_algorithms_and_strategies_are_timed_and_kept_by_device(cache):
    found = tuning.tune([(P, "forward")], 30.0, bench=bench()).seconds[P, "forward"]
    assert {family(name) for name in found} == {"convgemm", "im2col", "fft"}
    assert len(found) == 5
    (entries,) = json.loads(cache.read_text())["builds"].values()
    ((key, kept),) = entries.items()
    assert key.startswith("host on ")
    assert " | kernels " in key
    assert kept == found
    assert conv.algorithms(P, "forward", "host") == sorted(found, key=found.__getitem__) + [
        name for name in ("convgemm", "im2col", "fft") if name not in found
    ]
    assert not timings.measured(P, "forward"), "the CPU's choice knows nothing of it"
    written = cache.stat().st_mtime_ns
    tuning.tune([(P, "forward")], 30.0, bench=bench())
    assert cache.stat().st_mtime_ns == written


@pytest.mark.usefixtures("_fast_transforms")
def test_what_was_the_fastest_is_chosen():
    assert conv.choose(P, "forward", device="host").algorithm == "convgemm"
    tuning.tune([(P, direction) for direction in ("forward", "backward_data")], 30.0, bench=bench())
    assert conv.choose(P, "forward", device="host") == conv.choose(P, "backward_data", device="host")
    assert conv.choose(P, "forward", device="host").why == "fastest measured"
    assert conv.choose(P, "forward", "fft", device="host").algorithm == FASTEST
    assert conv.choose(P, "backward_weights", device="host").algorithm == "convgemm"
    assert conv.choose(P, "forward", variant="BASE", device="host").algorithm == "im2col"
    assert conv.choose(P, "forward", device="cpu").algorithm not in ("im2col", FASTEST)
    with keras.device("host"):
        assert conv.algorithms(P, "forward")[0] == FASTEST
        assert conv.explain(P, "forward") == dict.fromkeys(("convgemm", "im2col", "fft"))
        nbytes = conv.workspace_bytes(P, "forward", FASTEST)
        config.set_conv_workspace_limit(nbytes - 1)
        try:
            assert FASTEST not in conv.algorithms(P, "forward")
        finally:
            config.set_conv_workspace_limit(None)
    assert 0 < conv.workspace_bytes(P, "forward", "im2col", device="host") < nbytes


@pytest.mark.slow
@pytest.mark.usefixtures("_fast_transforms")
def test_a_plan_takes_it_at_first_use_and_keeps_its_losses(monkeypatch):
    monkeypatch.setattr(first_use, "NEAR", 100.0)

    def losses(device, tuned):
        keras.utils.set_random_seed(1)
        convolution = layers.Conv2D(3, 3, padding="same")
        model = keras.Sequential([keras.Input((6, 5, 2)), convolution, layers.Flatten(), layers.Dense(2048, "softmax")])
        model.compile("sgd", "categorical_crossentropy")
        config.set_conv_tuning(30 if tuned else 0)
        try:
            with keras.device(device):
                x, y = np.random.default_rng(0).normal(size=(1, 6, 5, 2)), np.eye(1, 2048)
                return [model.train_on_batch(x, y) for _ in range(3)], model._pydt_steps.plans[-1]
        finally:
            config.set_conv_tuning(0)

    want, plan = losses("host", False)
    assert [*plan.algorithms.values()] == [dict.fromkeys(("forward", "backward_data", "backward_weights"), "convgemm")]
    got, plan = losses("host", True)
    (chosen,) = plan.algorithms.values()
    assert {direction: family(name) for direction, name in chosen.items()} == {
        **{"forward": "fft", "backward_weights": "fft"},
        "backward_data": "convgemm",  # which nobody wants, so that it was not timed
    }
    np.testing.assert_allclose(got, want, rtol=1e-5)


@pytest.mark.usefixtures("_fast_transforms")
def test_the_command(cache, capsys):
    words = ["tune", "--model", "mnistconvnet", "--image-size", "12", "--batch-size", "1", "--device", "host"]
    try:
        assert main(words) == 0
    finally:
        config.set_device("cpu")
    text = capsys.readouterr().out
    (entries,) = json.loads(cache.read_text())["builds"].values()
    assert len(entries) == 5
    assert all(name.startswith("host on ") for name in entries)
    assert "fft " in text
    assert str(cache) in text


@pytest.mark.slow
def test_a_gpu_is_timed_by_events(monkeypatch):
    monkeypatch.setattr(names, "_made", {name: made for name, made in names._made.items() if "gpu" not in name})
    cupy_stand_in.install(monkeypatch)
    before, device = cupy_stand_in.Event.made, devices.get("gpu")
    assert device.rates() == (2.0 * 1e6 * 64 * 2, 2e3, 20e9), "64 lanes at 1 MHz in two processors of an sm_80"
    found = tuning.tune([(P, "forward")], 30.0, bench=DeviceBench(device)).seconds[P, "forward"]
    assert cupy_stand_in.Event.made == before + 2 * len(found)
    assert timings.key(P, "forward", "gpu:0").startswith("stand-in, compute capability 80 | kernels ")
    assert dict(timings.measured(P, "forward", "gpu:0")) == found
