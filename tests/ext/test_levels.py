"""Each build of the C library and each micro-kernel, forced by its variable: products, convolutions, a training."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from pydtconv import _ext, microkernels
from pydtconv._ext import runtime

WORK = """
import json
import numpy as np
import pydtconv as keras
from pydtconv import config, conv, dtypes, gemm, layers, microkernels, optimizers
from pydtconv._ext import runtime
from pydtconv.conv import ConvProblem
from tests.conv.cases import case_of

rng, count = np.random.default_rng(0), 0
for dtype in {dtypes}:
    for m, n, k in ((5, 7, 3), (65, 130, 40)):
        a, b = rng.standard_normal((m, k)).astype(dtype), rng.standard_normal((k, n)).astype(dtype)
        error = np.abs(gemm.gemm(a, b) - a.astype("float64") @ b).max()
        assert error < (1e-4 if dtype == "float32" else 1e-12), (m, n, k, dtype, error)
    depthwise = (2, 6, 6, 16, 16, 3, 1, "same")
    for sizes in ((2, 9, 8, 12, 20, 3, 1, "same"), (3, 7, 9, 5, 18, (3, 2), 2, "valid"), depthwise):
        groups = 16 if sizes == depthwise else 1
        case = case_of(ConvProblem(*sizes, groups=groups, dtype=dtype))
        for direction in ("forward", "backward_data", "backward_weights"):
            for name, reason in conv.explain(case.p, direction).items():
                if reason is None:
                    case.check(name, direction, case.run(name, direction))
                    count += 1
if {bfloat16}:
    a, b = (dtypes.from_bits(dtypes.to_bits(rng.standard_normal(s, np.float32))) for s in ((33, 70), (70, 50)))
    y = np.empty((33, 50), np.float32)
    gemm.multiply_mixed(dtypes.to_bits(a), dtypes.to_bits(b), y)
    assert np.abs(y - a.astype("float64") @ b).max() < 1e-4
    if {training}:
        config.set_dtype_policy("mixed_bfloat16")
losses = []
if {training}:
    keras.utils.set_random_seed(1)
    rng = np.random.default_rng(1)
    x = inputs = keras.Input((8, 8, 3))
    x = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(16, 3, padding="same", use_bias=False)(x)))
    x = layers.MaxPooling2D()(layers.Add()([x, layers.Conv2D(16, 1, activation="gelu")(x)]))
    x = layers.LayerNormalization()(layers.Reshape((16, 16))(x))
    x = layers.Flatten()(layers.MultiHeadAttention(2, 8)(x, x))
    model = keras.Model(inputs, layers.Dense(4, activation="softmax", dtype="float32")(x))
    model.compile(optimizers.SGD(0.01, momentum=0.9), "sparse_categorical_crossentropy")
    x, y = rng.standard_normal((6, 8, 8, 3), np.float32), rng.integers(0, 4, 6)
    losses = [float(model.train_on_batch(x, y)) for _ in range(3)]
names = {{dtype: microkernels.selected(dtype).name for dtype in {selected}}}
print(json.dumps([runtime.level(), names, count, losses]))
"""


def work(dtypes=("float32", "float64"), bfloat16=True, training=True, **environment):
    """[level, micro-kernels, passes, losses] of a process with these variables."""
    selected = (*dtypes, *(["bfloat16"] if bfloat16 else []))
    code = WORK.format(dtypes=dtypes, bfloat16=bfloat16, training=training, selected=selected)
    kept = {key: value for key, value in os.environ.items() if key not in ("PYDTCONV_LEVEL", "PYDTCONV_UKR")}
    done = subprocess.run([sys.executable, "-c", code], env=kept | environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def usual():
    """What comes out where nothing is forced, with bfloat16 and without."""
    return {bfloat16: work((), bfloat16)[3] for bfloat16 in (True, False)}


@pytest.mark.slow
@pytest.mark.parametrize("level", _ext.available_levels())
def test_each_level(level, usual):
    found, _, count, losses = work(bfloat16=False, PYDTCONV_LEVEL=level)
    assert found == level
    assert count > 40
    np.testing.assert_allclose(losses, usual[False], rtol=1e-4)
    mixed = work((), PYDTCONV_LEVEL=level)[3]
    np.testing.assert_allclose(mixed, usual[True], rtol=2e-2)


KERNELS = {
    dtype: [kernel.name for kernel in microkernels.available(dtype) if kernel.usable]
    for dtype in ("float32", "float64", "bfloat16")
}


@pytest.mark.slow
@pytest.mark.parametrize("name", dict.fromkeys(name for names in KERNELS.values() for name in names))
def test_each_micro_kernel(name):
    """It is active for each dtype that it is for."""
    dtypes = tuple(dtype for dtype in ("float32", "float64") if name in KERNELS[dtype])
    mixed = name in KERNELS["bfloat16"]
    level, names, _, _ = work(dtypes, mixed, training=False, PYDTCONV_UKR=name)
    assert level == runtime.level()
    assert set(names.values()) == {name}


def test_a_level_that_is_forced_is_the_one_that_is_loaded():
    """The narrowest that is built."""
    level = _ext.available_levels()[-1]
    code = "from pydtconv._ext import runtime; print(runtime.level())"
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"PYDTCONV_LEVEL": level}, capture_output=True, text=True
    )
    assert done.stdout.strip() == level
