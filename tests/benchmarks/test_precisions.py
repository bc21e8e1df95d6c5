"""Steps by precision: a small network, and the table of its means."""

import pytest

from benchmarks import precisions, report
from benchmarks.networks import Case
from pydtconv import config


@pytest.mark.slow
def test_precisions_take_turns_and_leave_the_settings_as_they_were():
    rows = list(precisions.measured(Case("resnet20", 32, 16), ("float32", "mixed_bfloat16", "medium"), 0))
    assert [row["precision"] for row in rows] == ["float32", "mixed_bfloat16", "medium"]
    assert all(row["steps"] == 3 for row in rows)
    assert rows[0]["ratio"] == rows[0]["of float32"] == 1
    assert 0 < float(str(rows[1]["of float32"])) < 1
    assert config.float32_matmul_precision() == "highest"
    assert config.dtype_policy().name == "float32"
    assert [row["precision"] for row in precisions.means(rows)] == ["float32", "mixed_bfloat16", "medium"]


def test_the_command_writes_the_table(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    row = {"network": "vgg16", "precision": "float32", "ratio": 1.0, "fastest": 1.0, "of float32": 1.0}
    monkeypatch.setattr(precisions, "measured", lambda case, names, seconds: [{**row, "pixels": case.size}])
    assert precisions.main(["--networks", "vgg16", "--sizes", "32", "64", "--precisions", "medium"]) == 0
    assert "Geometric means" in capsys.readouterr().out
    assert [each["pixels"] for each in report.read_csv("precisions")] == [32, 64]
    with pytest.raises(SystemExit):
        precisions.main(["--precisions", "float16"])
