"""Children that are forked after work on two threads or more: they work, and never wait for threads they lack."""

import subprocess
import sys

import pytest

from tests.marks import slow

MODEL = """
import multiprocessing, os, sys, threading, numpy as np, pydtconv
from pydtconv import config, layers
config.set_num_threads(2)
x = np.random.default_rng(0).standard_normal((8, 16, 16, 8)).astype("float32")
model = pydtconv.Sequential([layers.Conv2D(16, 3, padding="same"), layers.ReLU(), layers.Flatten(), layers.Dense(4)])
model.compile("sgd", "mse")
model.fit(x, np.zeros((8, 4)), batch_size=8, verbose=0)
want = model.predict(x, verbose=0)
def same(_=None):
    return bool(np.array_equal(model.predict(x, verbose=0), want))
"""

FORK = """
for _ in range(2):
    child = os.fork()
    if not child:
        ok = same() and config.num_threads() == 2
        model.fit(x, np.zeros((8, 4)), batch_size=8, verbose=0)
        os._exit(0 if ok else 1)
    assert same()
    assert os.waitpid(child, 0)[1] == 0
"""

POOL = """
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert pool.map(same, range(4)) == [True] * 4
assert same()
"""

#: a child of a child, and one that ends as programs do
GRANDCHILD = """
child = os.fork()
if not child:
    assert same()
    grandchild = os.fork()
    ok = same()
    if grandchild:
        ok = ok and os.waitpid(grandchild, 0)[1] == 0
    sys.exit(0 if ok else 1)
assert os.waitpid(child, 0)[1] == 0
"""

#: another thread forks, while the main thread computes
OTHER_THREAD = """
codes = []
def work():
    same_here = same()
    child = os.fork()
    if not child:
        p = pydtconv.conv.ConvProblem(2, 8, 8, 4, 4, 3)
        y = pydtconv.conv.forward(p, np.ones(p.x_shape, "float32"), np.ones(p.w_shape, "float32"))
        os._exit(0 if (y == 36).all() else 1)
    codes.append(os.waitpid(child, 0)[1])
import pydtconv.conv
p = pydtconv.conv.ConvProblem(4, 32, 32, 32, 32, 3)
big, filters = np.ones(p.x_shape, "float32"), np.ones(p.w_shape, "float32")
pydtconv.conv.forward(p, big, filters)
thread = threading.Thread(target=work)
thread.start()
while thread.is_alive():
    pydtconv.conv.forward(p, big, filters)
assert codes == [0]
"""

#: another thread trains the model, half way through a step when the child is made; and a child of a step itself
WITHIN_A_STEP = """
from pydtconv.layers.base.locks import turn_of
inside, over = threading.Event(), threading.Event()
class Hook:
    def before(self, index, step):
        if not inside.is_set():
            inside.set()
            over.wait(60)
    def after(self, index, step): pass
    def gradient_ready(self, part): pass
model._pydt_steps.memory.hooks.append(Hook())
thread = threading.Thread(target=lambda: model.train_on_batch(x, np.zeros((8, 4))), daemon=True)
thread.start()
inside.wait(60)
child = os.fork()
if not child:
    try:
        model.predict_on_batch(x)
    except RuntimeError as error:
        os._exit(0 if "forked while another thread ran a step" in str(error) else 1)
    os._exit(2)
assert os.waitpid(child, 0)[1] == 0
over.set()
thread.join()
with turn_of(model).taken():
    child = os.fork()
if not child:
    os._exit(0 if model.predict_on_batch(x).shape == (8, 4) else 1)
assert os.waitpid(child, 0)[1] == 0
"""

#: the same where the step is the user's, and where code is traced that belongs to no model
WITHIN_A_STEP_OF_ONES_OWN = """
inside, over = threading.Event(), threading.Event()
class Own(pydtconv.Model):
    def train_step(self, data):
        inside.set()
        over.wait(60)
        return super().train_step(data)
own = Own(model.inputs, model.outputs)
own.compile("sgd", "mse")
thread = threading.Thread(target=lambda: own.train_on_batch(x, np.zeros((8, 4))), daemon=True)
thread.start()
inside.wait(60)
for use in (lambda: own.train_on_batch(x, np.zeros((8, 4))), lambda: own.predict_on_batch(x)):
    child = os.fork()
    if not child:
        try:
            use()
        except RuntimeError as error:
            os._exit(0 if "forked while another thread ran a step" in str(error) else 1)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
over.set()
thread.join()
inside, over = threading.Event(), threading.Event()
@pydtconv.function
def traced(x):
    inside.set()
    over.wait(60)
    return 2 * x
thread = threading.Thread(target=traced, args=(x,), daemon=True)
thread.start()
inside.wait(60)
child = os.fork()
if not child:
    with pydtconv.GradientTape() as tape:
        loss = pydtconv.ops.sum(model(x))
    tape.gradient(loss, model.trainable_variables)[0].numpy()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
over.set()
thread.join()
"""


@pytest.mark.skipif(sys.platform == "darwin", reason="system libraries of macOS do not work in forked children")
@pytest.mark.parametrize(
    "what",
    [FORK + POOL + GRANDCHILD, *map(slow, (OTHER_THREAD, WITHIN_A_STEP, WITHIN_A_STEP_OF_ONES_OWN))],
    ids=["main thread", "other thread", "within a step", "within a step of one's own"],
)
def test_children(what):
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", MODEL + what + "print('done')"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout[-5:]) == (0, "done\n"), done.stderr
