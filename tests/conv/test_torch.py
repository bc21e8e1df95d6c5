"""Every algorithm and pass against PyTorch, where it is installed."""

import numpy as np
import pytest

from pydtconv.conv import ConvProblem, algorithms
from tests.conv.cases import case_of, tolerance

torch = pytest.importorskip("torch")

PROBLEMS = {
    "3x3_same": ConvProblem(2, 14, 13, 17, 33, 3, padding="same"),
    "5x3_s2_sides": ConvProblem(2, 15, 12, 6, 20, (5, 3), (2, 3), ((2, 1), (0, 2))),
    "3x3_dilated_groups": ConvProblem(1, 14, 13, 12, 18, 3, 1, ((2, 2), (3, 1)), (2, 1), 3),
    "1x1_s2": ConvProblem(3, 9, 9, 40, 24, 1, 2),
    "7x7_s2_float64": ConvProblem(1, 30, 28, 3, 16, 7, 2, "same", dtype="float64"),
    "depthwise": ConvProblem(2, 14, 13, 20, 40, 3, 2, "same", 1, 20),
}


def torch_results(case):
    p = case.p
    x, w, b = (torch.tensor(np.array(a), requires_grad=True) for a in (case.x, case.w, case.b))
    (top, bottom), (left, right) = p.padding
    padded = torch.nn.functional.pad(x.permute(0, 3, 1, 2), (left, right, top, bottom))
    y = torch.nn.functional.conv2d(padded, w.permute(3, 2, 0, 1), b, (p.sh, p.sw), 0, (p.dil_h, p.dil_w), p.groups)
    y = y.permute(0, 2, 3, 1)
    y.backward(torch.tensor(np.array(case.dy)))
    return {"forward": y.detach().numpy(), "backward_data": x.grad.numpy(), "backward_weights": w.grad.numpy()}


@pytest.mark.parametrize("name", PROBLEMS)
def test_against_torch(name):
    case = case_of(PROBLEMS[name])
    for direction, want in torch_results(case).items():
        assert algorithms(case.p, direction)
        for algorithm in algorithms(case.p, direction):
            got = case.run(algorithm, direction)
            assert np.abs(got - want).max() <= 2 * tolerance(algorithm, case.p.dtype) * np.abs(want).max(), (
                f"{algorithm}-{direction}"
            )
