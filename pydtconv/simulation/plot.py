"""The picture of a prediction: efficiency over ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pydtconv.files.plotting import figure_class, save_figure
from pydtconv.simulation.scaling import Prediction


def plot_scaling(scalings: Mapping[str, Sequence[Prediction]], path: str | Path, title: str) -> Path:
    """One panel for each scaling by its title: efficiency over ranks, overlapped and blocking, of each algorithm.

    Raises ImportError when matplotlib is not installed (extra `plot`).
    """
    figure = figure_class("the picture")(figsize=(5.5 * len(scalings), 4.5), layout="constrained")
    for axes, (name, found) in zip(figure.subplots(1, len(scalings), squeeze=False)[0], scalings.items(), strict=True):
        ranks = sorted({prediction.ranks for prediction in found})
        for color, algorithm in enumerate(dict.fromkeys(prediction.algorithm for prediction in found)):
            mine = [prediction for prediction in found if prediction.algorithm == algorithm]
            counts = [prediction.ranks for prediction in mine]
            label = algorithm.replace("_", " ")
            style = {"color": f"C{color}", "marker": "o", "markersize": 3}
            axes.plot(counts, [100 * p.efficiency for p in mine], label=f"{label}, overlapped", **style)
            rates = [100 * p.blocking_efficiency for p in mine]
            axes.plot(counts, rates, linestyle="--", label=f"{label}, blocking", **style)
        axes.set_xscale("log", base=2)
        axes.set_xticks(ranks, [str(p) for p in ranks], fontsize=8)
        axes.set(xlabel="ranks", ylabel="images/s, % of as many times one rank's", title=name, ylim=(0, 105))
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7, handlelength=4)
    figure.suptitle(title, fontsize=10)
    return save_figure(figure, path, 120)
