"""Builds pydtconv with AVX-512, its BF16 and AMX emulated (avx512.h), on a CPU with AVX2: `make emulated` does so.

build/emulated is this repository, by links, but for the C library, compiled for AVX2 of the lines for AVX-512, and for
the bindings that ask for the CPU's features.  There tests run as everywhere:

    cd build/emulated && DTCONV_EMULATED_AMX=1 python -m pytest tests/gemm
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent.resolve()
EMULATED = ROOT / "build/emulated"
COMPILED_FOR, NAMED = "x86-64-v3", "x86-64-v4-bf16"
ASK_FOR_FEATURES = ("cpu", "ukr")
FLAGS = ["-include", str(ROOT / "tools/emulate/avx512.h"), f"-I{ROOT / 'cext/include'}", "-Wno-psabi", "-O1"]

os.environ["DTCONV_CFLAGS"] = " ".join([os.environ.get("DTCONV_CFLAGS", ""), *FLAGS])
os.environ["DTCONV_LEVELS"] = COMPILED_FOR
sys.path.insert(0, str(ROOT / "tools"))
import libdtconv  # noqa: E402 - it reads its flags from the environment


def link_all(source: Path, target: Path, but: tuple[str, ...] = ()) -> None:
    """Links to all of a folder, but for some names."""
    target.mkdir(parents=True)
    for path in source.iterdir():
        if path.name not in (*but, "__pycache__"):
            (target / path.name).symlink_to(path)


def binding(name: str, bindings: Path) -> None:
    """A Cython module, of the C that the last build has made of it."""
    flags = ["-fPIC", "-shared", "-Wno-unused-function", *libdtconv.LEVEL_FLAGS[COMPILED_FOR], *FLAGS]
    source, target = bindings / f"{name}.c", bindings / f"{name}{sysconfig.get_config_var('EXT_SUFFIX')}"
    target.unlink()
    library = [] if name == "cpu" else [f"-L{bindings / 'lib' / NAMED}", "-ldtconv"]
    command = [*libdtconv.compiler(), *flags, f"-I{sysconfig.get_path('include')}", str(source), *library]
    subprocess.run([*command, "-o", str(target)], check=True)


def main() -> None:
    shutil.rmtree(EMULATED, ignore_errors=True)
    link_all(ROOT, EMULATED, but=("build", "pydtconv", ".git", ".venv"))
    link_all(ROOT / "pydtconv", EMULATED / "pydtconv", but=("_ext", "applications"))
    (EMULATED / "pydtconv/applications").symlink_to(ROOT / "models")
    bindings = EMULATED / "pydtconv/_ext"
    link_all(ROOT / "pydtconv/_ext", bindings, but=("lib",))
    libdtconv.build(bindings / "lib")
    (bindings / "lib" / COMPILED_FOR).rename(bindings / "lib" / NAMED)
    for name in ASK_FOR_FEATURES:
        binding(name, bindings)
    print(EMULATED)


if __name__ == "__main__":
    main()
