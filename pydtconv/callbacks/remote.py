"""Results of epochs, sent to a server."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlencode, urlsplit

import numpy as np

from pydtconv.callbacks.callback import Callback, Logs

if TYPE_CHECKING:
    from urllib.request import Request

#: seconds for which a server may be silent before training goes on
_PATIENCE = 10.0


class RemoteMonitor(Callback):
    """Posts the number and the results of each epoch to root + path, by HTTP.

    field: the name in a form under which they stand as JSON.  send_as_json: they are the request's body instead.
    headers: more headers by name.  A server that cannot be reached makes a warning, and training goes on.
    """

    main_only = True

    def __init__(
        self,
        root: str = "http://localhost:9000",
        path: str = "/publish/epoch/end/",
        field: str = "data",
        headers: Mapping[str, str] | None = None,
        send_as_json: bool = False,
    ) -> None:
        super().__init__()
        if urlsplit(root).scheme not in ("http", "https"):
            raise ValueError(f"RemoteMonitor: root: expected an address with http:// or https://, got {root!r}")
        self.root, self.path, self.field = root, path, field
        self.headers = dict(headers or {})
        self.send_as_json = send_as_json

    def _request(self, results: Mapping[str, object]) -> Request:
        from urllib.request import Request  # not before there is something to send: it takes as long as NumPy

        text = json.dumps(results)
        kind = "application/json" if self.send_as_json else "application/x-www-form-urlencoded"
        body = text if self.send_as_json else urlencode({self.field: text})
        return Request(self.root + self.path, body.encode(), {"Content-Type": kind, **self.headers})

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        from http.client import HTTPException
        from urllib.request import urlopen

        results = {name: np.asarray(value).tolist() for name, value in (logs or {}).items()}
        try:
            urlopen(self._request({"epoch": epoch, **results}), timeout=_PATIENCE).close()
        except (OSError, HTTPException) as error:  # URLError is one of the former
            warnings.warn(f"RemoteMonitor: could not reach {self.root}{self.path}: {error}", stacklevel=2)
