"""Text and counts: diffusion by angle beside the linear methods, on generated topics and on news.

python benchmarks/text.py --seeds 4
python benchmarks/text.py --seeds 4 --data DIR          # with news_rec of the directory
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

if not __package__:  # run as a script, from anywhere
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.datasets import load
from benchmarks.generators import topics
from ravine import MinimumDensity, SpectralConnectivity, metrics

METHODS: dict[str, Any] = {"MinimumDensity": MinimumDensity, "SpectralConnectivity": SpectralConnectivity}


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--data", help="directory of npz files, with news_rec")
    arguments = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    sets = [one for seed in range(arguments.seeds) for one in topics(seed)]
    sets += [("news_rec", *load("news_rec", arguments.data))] if arguments.data else []
    table = []
    for name, X, y in sets:
        began = time.process_time()
        k = len(np.unique(y))
        found = [
            metrics.v_measure(y, make(k, kernel=kernel).fit(X).labels_)
            for make in METHODS.values()
            for kernel in (None, "diffusion")
        ]
        table.append(found)
        figures = "  ".join(f"{v:.3f}" for v in found)
        print(f"{name:12} {figures}  {time.process_time() - began:6.1f} s", flush=True)
    ways = [f"{method}{kernel}" for method in METHODS for kernel in ("", " diffusion")]
    for way, v in zip(ways, np.mean(table, axis=0), strict=True):
        print(f"{way:34} {v:.4f}")


if __name__ == "__main__":
    main()
