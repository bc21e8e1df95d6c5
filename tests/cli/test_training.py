"""What `plan` shows is what `train` runs, for every builder of the zoo and every optimizer."""

import contextlib
import functools
import itertools

import numpy as np
import pytest

from pydtconv import Model, applications, config, datasets
from pydtconv.cli import main, networks, training
from tests.zoo import BUILDERS, SMALLEST

FAST = [("mlp", name) for name in training.optimizers_by_name()] + [("resnet20", "momentum")]
OPTIONS = [
    ["--ema"],
    ["--freeze", "0.5"],
    ["--label-smoothing", "0.1"],
    ["--augment"],
    ["--split", "0.5:2x2:exact"],
    ["--memory-limit", "1GB"],
    ["--dtype", "mixed_bfloat16"],
]


class Stopped(BaseException):
    """Ends `train` before it runs."""


@pytest.fixture
def planned_and_trained(monkeypatch, tmp_path):
    """A function of network, optimizer and options: what each of the commands `plan` and `train` places."""
    monkeypatch.chdir(tmp_path)

    def both(network, optimizer, options=(), size=16, run=True):
        found = {}
        images = np.random.default_rng(0).integers(0, 256, (4, size, size, 3), np.uint8)
        labels = np.arange(4, dtype=np.uint8)[:, None]
        monkeypatch.setattr(datasets.cifar10, "load_data", lambda: ((images, labels), (images, labels)))
        plan, fit = Model.plan, Model.fit

        def noted_plan(self, *args, **kwargs):
            result = plan(self, *args, **kwargs)
            found.setdefault("plan", result)  # the command may plan others behind it, to compare
            return result

        def noted_fit(self, *args, memory_limit, offload, **kwargs):
            if not run:
                found["train"] = plan(self, 4, memory_limit, offload=offload)
                raise Stopped
            history = fit(self, *args, memory_limit=memory_limit, offload=offload, **kwargs)
            found["train"] = max(self._pydt_steps.plans, key=lambda plan: plan.peak_bytes)
            return history

        with monkeypatch.context() as patched:
            patched.setattr(Model, "plan", noted_plan)
            patched.setattr(Model, "fit", noted_fit)
            common = ["--model", network, "--optimizer", optimizer, "--batch-size", "4", "--classes", "10", *options]
            assert main(["plan", *common, "--image-size", str(size)]) == 0
            with contextlib.suppress(Stopped):
                assert main(["train", *common, "--epochs", "1", "--dataset", "cifar10"]) == 0
        names = ("parameter_bytes", "slot_bytes", "gradient_bytes", "arena_bytes", "peak_bytes")
        return [{name: getattr(found[command], name) for name in names} for command in ("plan", "train")]

    return both


@pytest.fixture(autouse=True)
def one_thread():
    config.set_num_threads(1)


@pytest.mark.parametrize(("network", "optimizer"), FAST)
def test_plan_is_that_of_train(planned_and_trained, network, optimizer):
    planned, trained = planned_and_trained(network, optimizer)
    assert planned == trained
    assert (planned["slot_bytes"] > 0) == (optimizer != "sgd")


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS, ids=" ".join)
def test_with_options(planned_and_trained, options):
    planned, trained = planned_and_trained("resnet20", "momentum", options)
    assert planned == trained


NETWORKS = [name for name in BUILDERS if applications.axes(name) == 2]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("network", "optimizer"), [*zip(NETWORKS, itertools.cycle(training.optimizers_by_name()), strict=False)]
)
def test_every_network(planned_and_trained, monkeypatch, network, optimizer):
    """Without running them: the model that `train` compiles is planned.  The networks take the optimizers in turn."""
    made = functools.cache(functools.partial(applications.build, network))  # large networks take long to be made
    monkeypatch.setattr(networks, "build", lambda args, shape, classes: made(tuple(shape), classes))
    monkeypatch.setattr(networks, "scaled", functools.cache(networks.scaled))
    planned, trained = planned_and_trained(network, optimizer, size=SMALLEST.get(network, 32), run=False)
    assert planned == trained
