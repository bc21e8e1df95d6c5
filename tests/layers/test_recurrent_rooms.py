"""Recurrent layers of all kinds in the rooms around training: checkpoints, precision, own steps, profiles, devices."""

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import layers
from pydtconv.kernels import MissingKernelError
from pydtconv.profiling import Profiler
from pydtconv.simulation import Network, Workload, weak_scaling
from tests.layers.recurrent_kinds import FUSED, KINDS
from tests.ops.harness import normal

STEPS = 4
walks_kinds = pytest.mark.parametrize("kind", KINDS)


def data(kind):
    return normal(12, STEPS, *KINDS[kind][1]).astype("float32"), normal(12, 1, seed=2).astype("float32")


def network(kind, cls=keras.Model, rate=0.2):
    keras.utils.set_random_seed(3)
    make, shape = KINDS[kind]
    inputs = keras.Input((STEPS, *shape))
    model = cls(inputs, layers.Dense(1)(layers.Flatten()(make(rate)(inputs))))
    model.compile(keras.optimizers.Adam(0.01), "mse")
    return model


@walks_kinds
def test_training_resumes_from_checkpoints_bit_for_bit(kind, tmp_path):
    def trained(name, epochs):
        model = network(kind)
        kept = keras.callbacks.BackupAndRestore(tmp_path / name, delete_checkpoint=False)
        model.fit(*data(kind), 4, epochs, verbose=0, callbacks=[kept])
        return [*model.get_weights(), model.predict(data(kind)[0], verbose=0)]

    whole = trained("whole", 3)
    trained("parts", 1)
    for found, expected in zip(trained("parts", 3), whole, strict=True):
        np.testing.assert_array_equal(found, expected)


@walks_kinds
def test_mixed_bfloat16_is_close(kind):
    losses = []
    for policy in ("float32", "mixed_bfloat16"):
        keras.config.set_dtype_policy(policy)
        model = network(kind)
        losses.append(model.fit(*data(kind), 4, 3, verbose=0, shuffle=False).history["loss"])
        names = [node.op.name.split()[0] for node in model.plan(batch_size=4).graph.nodes]
        assert FUSED.get(kind, "scan") in names
    np.testing.assert_allclose(*losses, rtol=0.03)
    assert losses[0] != losses[1]


@walks_kinds
def test_own_steps_are_those_of_fit(kind):
    class Own(keras.Model):
        def train_step(self, data):
            x, y = data
            with keras.GradientTape() as tape:
                loss = self.compute_loss(y=y, y_pred=self(x, training=True))
            gradients = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
            return {"loss": loss}

    results = []
    for cls in (keras.Model, Own):
        model = network(kind, cls, rate=0.0)
        model.fit(*data(kind), 12, 1, verbose=0, shuffle=False)
        results.append(model.get_weights())
    for found, expected in zip(*results, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@walks_kinds
def test_profiles_name_it_and_simulations_read_them(kind):
    model, profiler = network(kind), Profiler(steps=3, skip=1)
    model.fit(*data(kind), 4, 3, verbose=0, callbacks=[profiler])
    profile = profiler.profile
    passes = {
        timing.direction.split("_")[0] for timing in profile.timings if timing.kind.startswith(FUSED.get(kind, "scan"))
    }
    assert passes >= {"forward", "backward"}
    rows = weak_scaling(Workload([profile]), [1, 4], 4, Network.parse("10Gbps:10us"), "best", 4 << 20)
    assert [row.ranks for row in rows] == [1, 4]
    assert all(0 < row.efficiency <= 1 for row in rows)


@walks_kinds
def test_other_devices_refuse_it_by_name_or_run_its_steps(kind):
    expected = network(kind).train_on_batch(*data(kind))
    try:
        with keras.device("host"):
            found = network(kind).train_on_batch(*data(kind))
    except MissingKernelError as error:
        refused = str(error)
        assert "expected a kernel for device host" in refused
        assert FUSED.get(kind, "") in refused
    else:
        assert kind not in FUSED
        np.testing.assert_allclose(found, expected, rtol=1e-5)
