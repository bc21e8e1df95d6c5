"""Builds the C library once per CPU level, and the Cython modules on top of it.

`cext/` becomes `libdtconv`, a shared library in `pydtconv/_ext/lib/<level>/`: "generic" for any CPU and, on x86-64,
"x86-64-v3" (AVX2 + FMA) and "x86-64-v4" (AVX-512).  All levels have the same name and interface; `pydtconv._ext` loads
the best one the CPU can run before it imports the Cython modules, which link to that name.  So a wheel runs on any CPU
of its architecture and still uses the widest vectors, and the compiler is never told `-march=native`.

Every file of gemm/, conv/, nn/ and ukr/ is compiled once per precision (see cext/include/dtconv_real.h).
DTCONV_LEVELS=generic,x86-64-v3 builds fewer levels, DTCONV_JOBS is the number of parallel compilations, and
DTCONV_CFLAGS are further flags for the library (-Werror).  BLIS_ROOT=<prefix> (or BLIS_ROOT=pkg-config) builds against
an installed BLIS, whose micro-kernel then goes before all others.
"""

import hashlib
import os
import platform
import shlex
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).parent.resolve()
MACOS = sys.platform == "darwin"
LIBRARY = "libdtconv.dylib" if MACOS else "libdtconv.so"
X86 = platform.machine().lower() in ("x86_64", "amd64")
LEVEL_FLAGS = {
    "generic": [],
    "x86-64-v3": ["-mavx2", "-mfma", "-mbmi2", "-mf16c"],
    "x86-64-v4": [
        "-mavx2",
        "-mfma",
        "-mbmi2",
        "-mf16c",
        "-mavx512f",
        "-mavx512vl",
        "-mavx512bw",
        "-mavx512dq",
        "-mprefer-vector-width=512",
    ],
}
C_FLAGS = [
    "-std=gnu11",
    "-O3",
    "-fPIC",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-Wall",
    "-Wextra",
    "-Werror=implicit",
    "-fvisibility=default",
]
FAMILIES = ("gemm", "conv", "nn", "ukr")
MODULES = sorted(path.stem for path in (ROOT / "pydtconv" / "_ext").glob("*.pyx"))


def levels():
    every = list(LEVEL_FLAGS) if X86 else ["generic"]
    wanted = os.environ.get("DTCONV_LEVELS")
    return every if not wanted else ["generic"] + [level for level in wanted.split(",") if level in every[1:]]


def c_flags():
    return C_FLAGS + shlex.split(os.environ.get("DTCONV_CFLAGS", "")) + system_blis()[0]


def system_blis():
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


def jobs():
    return int(os.environ.get("DTCONV_JOBS") or os.cpu_count() or 1)


