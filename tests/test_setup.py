"""What `make` says on a machine that lacks something, before it starts anything."""

import fcntl
import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pydtconv
from pydtconv._ext import cpu

SCRIPT = Path(__file__).parent.parent / "tools" / "venv.sh"
TOOLS = ("sh", "dirname", "mktemp", "rm", "tr", "echo", "cat")


@pytest.fixture
def machine(tmp_path):
    """A PATH with a shell's tools, this Python as python3 and a C compiler; programs can be replaced."""

    class Machine:
        path = tmp_path / "bin"

        def link(self, name, target):
            (self.path / name).unlink(missing_ok=True)
            (self.path / name).symlink_to(target)

        def program(self, name, text):
            (self.path / name).unlink(missing_ok=True)
            (self.path / name).write_text(f"#!{shutil.which('sh')}\n{text}\n")
            (self.path / name).chmod(0o755)

        def remove(self, name):
            (self.path / name).unlink()

        def check(self, **environment):
            environment = {"PATH": str(self.path), "HOME": str(tmp_path), **environment}
            command = [shutil.which("sh"), str(SCRIPT), "--check"]
            return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)

    machine = Machine()
    machine.path.mkdir()
    for name in TOOLS:
        machine.link(name, shutil.which(name))
    real = sys.executable
    machine.program("python3", f'exec "{real}" "$@"')
    compiler = shutil.which("cc") or shutil.which("gcc")
    machine.program("cc", f'PATH="{os.environ["PATH"]}" exec "{compiler}" "$@"')
    return machine


def only_line(result):
    """The one line that was printed, of a check that failed."""
    assert result.returncode == 1
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert len(lines) == 1, result.stderr
    return lines[0]


def test_a_machine_with_everything(machine):
    result = machine.check()
    assert result.returncode == 0, result.stderr
    assert result.stdout == "python: python3, C compiler: cc\n"


def test_no_python(machine):
    machine.remove("python3")
    assert "Python 3.11 or newer is needed, found none: install python3.11" in only_line(machine.check())


def test_an_old_python(machine):
    machine.program("python3", '[ "$1" = --version ] && echo Python 3.9.2; exit 1')
    assert "Python 3.11 or newer is needed, found Python 3.9.2" in only_line(machine.check())


def test_a_newer_python_beside_an_old_one_is_taken(machine):
    machine.program("python3", "exit 1")
    machine.program("python3.12", f'exec "{sys.executable}" "$@"')
    assert machine.check().stdout == "python: python3.12, C compiler: cc\n"


def test_no_compiler(machine):
    machine.remove("cc")
    line = only_line(machine.check())
    assert "a C compiler is needed, found none of cc, gcc, clang: install one" in line
    assert "apt install gcc" in line


def test_the_compiler_that_is_asked_for(machine):
    machine.program("mycc", 'exec cc "$@"')
    assert machine.check(CC="mycc").stdout == "python: python3, C compiler: mycc\n"
    assert "found none of nocc" in only_line(machine.check(CC="nocc"))


def test_a_compiler_without_the_c_library(machine):
    machine.program("cc", "exit 1")
    assert "cannot build a program: install the C library's headers" in only_line(machine.check())


def python_where(machine, condition):
    """A python3 that fails when its arguments contain a text."""
    machine.program("python3", f'case "$*" in *{condition}*) exit 1;; esac\nexec "{sys.executable}" "$@"')


def test_no_venv_module(machine):
    python_where(machine, "ensurepip")
    line = only_line(machine.check())
    assert "the venv module of python3 is needed" in line
    assert "apt install python3-venv" in line


def test_no_python_headers(machine):
    python_where(machine, "Python.h")
    line = only_line(machine.check())
    assert "Python.h" in line
    assert "apt install python3-dev" in line


def test_make_stops_there(machine, tmp_path):
    """`make demo` in a copy without .venv prints that line and builds nothing."""
    make = shutil.which("make")
    if make is None:
        pytest.skip("needs make")
    root = SCRIPT.parent.parent
    copy = tmp_path / "copy"
    (copy / "tools").mkdir(parents=True)
    for name in ("Makefile", "pyproject.toml", "setup.py", "tools/venv.sh", "tools/libdtconv.py"):
        shutil.copy(root / name, copy / name)
    (copy / "cext").mkdir()
    (copy / "pydtconv").mkdir()
    machine.remove("cc")
    for name in ("find", "touch"):
        machine.link(name, shutil.which(name))
    result = subprocess.run([make, "demo"], cwd=copy, env={"PATH": str(machine.path)}, capture_output=True, text=True)
    assert result.returncode != 0
    assert "a C compiler is needed" in result.stderr
    assert not (copy / ".venv").exists()


