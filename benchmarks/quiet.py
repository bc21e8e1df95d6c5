"""Quiet while something is timed, on a machine that others use too.

PYDTCONV_QUIET names a command that keeps the machine quiet while the command behind it runs; without it, nothing is
done.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet() -> Iterator[None]:
    """Begins when the machine is quiet."""
    command = os.environ.get("PYDTCONV_QUIET")
    if not command:
        yield
        return
    words = [*shlex.split(command), "sh", "-c", "echo quiet; read _"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        try:
            yield
        finally:
            assert holder.stdin is not None
            holder.stdin.close()
