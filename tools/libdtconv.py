"""Compiles `cext/` into libdtconv, a shared library per CPU level, in `pydtconv/_ext/lib/<level>/`.

    python tools/libdtconv.py       builds it in place; needs nothing but Python and a C compiler

Levels are "generic" for any CPU and, on x86-64, "x86-64-v3" (AVX2 + FMA), "x86-64-v4" (AVX-512) and, where the
compiler has these instructions, "x86-64-v4-bf16" (AVX-512 BF16): the fourth with what touches bfloat16 compiled anew.
All have the same name and interface.  Every file of FAMILIES is compiled once per precision (dtconv_real.h): in
float32 and in float64, and what has images in bfloat16, too; files named bfloat16_* in bfloat16 alone.

DTCONV_LEVELS=generic,x86-64-v3 builds these levels alone, DTCONV_LEVELS=native the one for this CPU; else all are
built.  DTCONV_JOBS is the number of parallel compilations, DTCONV_CFLAGS are further flags (-Werror).
BLIS_ROOT=<prefix> (or pkg-config) builds against an installed BLIS, whose micro-kernel then comes first.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent.resolve()
MACOS = sys.platform == "darwin"
LIBRARY = "libdtconv.dylib" if MACOS else "libdtconv.so"
X86 = platform.machine().lower() in ("x86_64", "amd64")
AVX2 = ["-mavx2", "-mfma", "-mbmi2", "-mf16c"]
AVX512 = [*AVX2, "-mavx512f", "-mavx512vl", "-mavx512bw", "-mavx512dq", "-mprefer-vector-width=512"]
LEVEL_FLAGS = {
    "generic": [],
    "x86-64-v3": AVX2,
    "x86-64-v4": AVX512,
    "x86-64-v4-bf16": [*AVX512, "-mavx512bf16"],
}
# a level that takes the objects of another for what has no bfloat16
BASE = {"x86-64-v4-bf16": "x86-64-v4"}
C_FLAGS = [
    "-std=gnu11",
    "-fPIC",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-Wall",
    "-Wextra",
    "-Werror=implicit",
    "-fvisibility=default",
]
FAMILIES = ("gemm", "conv", "fft", "image", "nn", "ukr")
# gcc's second level leaves loops as they are where it does not know their lengths; clang's needs no such words
SECOND_LEVEL, VECTORIZING = "-O2", ["-ftree-vectorize", "-fvect-cost-model=dynamic"]
# what the third level adds takes a third of the time to compile; only these run faster with it, in single precision
THIRD_LEVEL, AT_THIRD_LEVEL = "-O3", ("transform",)
# files whose names begin so are compiled in bfloat16 alone
OF_BFLOAT16 = "bfloat16_"
# of them, what is compiled for images in float32, too, whose products are of bfloat16
OF_FLOAT32 = (
    "bfloat16_direct",
    "bfloat16_direct_copy",
    "bfloat16_direct_layout",
    "bfloat16_direct_pass",
    "bfloat16_direct_weights",
    "bfloat16_direct_weights_copy",
    "bfloat16_finish",
)
# says which level it is
NAMES_LEVEL = ("runtime",)
# they take the longest, so they are compiled first and none of them is left over at the end
LONG = ("transform", "batchnorm", "elementwise_loss", "cross_entropy", "direct_tile", "unary_spans")
# the compiler's own header of vector instructions, which takes longer to read than most of our files to compile
INTRINSICS = """#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif
"""
PROBE = """#include <stdio.h>
#include "dtconv_cpu.h"
int main(void) {
    const unsigned v3 = DTCONV_CPU_AVX2 | DTCONV_CPU_FMA | DTCONV_CPU_BMI2 | DTCONV_CPU_F16C;
    const unsigned has = dtconv_cpu_features(), v4 = v3 | DTCONV_CPU_AVX512, bf16 = v4 | DTCONV_CPU_AVX512_BF16;
    const char *const wide = (has & bf16) == bf16 ? "x86-64-v4-bf16" : "x86-64-v4";
    puts((has & v4) == v4 ? wide : (has & v3) == v3 ? "x86-64-v3" : "generic");
    return 0;
}
"""
# what compilers of the last level know
ROUNDS = """#include <immintrin.h>
__m256bh rounded(__m512 x) { return _mm512_cvtneps_pbh(x); }
"""


def jobs() -> int:
    return int(os.environ.get("DTCONV_JOBS") or os.cpu_count() or 1)


def compiler() -> list[str]:
    return (os.environ.get("CC") or "cc").split()


def further_flags() -> list[str]:
    return shlex.split(os.environ.get("DTCONV_CFLAGS", ""))


def compiles(text: str, *flags: str) -> bool:
    """Whether the compiler takes this text with these flags."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "probe.c"
        source.write_text(text)
        command = [*compiler(), "-Werror", *flags, "-c", str(source), "-o", str(Path(folder) / "probe.o")]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0


