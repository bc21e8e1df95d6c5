"""RemoteMonitor, with a server of this process."""

import http.server
import json
import socket
import threading
import urllib.parse

import numpy as np
import pytest

from pydtconv import callbacks


@pytest.fixture
def server():
    """(address, list of (path, headers, body) of what was posted)"""
    posts = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            posts.append((self.path, dict(self.headers), body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args): ...

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{listening.server_port}", posts
        listening.shutdown()
        thread.join()


def test_epochs_are_posted_as_a_form(server):
    root, posts = server
    callbacks.RemoteMonitor(root).on_epoch_end(2, {"loss": np.float32(0.5), "mae": 1.5})
    ((path, headers, body),) = posts
    assert path == "/publish/epoch/end/"
    assert headers["Content-Type"] == "application/x-www-form-urlencoded"
    assert json.loads(urllib.parse.parse_qs(body)["data"][0]) == {"epoch": 2, "loss": 0.5, "mae": 1.5}


def test_epochs_are_posted_as_json(server):
    root, posts = server
    monitor = callbacks.RemoteMonitor(root, "/results", headers={"X-Run": "7"}, send_as_json=True)
    monitor.on_epoch_end(0, {"loss": 0.25})
    ((path, headers, body),) = posts
    assert (path, headers["Content-Type"], headers["X-Run"]) == ("/results", "application/json", "7")
    assert json.loads(body) == {"epoch": 0, "loss": 0.25}


def test_training_goes_on_without_a_server():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # bound, not listening: a connection is refused
        with pytest.warns(UserWarning, match="RemoteMonitor: could not reach http://127.0.0.1"):
            callbacks.RemoteMonitor(f"http://127.0.0.1:{free.getsockname()[1]}").on_epoch_end(0, {"loss": 1.0})


def test_an_address_without_http_is_refused():
    with pytest.raises(ValueError, match="expected an address with http"):
        callbacks.RemoteMonitor("file:///etc")