def test_two_builds_of_one_checkout_take_turns(tmp_path):
    """They share build/ and egg-info: pip install . at the same time as another one."""
    root = SCRIPT.parent.parent
    (tmp_path / "tools").mkdir()
    (tmp_path / "pydtconv" / "_ext").mkdir(parents=True)
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE", "tools/libdtconv.py"):
        shutil.copy(root / name, tmp_path / name)
    (tmp_path / "build").mkdir()
    with (tmp_path / "build" / "setup.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        command = [sys.executable, "setup.py", "-q", "--version"]
        other = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert other.stderr.readline() == f"pydtconv: another build runs in {tmp_path.resolve()}: waits for its end\n"
        assert other.poll() is None
    assert other.communicate(timeout=60)[0].split() == [pydtconv.__version__]


@pytest.fixture
def libdtconv(monkeypatch):
    """The module that compiles the C library; it changes no file when it is imported."""
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    monkeypatch.delenv("DTCONV_LEVELS", raising=False)
    return importlib.import_module("libdtconv")


def test_all_levels_are_built_unless_some_are_asked_for(libdtconv, monkeypatch):
    every = libdtconv.levels()
    assert every[0] == "generic"
    for level in every:
        monkeypatch.setenv("DTCONV_LEVELS", level)
        assert libdtconv.levels() == [level]
    monkeypatch.setenv("DTCONV_LEVELS", ",".join(reversed(every)))
    assert libdtconv.levels() == every


def test_the_native_level_is_the_one_that_is_loaded_here(libdtconv, monkeypatch):
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    monkeypatch.setenv("DTCONV_LEVELS", "native")
    features = cpu.features()
    wide = {"avx2", "fma"} <= features
    best = "x86-64-v4" if wide and "avx512" in features else "x86-64-v3" if wide else "generic"
    rounds = best == "x86-64-v4" and "avx512_bf16" in features
    expected = ["x86-64-v4-bf16", "x86-64-v4"] if rounds else [best]
    assert libdtconv.levels() == [next(level for level in expected if level in libdtconv.buildable_levels())]


def test_a_level_that_there_is_not(libdtconv, monkeypatch):
    monkeypatch.setenv("DTCONV_LEVELS", "x86-64-v9")
    with pytest.raises(SystemExit, match=r"DTCONV_LEVELS: expected native or some of generic.*, got x86-64-v9"):
        libdtconv.levels()


@pytest.mark.slow
def test_an_object_is_as_old_as_what_the_compiler_reads_for_it(libdtconv):
    for source in {source for _, source, _, _ in libdtconv.objects_of(libdtconv.buildable_levels()[-1])}:
        command = [*libdtconv.compiler(), "-MM", f"-I{libdtconv.ROOT / 'cext' / 'include'}", str(source)]
        rule = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        needed = {Path(name).resolve() for name in rule.partition(":")[2].replace("\\\n", " ").split()}
        assert needed <= libdtconv.read_for(source), source


def test_an_interrupted_compilation_leaves_no_object(libdtconv, tmp_path, capfd):
    """What a compiler that fails has written is not taken for an object later."""
    compiler = tmp_path / "cc"
    compiler.write_text('#!/bin/sh\nfor target; do :; done\necho half >"$target"\nexit 1\n')
    compiler.chmod(0o755)
    with pytest.raises(SystemExit, match="could not compile"):
        libdtconv.run([str(compiler), "-o", str(tmp_path / "x.o")])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cc"]


def test_the_program_that_looks_for_races_knows_the_library(tmp_path):
    """`make races` is not part of what each change must pass; a function or a field that it does not know is found."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    flags = ["-std=gnu11", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Icext/include"]
    command = [compiler, *flags, "tools/sanitize/races.c"]
    done = subprocess.run(command, cwd=SCRIPT.parent.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_c_library_needs_no_headers_of_the_kernel():
    """They are a package of their own beside musl, as on Alpine."""
    root = SCRIPT.parent.parent / "cext"
    found = [path for path in sorted(root.glob("**/*.[ch]")) if "#include <linux/" in path.read_text()]
    assert not found


@pytest.mark.slow
def test_threads_that_are_watched_for_races_compute_what_they_should():
    """`make races` runs it under ThreadSanitizer."""
    command = [sys.executable, "tools/sanitize/threads.py"]
    environment = os.environ | {"PYDTCONV_NUM_THREADS": "2"}
    done = subprocess.run(command, cwd=SCRIPT.parent.parent, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("2 threads: ")
