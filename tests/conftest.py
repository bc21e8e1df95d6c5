"""What all tests share: real data, equal seeds, and settings that one test cannot leave to the next."""

import atexit
import os
import signal
import tempfile
import threading
from pathlib import Path

import pytest

from pydtconv import config
from pydtconv.files import hdf5_trial
from pydtconv.utils import clear_session, set_random_seed

# processes that tests start find the package too, installed or not
os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, [str(Path(__file__).parent.parent), os.environ.get("PYTHONPATH")])
)
# processes that tests start can be interrupted, also where the tests themselves run in the background
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# what was tuned on this machine is none of the tests' business; kernels that are compiled when they are first used,
# under names that say of what, are shared by all processes of tests and kept for the next time
_cache = tempfile.TemporaryDirectory(prefix="pydtconv-tests-")
os.environ["PYDTCONV_CACHE"] = _cache.name
atexit.register(_cache.cleanup)
_compiled = Path(__file__).parent.parent / "build" / "host_kernels"
_compiled.mkdir(parents=True, exist_ok=True)
(Path(_cache.name) / _compiled.name).symlink_to(_compiled)
# files are tried in a copy of this process, as in a script, and not in a new one, which takes far longer: the thread by
# which pytest-xdist waits for messages holds no lock that a copy needs
hdf5_trial.IDLE.update(set(threading.enumerate()) - {threading.main_thread()})

# files that take the longest begin first, so that no process of a parallel run is left with one of them at the end
LONGEST = (
    "distribution/test_slurm.py",
    "cli/test_training.py",
    "serialization/test_values.py",
    "applications/test_torch.py",
    "models/test_operations.py",
    "checkpoints/test_processes.py",
    "distribution/test_failure.py",
    "test_site.py",
    "fuzz/test_fuzz.py",
    "distribution/test_options.py",
    "saving/test_opened_by_keras.py",
    "test_notebooks.py",
    "devices/test_gpu.py",
    "devices/test_training.py",
    "distribution/test_spatial.py",
)


def pytest_collection_modifyitems(items):
    """Puts the tests of LONGEST before all others; within a file and among the others the order stays."""
    places = {Path(__file__).parent / name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))


@pytest.fixture(autouse=True)
def fresh_settings():
    """Each test starts from the same seed, default settings and unused names, and puts the settings back."""
    before = (config.floatx(), config.epsilon(), config.image_data_format(), config.num_threads())
    set_random_seed(20240229)
    clear_session(free_memory=False)
    yield
    config.set_floatx(before[0])
    config.set_epsilon(before[1])
    config.set_image_data_format(before[2])
    config.set_num_threads(before[3])


@pytest.fixture(scope="session")
def data_folder():
    """The folder of real data sets that PYDTCONV_DATA names; skips where there is none."""
    folder = os.environ.get("PYDTCONV_DATA")
    if not folder:
        pytest.skip("needs real data: set PYDTCONV_DATA to a folder with mnist/, cifar-10-batches-bin/, ...")
    if not Path(folder).is_dir():
        pytest.fail(f"PYDTCONV_DATA={folder} is not a folder")
    return Path(folder)
