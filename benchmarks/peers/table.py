"""The peers that run the same networks: what they need, and the process that runs one."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from benchmarks.processes import in_own_process


class Peer(NamedTuple):
    """label: in tables.  needs: packages.  backend: Keras's; none where the peer is not Keras."""

    label: str
    needs: tuple[str, ...]
    backend: str = ""

    def missing(self, python: str) -> list[str]:
        """The packages that this interpreter does not have."""
        code = "import importlib.util, json, sys; "
        code += "print(json.dumps([name for name in sys.argv[1:] if importlib.util.find_spec(name) is None]))"
        done = subprocess.run([python, "-c", code, *self.needs], capture_output=True, text=True, check=True)
        found: list[str] = json.loads(done.stdout)
        return found

    @property
    def kind(self) -> str:
        """What the modules that run it begin with."""
        return "keras" if self.backend else self.needs[0]

    def run(self, task: str, words: Sequence[object], threads: int, python: str) -> dict[str, Any]:
        """What the process of a task, "train" or "predict", prints."""
        env = {"KERAS_BACKEND": self.backend} if self.backend else {}
        return in_own_process(f"benchmarks.peers.{self.kind}_{task}", words, threads, python=python, env=env)


PEERS = {
    "torch": Peer("PyTorch", ("torch",)),
    "tensorflow": Peer("Keras on TensorFlow", ("keras", "tensorflow"), "tensorflow"),
    "keras-torch": Peer("Keras on PyTorch", ("keras", "torch"), "torch"),
    "keras-jax": Peer("Keras on JAX", ("keras", "jax"), "jax"),
    "onnxruntime": Peer("onnxruntime", ("onnxruntime",)),
}
#: those that train
TRAINING = ("torch", "tensorflow", "keras-torch", "keras-jax")


def add_peer_arguments(parser: argparse.ArgumentParser, names: Sequence[str] = TRAINING) -> None:
    """--peer, any number of times, and an interpreter that has them."""
    parser.add_argument("--peer", action="append", choices=names, default=[], help="measure it, too")
    parser.add_argument(
        "--peer-python", default=sys.executable, metavar="FILE", help="interpreter of the peers that it has"
    )


def installed(names: Sequence[str], python: str) -> dict[str, str]:
    """The interpreter of each of the peers: this one where the other does not have it.  Says which neither has."""
    found = {}
    for name in names:
        having = [each for each in (python, sys.executable) if not PEERS[name].missing(each)]
        if having:
            found[name] = having[0]
        else:
            print(f"{name}: left out, {' and '.join(PEERS[name].missing(python))} not installed")
    return found
