"""Disks that are full: a limit on the size of files in this process, and a small disk of its own for another."""

import contextlib
import resource
import subprocess
import sys

import pytest


@contextlib.contextmanager
def file_size_limit(nbytes):
    """Within it no file grows beyond nbytes: writing fails as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    keeps, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # Python would keep the first part of a module
    resource.setrlimit(resource.RLIMIT_FSIZE, (nbytes, hard))
    try:
        yield
    finally:
        sys.dont_write_bytecode = keeps
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def run_on_small_disk(script, folder, kib, *arguments, read_only=False, **options):
    """Runs a Python script in which `folder` is a disk of so many KiB; skips where no disk can be made."""
    mount = f'mount -t tmpfs -o size={kib}k{",ro" if read_only else ""} none "$1"'
    start = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
    try:
        probe = subprocess.run([*start, mount, "sh", str(folder)], capture_output=True, text=True, timeout=60)
    except FileNotFoundError:
        pytest.skip("needs unshare to make a small disk")
    if probe.returncode:
        pytest.skip(f"no small disk can be made here: {probe.stderr.strip()}")
    command = [*start, f'{mount} && shift && exec "$@"', "sh", str(folder), sys.executable, "-c", script, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, **options)
