"""What the files of results say of where they come from."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from benchmarks import links, report
from benchmarks.processes import Kept

ROOT = Path(__file__).parents[2]


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    return tmp_path


def head(path):
    return dict(line[2:].split(": ", 1) for line in path.read_text().splitlines() if line.startswith("# "))


def test_a_file_of_one_run_says_where_it_comes_from(results):
    path = report.write_csv("one", [{"network": "vgg16", "seconds": 0.25}])
    assert head(path).keys() == set(report.ORIGIN)
    assert head(path)["commit"] == report.commit()
    assert report.read_csv("one") == [{"network": "vgg16", "seconds": 0.25}]


def test_a_run_that_measured_nothing_leaves_the_results_of_before(results):
    path = report.write_csv("one", [{"network": "vgg16", "seconds": 0.25}])
    before = path.read_bytes()
    with pytest.raises(ValueError, match="expected results, got none"):
        report.write_csv("one", [])
    with pytest.raises(ValueError, match="dict contains fields not in fieldnames"):
        report.write_csv("one", [{"network": "vgg16"}, {"network": "vgg19", "other": 1}])
    assert path.read_bytes() == before


def test_rows_of_several_runs_say_it_themselves(results):
    origin = {"machine": "m", "date": "yesterday", "commit": "4e28134", "command": "python -m benchmarks.odd"}
    rows = [{"seconds": 1.0, **origin}, {"seconds": 2.0, **origin, "commit": "1234567", "date": "today"}]
    path = report.write_csv("two", rows)
    assert head(path) == origin | {"commit": "see the rows", "date": "see the rows"}
    assert report.read_csv("two") == rows


def test_kept_results_keep_their_origin(tmp_path, monkeypatch):
    path = tmp_path / "kept.json"
    first, origin = Kept(path).get("vgg16", lambda: 1)
    monkeypatch.setattr(report, "commit", lambda: "later")
    kept = Kept(path)
    assert kept.get("vgg16", lambda: 2) == (first, origin)
    assert kept.get("resnet34", lambda: 2)[1]["commit"] == "later"
    path.write_text(json.dumps({"vgg16": 1.0}))
    with pytest.raises(SystemExit, match="with their origin"):
        Kept(path)


def test_rows_of_links_are_merged_with_their_own_origin(results):
    keys = {"model": "vgg16", "link": "1Gbps:100us", "hidden %": 98.0}
    old = [keys | {"ranks": ranks} | report.origin() | {"commit": "4e28134"} for ranks in (2, 4)]
    report.write_csv("links", old)
    new = old[1] | {"commit": "5e00000", "hidden %": 99.0}
    assert links.merged([new]) == [old[0], new]


def commits_of(name):
    named = {head(report.RESULTS / f"{name}.csv").get("commit", "")}
    return (named | {row["commit"] for row in report.read_csv(name) if "commit" in row}) - {"see the rows", ""}


@pytest.fixture(scope="module")
def history():
    """The commits that lead to this one; skips where they are not all there."""

    def git(*words):
        done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False)
        return done.stdout.split() if done.returncode == 0 else []

    if git("rev-parse", "--show-toplevel") != [str(ROOT)] or git("rev-parse", "--is-shallow-repository") == ["true"]:
        pytest.skip("needs a clone with its whole history")
    return git("rev-list", "HEAD") or pytest.skip("needs commits")


@pytest.mark.parametrize("name", sorted(path.stem for path in report.RESULTS.glob("*.csv")))
def test_results_name_commits_of_the_history(name, history):
    commits = commits_of(name)
    assert commits
    assert not {each for each in commits if each.endswith("+")}, "files had been changed since the commit"
    assert not {each for each in commits if not any(known.startswith(each) for known in history)}


def test_the_page_of_figures_names_the_commit_of_each_file():
    page = (ROOT / "docs" / "measured.md").read_text()
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("|") and ".csv`" in line]
    for *_, commits, _, files in (row for row in rows if len(row) == 5):
        for name in re.findall(r"`([\w.]+)\.csv`", files):
            assert set(re.findall(r"`(\w+)\+?`", commits)) <= commits_of(name), name