@cache
def vectorizing() -> list[str]:
    """VECTORIZING where the compiler knows it."""
    return VECTORIZING if compiles("int probe;\n", *VECTORIZING) else []


@cache
def buildable_levels() -> list[str]:
    """The levels that this compiler has the instructions of, the widest last."""
    if not X86:
        return ["generic"]
    every = list(LEVEL_FLAGS)
    return every if compiles(ROUNDS, *LEVEL_FLAGS[every[-1]]) else every[:-1]


def c_flags() -> list[str]:
    return [SECOND_LEVEL, *vectorizing(), *C_FLAGS, *system_blis()[0]]


def objects_folder() -> Path:
    """Where objects stay, a folder per compiler and flags: a second build compiles only what changed.

    In build/ here, or in the folder that DTCONV_OBJECTS names, which several copies of the same sources may share.
    """
    flags = [*c_flags(), *openmp_flags(), *further_flags()]
    settings = " ".join([*compiler(), *flags, os.environ.get("CFLAGS", ""), sys.version])
    folder = Path(os.environ.get("DTCONV_OBJECTS") or ROOT / "build")
    return folder / f"objects-{hashlib.sha256(settings.encode()).hexdigest()[:8]}"


@cache
def native_level() -> str:
    """The best level for the CPU that compiles, as the loader would choose it."""
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder) / "probe.c", Path(folder) / "probe"
        source.write_text(PROBE)
        subprocess.run([*compiler(), f"-I{ROOT / 'cext/include'}", str(source), "-o", str(program)], check=True)
        level = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout.strip()
        return level if level in buildable_levels() else BASE[level]


def levels() -> list[str]:
    """The levels to build, the widest last."""
    every = buildable_levels()
    wanted = os.environ.get("DTCONV_LEVELS")
    if not wanted:
        return every
    if wanted == "native":
        return [native_level()]
    if any(level not in LEVEL_FLAGS for level in wanted.split(",")):
        raise SystemExit(f"error: DTCONV_LEVELS: expected native or some of {','.join(every)}, got {wanted}")
    return [level for level in every if level in wanted.split(",")] or ["generic"]


def system_blis() -> tuple[list[str], list[str]]:
    """Flags to compile and to link with the BLIS that BLIS_ROOT names; empty where it is not set."""
    root = os.environ.get("BLIS_ROOT")
    if not root:
        return [], []
    if root == "pkg-config":
        command = ["pkg-config", "blis"]
        found = [
            subprocess.run([*command, what], capture_output=True, text=True, check=False)
            for what in ("--cflags", "--libs")
        ]
        if any(result.returncode for result in found):
            raise SystemExit("error: BLIS_ROOT=pkg-config: pkg-config knows no blis")
        compile_flags, link_flags = (shlex.split(result.stdout) for result in found)
        headers = [Path(flag[2:]) / "blis.h" for flag in compile_flags if flag.startswith("-I")]
    else:
        headers = sorted(Path(root).glob("include/**/blis.h"))
        libraries = sorted(Path(root).glob(f"lib*/**/libblis.{'dylib' if MACOS else 'so'}"))
        if not headers or not libraries:
            raise SystemExit(f"error: BLIS_ROOT={root}: no blis.h in include/ or no libblis in lib/")
        folder = libraries[0].parent
        compile_flags = ["-isystem", str(headers[0].parent)]
        link_flags = [f"-L{folder}", f"-Wl,-rpath,{folder}", "-lblis"]
    from_1 = any("bli_cntx_get_ukr_dt" in header.read_text() for header in headers if header.exists())
    return ["-DDTCONV_SYSTEM_BLIS", *(["-DDTCONV_SYSTEM_BLIS_1"] if from_1 else []), *compile_flags], link_flags


