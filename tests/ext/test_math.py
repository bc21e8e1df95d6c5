"""Inline functions have no undefined behaviour, whatever bits they get; levels; stacks of threads may be small."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pydtconv import _ext
from pydtconv._ext import cpu

ROOT = Path(__file__).parent.parent.parent
DRIVER = """
#include <stdio.h>
#include "dtconv_math.h"
#include "norm_common.h"
int dtconv_get_num_threads(void) { return 1; }
int main(void) {
    volatile float sum = 0;
    for (uint32_t i = 0; i < 4096; i++) {
        for (uint32_t low = 0; low < 2; low++) {
            const uint32_t bits = i << 20 | (low ? 0xfffff : 0);
            float x;
            memcpy(&x, &bits, sizeof x);
            sum += DT(exp_)(x) + DT(expm1_)(x) + DT(log_)(x) + DT(log1p_)(x) + DT(tanh_)(x);
            sum += DT(sigmoid_)(x) + DT(softplus_)(x) + fast_exp(x);
        }
    }
    puts("done");
    return 0;
}
"""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_no_undefined_behaviour(tmp_path):
    source, program = tmp_path / "driver.c", tmp_path / "driver"
    options = ["-std=gnu11", "-O1", "-fsanitize=undefined", "-fno-sanitize-recover=all"]
    folders = [f"-I{ROOT / 'cext' / folder}" for folder in ("include", "nn")]
    command = ["gcc", *options, *folders, source, "-o", program, "-lm"]
    source.write_text("int main(void) { return 0; }")
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("gcc has no sanitizer")
    source.write_text(DRIVER)
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


@pytest.mark.parametrize("lacks", ["bmi2", "f16c", "fma", "avx2"])
def test_levels_ask_for_all_that_they_are_compiled_with(monkeypatch, lacks):
    monkeypatch.setattr(cpu, "features", lambda: frozenset(set(cpu.FEATURES) - {lacks}))
    built = {"generic"} & {path.name for path in (Path(_ext.__file__).parent / "lib").iterdir()}
    assert set(_ext.available_levels()) == built


SMALL_STACKS = """
import numpy as np
from pydtconv import config, conv, gemm
config.set_num_threads(2)
for a, b in (((8, 4096), (4096, 2048)), ((600, 8), (8, 4096))):
    a, b = np.ones(a), np.ones(b)
    assert (gemm.gemm(a, b) == a.shape[1]).all()
p = conv.ConvProblem(4, 9, 9, 24, 40, 3, padding="same", dtype="float64")
x, w, dy = np.ones(p.x_shape), np.ones(p.w_shape), np.ones(p.y_shape)
for name in conv.algorithms(p, "forward"):
    conv.forward(p, x, w, algorithm=name)
for name in conv.algorithms(p, "backward_data"):
    conv.backward_data(p, dy, w, algorithm=name)
for name in conv.algorithms(p, "backward_weights"):
    conv.backward_weights(p, x, dy, algorithm=name)
print("done")
"""


@pytest.mark.slow
def test_small_stacks_of_threads_suffice():
    environment = {**os.environ, "OMP_STACKSIZE": "96k"}
    done = subprocess.run(
        [sys.executable, "-c", SMALL_STACKS], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
