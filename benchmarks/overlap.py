"""Long signals with long filters beside SciPy: `python -m benchmarks.overlap [--peer scipy]`.

The full convolution of one float32 signal; SciPy's sides are oaconvolve and fftconvolve, the best of which counts.
"""

from __future__ import annotations

import argparse
import math

import numpy as np

from benchmarks import report
from benchmarks.timing import Side, medians
from pydtconv import config
from pydtconv.conv import overlap

SIGNALS, TAPS = (12, 14, 16, 18, 20, 22), (31, 127, 511, 1023, 4095)


def measure(n: int, taps: int, options: argparse.Namespace) -> dict[str, object]:
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(size, dtype="float32") for size in (n, taps))
    sides: dict[str, Side] = {"pydtconv": lambda: overlap.convolve(a, b)}
    if options.peer:
        import scipy.fft
        import scipy.signal

        def peer(function: Side) -> Side:
            def run() -> object:
                with scipy.fft.set_workers(options.threads):
                    return function()

            return run

        sides["oaconvolve"] = peer(lambda: scipy.signal.oaconvolve(a, b))
        sides["fftconvolve"] = peer(lambda: scipy.signal.fftconvolve(a, b))
    seconds = medians(sides, options.seconds, threads=options.threads)
    row: dict[str, object] = {"signal": n, "taps": taps}
    row |= {f"{name} Msamples/s": n / value / 1e6 for name, value in seconds.items()}
    others = [value for name, value in seconds.items() if name != "pydtconv"]
    row["to scipy"] = min(others) / seconds["pydtconv"] if others else None
    return row


def picture(rows: list[dict[str, object]]) -> None:
    """Bars of all sides over signal and filter."""
    labels = [f"{row['signal']} * {row['taps']}" for row in rows]
    names = [key for key in rows[0] if key.endswith("Msamples/s")]
    series = {key.removesuffix(" Msamples/s"): [float(str(row[key])) for row in rows] for key in names}
    print(report.plot_bars("overlap", "convolution of signals, float32", labels, series, "million samples/s"))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overlap", description=__doc__)
    parser.add_argument("--peer", choices=["scipy"], help="measure SciPy beside ours")
    parser.add_argument("--threads", type=int, default=config.num_threads())
    parser.add_argument("--seconds", type=float, default=0.4, help="for each size")
    options = parser.parse_args()
    config.set_num_threads(options.threads)
    rows = [measure(1 << power, taps, options) for power in SIGNALS for taps in TAPS if taps <= 1 << power]
    report.print_table(f"convolution of signals, float32, {options.threads} threads", rows)
    if options.peer:
        mean = math.exp(sum(math.log(float(row["to scipy"])) for row in rows) / len(rows))  # type: ignore[arg-type]
        print(f"to scipy: geometric mean {mean:.2f}")
    print(report.write_csv("overlap", rows))
    picture(rows)


if __name__ == "__main__":
    main()