@cache
def openmp_flags() -> list[str]:
    """The flags that switch OpenMP on.

    Where the compiler has none, everything works on one thread: flags that leave pragmas, and what only they use,
    without a warning.
    """
    candidates = [["-Xpreprocessor", "-fopenmp", "-lomp"]] if MACOS else [["-fopenmp"]]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "probe.c"
        source.write_text("#include <omp.h>\nint main(void) { return omp_get_max_threads() < 1; }\n")
        for flags in candidates:
            command = [*compiler(), str(source), *flags, "-o", str(Path(folder) / "probe")]
            if subprocess.run(command, capture_output=True, check=False).returncode == 0:
                return flags
    print("warning: this C compiler has no OpenMP; pydtconv will use one thread", file=sys.stderr)
    return ["-Wno-unknown-pragmas", "-Wno-unused-variable", "-Wno-unused-parameter"]


@cache
def has_own_team() -> bool:
    """Whether cext/common/team.c takes the place of the compiler's OpenMP library, by the words of that file."""
    command = [*compiler(), *openmp_flags(), "-dM", "-E", "-x", "c", os.devnull]
    macros = set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
    return {"_OPENMP", "__linux__"} <= macros and "__clang__" not in macros


def team_flags() -> list[str]:
    """Flags to link with what OpenMP's pragmas become; of our own team nothing may be missing."""
    if not has_own_team():
        return openmp_flags()
    sanitized = any("-fsanitize" in flag for flag in further_flags())  # its functions come with the program
    return ["-pthread", *([] if sanitized else ["-Wl,-z,defs"])]


def sources() -> list[tuple[Path, str, list[str]]]:
    """Every C file with the suffix of its object and its defines, those first that take long to compile."""
    precisions: dict[str, list[str]] = {"_s": [], "_d": ["-DDTCONV_DOUBLE"], "_h": ["-DDTCONV_BFLOAT16"]}
    found: list[tuple[Path, str, list[str]]] = [(path, "", []) for path in sorted(ROOT.glob("cext/common/*.c"))]
    for family in FAMILIES:
        for path in sorted(ROOT.glob(f"cext/{family}/*.c")):
            found += [(path, suffix, precisions[suffix]) for suffix in _suffixes(path)]
    return sorted(found, key=lambda source: LONG.index(source[0].stem) if source[0].stem in LONG else len(LONG))


def _suffixes(path: Path) -> Iterator[str]:
    """Those of the objects of a file of FAMILIES; what names `elem`, the type of images, has them in bfloat16, too."""
    alone = path.stem.startswith(OF_BFLOAT16)
    if not alone or path.stem in OF_FLOAT32:
        yield "_s"
    if not alone:
        yield "_d"
    if alone or re.search(r"\belem\b", path.read_text()):
        yield "_h"


def objects_of(level: str) -> Iterator[tuple[str, Path, str, list[str]]]:
    """Everything that is linked into a level: the level that it is compiled for, and as sources()."""
    for source, suffix, defines in sources():
        own = suffix == "_h" or source.stem.startswith(OF_BFLOAT16) or source.stem in NAMES_LEVEL
        yield (level if own else BASE.get(level, level)), source, suffix, defines


def object_path(objects: Path, level: str, source: Path, suffix: str) -> Path:
    return objects / level / f"{source.parent.name}_{source.stem}{suffix}.o"


def precompiled(level: str, objects: Path, openmp: list[str]) -> list[str]:
    """The flag that has INTRINSICS read ahead, once for all files; a compiler that cannot reads the text each time."""
    header = objects / level / "intrinsics.h"
    if not header.with_name("intrinsics.h.gch").exists():
        header.parent.mkdir(parents=True, exist_ok=True)
        header.write_text(INTRINSICS)
        flags = [*c_flags(), *LEVEL_FLAGS[level], *(flag for flag in openmp if not flag.startswith("-l"))]
        run([*compiler(), *flags, *further_flags(), "-x", "c-header", str(header), "-o", f"{header}.gch"])
    return ["-include", str(header)]


