"""The table of peers: which interpreter runs which."""

import sys

from benchmarks.peers import table


def test_what_is_not_installed_is_said(monkeypatch, capsys):
    having = {"torch": (sys.executable,), "tensorflow": ("other", sys.executable), "keras-jax": ()}
    names = {peer: name for name, peer in table.PEERS.items()}
    monkeypatch.setattr(table.Peer, "missing", lambda self, python: ["jax"] * (python not in having[names[self]]))
    found = table.installed(["torch", "tensorflow", "keras-jax"], "other")
    assert found == {"torch": sys.executable, "tensorflow": "other"}
    assert capsys.readouterr().out == "keras-jax: left out, jax not installed\n"


def test_packages_that_are_missing():
    assert table.Peer("", ("json", "no_such_package")).missing(sys.executable) == ["no_such_package"]
