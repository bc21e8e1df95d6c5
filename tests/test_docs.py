"""What README and documentation show is true: their code runs, their commands, files and links are there."""

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from pydtconv.cli import build_parser
from tests.torchvision_models import import_torchvision

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("**/*.md"))]
TEXTS = {str(page.relative_to(ROOT)): page.read_text() for page in PAGES}


def blocks(language):
    """(page, number, code) of each block of a language."""
    for page, text in TEXTS.items():
        for number, code in enumerate(re.findall(rf"^```{re.escape(language)}\n(.*?)^```", text, re.S | re.M)):
            yield pytest.param(page, code, id=f"{page.removesuffix('.md')}-{number}")


def commands():
    """Each line of the blocks of commands, continued lines joined."""
    for parameter in blocks("sh"):
        page, code = parameter.values
        for line in code.replace("\\\n", " ").splitlines():
            line = line.split("#")[0].strip()
            if line:
                yield pytest.param(line, id=f"{page.removesuffix('.md')}: {line}")


PHOTOGRAPHS = "docs/guides/fine-tune.md"
#: pages whose blocks follow each other; tests of their own run these
FOLLOWING = (PHOTOGRAPHS, "docs/first-week.md")
#: what readers meet first
QUICK = ("README.md",)


@pytest.mark.parametrize(
    ("page", "code"),
    [
        pytest.param(*block.values, id=block.id, marks=() if block.values[0] in QUICK else pytest.mark.slow)
        for block in [*blocks("python"), *blocks("{code-block} python")]
        if block.values[0] not in FOLLOWING
    ],
)
def test_code_runs(page, code, tmp_path):
    for package in ("PIL", "torch"):
        if re.search(rf"\b(import|from) {package}\b", code):
            pytest.importorskip(package)
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=tmp_path, env=os.environ, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.slow
def test_fine_tuning_on_photographs(tmp_path):
    """All of the page, in one folder, for small images and few epochs; the file to start from is torchvision's."""
    photographs = Path(os.environ.get("PYDTCONV_DATA", "")) / "ants_bees"
    if not (photographs / "train").is_dir():
        pytest.skip("needs PYDTCONV_DATA with ants_bees/")
    torchvision = import_torchvision()
    for package in ("torch", "onnx", "PIL", "matplotlib"):
        pytest.importorskip(package)
    import torch

    torch.save(torchvision.models.resnet18(weights=None).state_dict(), tmp_path / "resnet18.pth")
    (tmp_path / "photos").symlink_to(photographs)
    for language, block in re.findall(r"^```(python|sh)\n(.*?)^```", TEXTS[PHOTOGRAPHS], re.S | re.M):
        words = ["-W", "error", "-c", block]
        if language == "sh":
            words = ["-m", *shlex.split(block.replace("\\\n", " "))]
            words += ["--image-size", "64", "--epochs", "1", "--head-epochs", "1"] if words[2] == "train" else []
        result = subprocess.run([sys.executable, *words], cwd=tmp_path, capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
    for name in ("confusion.png", "seen.png", "found.csv", "insects.onnx", "insects.keras", "insects.toml"):
        assert (tmp_path / name).stat().st_size


@pytest.mark.parametrize("line", list(commands()))
def test_commands_are_understood(line):
    """Every `pydtconv` command parses, every `make` target and every module that `python -m` starts is there."""
    words = shlex.split(line)
    if words[0] == "mpiexec":
        words = words[words.index("pydtconv") :]
    if words[0] == "pydtconv":
        build_parser().parse_args(words[1:])
    elif words[0] == "make":
        assert re.search(rf"^([\w-]+ )*{words[1]}( [\w-]+)*:", (ROOT / "Makefile").read_text(), re.M)
    else:
        assert words[:2] in (["pip", "install"], ["pydtconv", "doctor"]), f"no test knows {words[0]!r}"


@pytest.mark.parametrize("page", TEXTS)
def test_benchmarks_that_are_named_exist(page):
    for module in re.findall(r"python -m ((?:benchmarks|tests)\.\w+)", TEXTS[page]):
        path = ROOT / module.replace(".", "/")
        assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), module