@cache
def included(path: Path) -> frozenset[Path]:
    """The files of ours that a source or a header names, also those by a macro."""
    named = re.findall(r'^ *# *(?:include|define).*"(.*\.\w+)"', path.read_text(), re.MULTILINE)
    places = [folder / name for name in named for folder in (path.parent, ROOT / "cext" / "include")]
    return frozenset(place.resolve() for place in places if place.exists())


@cache
def read_for(source: Path) -> frozenset[Path]:
    """A source and all that is read to compile it."""
    found, to_read = set(), {source}
    while to_read:
        found |= to_read
        to_read = frozenset[Path]().union(*map(included, to_read)) - found
    return frozenset(found)


def compile_commands(wanted: list[str], objects: Path, openmp: list[str], force: bool) -> Iterator[list[str]]:
    """The command of each object that is missing or older than its source, what that includes, or this file."""
    seen = set()
    for level, source, suffix, defines in [each for asked in wanted for each in objects_of(asked)]:
        target = object_path(objects, level, source, suffix)
        if target in seen:
            continue
        seen.add(target)
        newest = max(path.stat().st_mtime for path in [Path(__file__), *read_for(source)])
        if target.exists() and not force and target.stat().st_mtime > newest:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        optimized = [THIRD_LEVEL] if source.stem in AT_THIRD_LEVEL and "-DDTCONV_DOUBLE" not in defines else []
        flags = [
            *c_flags(),
            *optimized,
            *LEVEL_FLAGS[level],
            *(flag for flag in openmp if not flag.startswith("-l")),
            *defines,
            *precompiled(level, objects, openmp),
            *further_flags(),  # the last word
        ]
        yield [*compiler(), *flags, f"-I{ROOT / 'cext' / 'include'}", "-c", str(source), "-o", str(target)]


def run(command: list[str]) -> None:
    """Runs one command of the compiler, whose target comes last; what is there is whole, also after an interrupt."""
    target = Path(command[-1])
    beside = target.with_name(target.name + ".new")
    result = subprocess.run([*command[:-1], str(beside)], capture_output=True, text=True, check=False)
    if result.stderr:
        print(result.stderr, file=sys.stderr)
    if result.returncode:
        beside.unlink(missing_ok=True)
        raise SystemExit(f"error: could not compile: {' '.join(command)}")
    beside.replace(target)


def link(level: str, objects: Path, target: Path) -> None:
    wanted = [object_path(objects, of, source, suffix) for of, source, suffix, _ in objects_of(level)]
    target.parent.mkdir(parents=True, exist_ok=True)
    name = ["-dynamiclib", f"-Wl,-install_name,@rpath/{LIBRARY}"] if MACOS else ["-shared", f"-Wl,-soname,{LIBRARY}"]
    run(
        [
            *compiler(),
            *name,
            *map(str, sorted(wanted)),
            *team_flags(),
            *further_flags(),
            *system_blis()[1],
            "-lm",
            "-o",
            str(target),
        ]
    )


def build(libraries: Path, force: bool = False) -> list[str]:
    """Builds the levels that are asked for into libraries/<level>/, and gives their names.

    Two processes that build the same take turns, and the second finds everything done.
    """
    objects = objects_folder()
    objects.mkdir(parents=True, exist_ok=True)
    wanted = levels()
    with (objects / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        openmp = openmp_flags()
        commands = list(compile_commands(wanted, objects / "cext", openmp, force))
        with ThreadPoolExecutor(jobs()) as pool:
            list(pool.map(run, commands))
        for level in LEVEL_FLAGS:
            if level not in wanted:  # of an earlier build, and no longer up to date
                shutil.rmtree(libraries / level, ignore_errors=True)
        for level in wanted:
            link(level, objects / "cext", libraries / level / LIBRARY)
    return wanted


if __name__ == "__main__":
    build(ROOT / "pydtconv" / "_ext" / "lib")