class BuildExt(build_ext):
    """Compiles libdtconv per level into the package, then the Cython modules against it.

    Objects stay in build/, in a folder of their own per compiler and flags: a second build compiles only what changed.
    """

    def finalize_options(self):
        self.compiler_command = (os.environ.get("CC") or "cc").split()
        settings = " ".join([*self.compiler_command, *c_flags(), os.environ.get("CFLAGS", ""), sys.version])
        self.build_temp = str(ROOT / "build" / f"objects-{hashlib.sha256(settings.encode()).hexdigest()[:8]}")
        self.parallel = self.parallel or jobs()
        super().finalize_options()

    def run(self):
        package = Path(self.get_ext_fullpath("pydtconv._ext.x")).parent
        objects = Path(self.build_temp).resolve() / "cext"
        self.openmp = self.openmp_flags()
        commands = [command for level in levels() for command in self.compile_commands(level, objects)]
        with ThreadPoolExecutor(jobs()) as pool:
            list(pool.map(self.compile_one, commands))
        for level in levels():
            self.link(level, objects / level, package / "lib" / level)
        for extension in self.extensions:
            extension.library_dirs.append(str(package / "lib" / "generic"))
            extension.extra_link_args.append("-Wl,-rpath," + ("@loader_path" if MACOS else "$ORIGIN") + "/lib/generic")
        super().run()

    def openmp_flags(self):
        """The flags that switch OpenMP on, or none where the compiler has no OpenMP (it works, on one thread)."""
        candidates = [["-Xpreprocessor", "-fopenmp", "-lomp"]] if MACOS else [["-fopenmp"]]
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "probe.c"
            source.write_text("#include <omp.h>\nint main(void) { return omp_get_max_threads() < 1; }\n")
            for flags in candidates:
                command = [*self.compiler_command, str(source), *flags, "-o", str(Path(folder) / "probe")]
                if subprocess.run(command, capture_output=True, check=False).returncode == 0:
                    return flags
        print("warning: this C compiler has no OpenMP; pydtconv will use one thread", file=sys.stderr)
        return []

    def compile_commands(self, level, objects):
        """The command of each object that is missing or older than its source, a header or this file."""
        headers = max(path.stat().st_mtime for path in [*ROOT.glob("cext/**/*.h"), Path(__file__)])
        both = {"s": [], "d": ["-DDTCONV_DOUBLE"]}
        sources = [(source, "", []) for source in sorted(ROOT.glob("cext/common/*.c"))]
        for family in FAMILIES:
            for source in sorted(ROOT.glob(f"cext/{family}/*.c")):
                sources += [(source, suffix, defines) for suffix, defines in both.items()]
        for source, suffix, defines in sources:
            target = objects / level / f"{source.parent.name}_{source.stem}{suffix and '_' + suffix}.o"
            if target.exists() and not self.force and target.stat().st_mtime > max(headers, source.stat().st_mtime):
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            compile_openmp = [flag for flag in self.openmp if not flag.startswith("-l")]
            yield [
                *self.compiler_command,
                *c_flags(),
                *LEVEL_FLAGS[level],
                *compile_openmp,
                *defines,
                f"-I{ROOT / 'cext' / 'include'}",
                "-c",
                str(source),
                "-o",
                str(target),
            ]

    def compile_one(self, command):
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.stderr:
            print(result.stderr, file=sys.stderr)
        if result.returncode:
            raise SystemExit(f"error: could not compile: {' '.join(command)}")

    def link(self, level, objects, target):
        target.mkdir(parents=True, exist_ok=True)
        name = (
            ["-dynamiclib", f"-Wl,-install_name,@rpath/{LIBRARY}"] if MACOS else ["-shared", f"-Wl,-soname,{LIBRARY}"]
        )
        self.compile_one(
            [
                *self.compiler_command,
                *name,
                *map(str, sorted(objects.glob("*.o"))),
                *self.openmp,
                *system_blis()[1],
                "-lm",
                "-o",
                str(target / LIBRARY),
            ]
        )

    def get_outputs(self):
        package = Path(self.build_lib) / "pydtconv" / "_ext"
        return super().get_outputs() + [str(package / "lib" / level / LIBRARY) for level in levels()]


def packages():
    """pydtconv and all its subpackages; models/ is pydtconv.applications."""
    folders = [path.parent.relative_to(ROOT) for path in sorted(ROOT.glob("pydtconv/**/__init__.py"))]
    return [".".join(folder.parts) for folder in folders] + ["pydtconv.applications"]


def extension(name):
    """A Cython module: thin, so compiling it fast matters more than its speed.

    `cpu` says which build of libdtconv to load, so it does not link to it.
    """
    return Extension(
        f"pydtconv._ext.{name}",
        [f"pydtconv/_ext/{name}.pyx"],
        include_dirs=["cext/include"],
        libraries=[] if name == "cpu" else ["dtconv"],
        extra_compile_args=["-O1", "-g0", "-Wno-unused-function"],
    )


setup(
    packages=packages(),
    package_dir={"pydtconv": "pydtconv", "pydtconv.applications": "models"},
    include_package_data=False,
    package_data={"pydtconv": ["py.typed"], "pydtconv.datasets": ["*.npz"]},
    ext_modules=cythonize(
        [extension(name) for name in MODULES],
        language_level=3,
        compiler_directives={
            "boundscheck": False,
            "wraparound": False,
            "initializedcheck": False,
            "embedsignature": True,
        },
    ),
    cmdclass={"build_ext": BuildExt},
)