def anchor(heading):
    return re.sub(r"[^\w-]", "", heading.lower().replace(" ", "-"))


@pytest.mark.parametrize("page", TEXTS)
def test_links_lead_to_files_and_headings(page):
    for target, fragment in re.findall(r"\]\((?!https?:)([\w./-]*)(?:#([\w-]+))?\)", TEXTS[page]):
        file = (ROOT / page).parent / target if target else ROOT / page
        assert file.exists(), target
        if fragment:
            assert fragment in [anchor(h) for h in re.findall(r"^#+ (.*)$", file.read_text(), re.M)], fragment


@pytest.mark.parametrize("page", TEXTS)
def test_pictures_have_a_text(page):
    assert not re.findall(r"!\[\]\(", TEXTS[page])


@pytest.mark.parametrize("page", TEXTS)
def test_files_that_are_named_exist(page):
    names = set(re.findall(r"`((?:cext|pydtconv|tests|benchmarks|docs|models|tools)/[\w./]*)`", TEXTS[page]))
    if page == "docs/measured.md":
        names |= {f"benchmarks/results/{name}" for name in re.findall(r"`([\w.]+\.(?:csv|png))`", TEXTS[page])}
    assert not [name for name in names if not (ROOT / name).exists()]


@pytest.mark.parametrize("page", [*TEXTS, "SECURITY.md", "CHANGELOG.md"])
def test_lines_fit(page):
    """In 120 columns, but for rows of tables and what programs print (blocks without a language)."""
    text = (ROOT / page).read_text()
    text = re.sub(r"^ *```(\w*)\n.*?^ *```$", lambda block: block[0] if block[1] else "", text, flags=re.S | re.M)
    assert not [line for line in text.splitlines() if len(line) > 120 and not line.startswith("|")]


#: the comments of C, and comments and docstrings of Python
OF_C, OF_PYTHON = r"/\*.*?\*/|//[^\n]*", r'""".*?"""|#[^\n]*'


@pytest.mark.parametrize("folder", ["cext", "pydtconv", "models", "tests", "benchmarks", "tools"])
def test_files_that_comments_name_exist(folder):
    tops = ("cext", "pydtconv", "models", "tests", "benchmarks", "tools", "docs")
    files = [str(path.relative_to(ROOT)) for top in tops for path in (ROOT / top).rglob("*.*")]
    ends = {end for file in files for end in (file, *(file[i + 1 :] for i, c in enumerate(file) if c == "/"))}
    missing = []
    for path in sorted((ROOT / folder).rglob("*")):
        of_c = path.suffix in (".c", ".h", ".cu") and not path.is_relative_to(ROOT / "pydtconv")  # made by Cython
        if of_c or path.suffix in (".py", ".pyx", ".pxd"):
            comments = " ".join(re.findall(OF_C if of_c else OF_PYTHON, path.read_text(), re.S))
            names = re.findall(r"(?<![\w./<-])((?:[\w-]+/)*\w[\w-]*\.(?:c|h|cu|py|pyx|pxd|md))(?![\w(=.])", comments)
            missing += [f"{path.name}: {name}" for name in names if name not in ends and not (ROOT / name).exists()]
    assert not missing


def test_the_readme_is_short():
    assert len(TEXTS["README.md"].splitlines()) <= 150


def test_drawings_are_those_of_their_program():
    spec = importlib.util.spec_from_file_location("drawings", ROOT / "docs" / "drawings.py")
    drawings = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(drawings)
    for name, drawing in drawings.DRAWINGS.items():
        assert (drawings.FOLDER / f"{name}.svg").read_text() == drawing().svg(), name
