"""Time and memory beside the peers', in one run on one machine.

python benchmarks/speed.py                 all sections
python benchmarks/speed.py split memory    some of them
python benchmarks/speed.py trees --shapes 1000x20,10 20000x300,10 --methods MaximumMargin   a part of a table

`peers` needs `make .venv-peers`.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
ROOT = str(Path(__file__).resolve().parent.parent)
if not __package__:  # run as a script, from anywhere
    sys.path.insert(0, ROOT)


TREE_SHAPES = ("1000x20,10", "10000x20,10", "100000x20,10", "1000000x20,10", "20000x300,10", "1000000x50,2")
TREE_METHODS = ("MinimumDensity", "SpectralConnectivity", "MaximinSeparation", "MaximumMargin")


def gaussians(n: int, d: int, k: int, seed: int = 0) -> tuple[Array, Array]:
    """Rows of k unit Gaussians whose centers are drawn with sd 1.2 a coordinate."""
    rng = np.random.default_rng(seed)
    centers = 1.2 * rng.standard_normal((k, d))
    labels = rng.integers(k, size=n)
    X = rng.standard_normal((n, d))
    for j in range(k):
        X[labels == j] += centers[j]
    return X, labels


def four_gaussians(n: int, d: int, seed: int = 0) -> tuple[Array, Array]:
    """Rows of four unit Gaussians."""
    return gaussians(n, d, 4, seed)


def best_of(repeats: int, run: Callable[[], Any]) -> tuple[float, Any]:
    """Return the least time of several runs, and the last result."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        result = run()
        times.append(time.perf_counter() - began)
    return min(times), result


def split() -> None:
    """One split of 1 000 000 x 50 beside KMeans(2, n_init=1), with the same number of threads."""
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    from ravine import MinimumDensity, metrics

    X, y = four_gaussians(1_000_000, 50)
    print("| threads | ravine s | KMeans s | ratio | passes | success ratio | status |\n|" + "---|" * 7)
    for threads in (1, 2):
        ours = theirs = np.inf
        for _ in range(5):  # turn by turn, so that both see the same machine
            seconds, model = best_of(1, lambda t=threads: MinimumDensity(2, n_jobs=t).fit(X))  # type: ignore[misc]
            ours = min(ours, seconds)
            with threadpool_limits(threads):
                seconds, _ = best_of(1, lambda: KMeans(2, n_init=1, random_state=0).fit(X))
            theirs = min(theirs, seconds)
        ratio = metrics.success_ratio(y, model.labels_)
        status = model.tree_.splits[0].status
        print(
            f"| {threads} | {ours:.2f} | {theirs:.2f} | {ours / theirs:.2f} | {model.n_passes_:.1f} "
            f"| {ratio:.3f} | {status} |"
        )


def processor_seconds(run: Callable[[], Any]) -> tuple[float, Any]:
    """Return the processor time of one run in all threads, and its result."""
    began = time.process_time()
    result = run()
    return time.process_time() - began, result


def trees(shapes: list[str], methods: list[str], repeats: int) -> None:
    """Whole trees beside KMeans(K, n_init=1, random_state=0): medians, processor time, one thread.

    The rows are K unit Gaussians (four for K = 2). All models are fitted turn by turn, so that they see the
    same machine.
    """
    import scipy
    import sklearn
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    import ravine

    modules = (ravine, np, scipy, sklearn)
    print(", ".join(f"{module.__name__} {module.__version__}" for module in modules))
    print(f"medians of {repeats}: seconds (ratio to KMeans, passes, V-measure)\n")
    print("| rows x columns, K | KMeans | " + " | ".join(methods) + " |\n|" + "---|" * (2 + len(methods)))
    for shape in shapes:
        size, K = shape.split(",")
        n, d = map(int, size.split("x"))
        X, y = gaussians(n, d, 4 if int(K) == 2 else int(K))
        models = [KMeans(int(K), n_init=1, random_state=0)]
        models += [getattr(ravine, name)(int(K), n_jobs=1) for name in methods]
        seconds = np.empty((repeats, len(models)))
        with threadpool_limits(1):
            for model in models:
                model.fit(X[:500])  # loads modules, which is not measured
            for times in seconds:
                for i, model in enumerate(models):
                    times[i], _ = processor_seconds(lambda m=model, X=X: m.fit(X))  # type: ignore[misc]
        first, *others = np.median(seconds, axis=0)
        score = ravine.metrics.v_measure(y, models[0].labels_)
        cells = [f"{n} x {d}, {K}", f"{first:.4f} ({score:.3f})"]
        for model, median in zip(models[1:], others, strict=True):
            score = ravine.metrics.v_measure(y, model.labels_)
            cells.append(f"{median:.4f} ({median / first:.2f}, {model.n_passes_:.0f}, {score:.3f})")
        print("| " + " | ".join(cells) + " |", flush=True)


def predict() -> None:
    """Assign 1 000 000 x 50 rows to 32 leaves, beside BisectingKMeans, turn by turn."""
    from sklearn.cluster import BisectingKMeans
    from threadpoolctl import threadpool_limits

    from ravine import MinimumDensity, PrincipalDirection

    X, _ = four_gaussians(1_000_000, 50)
    few = X[:20_000]
    print("| method | leaves | depth | 1 thread, s | ratio |\n|---|---|---|---|---|")
    with threadpool_limits(1):
        peer = BisectingKMeans(32, random_state=0).fit(few)
        models = [MinimumDensity(32).fit(few), PrincipalDirection(32).fit(few)]
        best = [np.inf] * 3
        for _ in range(3):
            for i, model in enumerate([peer, *models]):
                best[i] = min(best[i], best_of(1, lambda m=model: m.predict(X))[0])  # type: ignore[misc]
    print(f"| BisectingKMeans | 32 | | {best[0]:.2f} | 1 |")
    for model, seconds in zip(models, best[1:], strict=True):
        name, tree = type(model).__name__, model.tree_
        ratio = seconds / best[0]
        print(f"| {name} | {tree.n_leaves} | {tree.depth.max()} | {seconds:.2f} | {ratio:.2f} |")


def margin() -> None:
    """Maximum margin: growth with the rows, beside LinearSVC on the labels found."""
    from sklearn.svm import LinearSVC
    from threadpoolctl import threadpool_limits

    from ravine import MaximumMargin

    X, _ = four_gaussians(1_000_000, 50)
    print("| rows | features | s | passes |\n|---|---|---|---|")
    with threadpool_limits(1):
        for n in (10_000, 100_000, 1_000_000):
            seconds, model = best_of(3, lambda n=n: MaximumMargin(2, n_jobs=1).fit(X[:n]))  # type: ignore[misc]
            print(f"| {n} | 50 | {seconds:.2f} | {model.n_passes_:.1f} |", flush=True)
        theirs, _ = best_of(1, lambda: LinearSVC(dual=False).fit(X, model.labels_))
    print(f"\nLinearSVC {theirs:.2f} s, ratio {seconds / theirs:.2f}")


def labels() -> None:
    """MinimumDensityClassifier on 100 000 x 50 with 20 labels, beside MinimumDensity, turn by turn."""
    from threadpoolctl import threadpool_limits

    from ravine import MinimumDensity, MinimumDensityClassifier

    X, heap = four_gaussians(100_000, 50)
    y = heap % 2
    known = np.where(np.arange(len(y)) < 20, y, -1)
    times: dict[str, list[float]] = {"MinimumDensity": [], "MinimumDensityClassifier": []}
    with threadpool_limits(1):
        MinimumDensity(2).fit(X[:1000])
        for _ in range(9):
            seconds, clusters = best_of(1, lambda: MinimumDensity(2).fit(X))
            times["MinimumDensity"].append(seconds)
            seconds, model = best_of(1, lambda: MinimumDensityClassifier().fit(X, known))
            times["MinimumDensityClassifier"].append(seconds)
    ratios = np.divide(times["MinimumDensityClassifier"], times["MinimumDensity"])
    print("| 100 000 x 50, one thread | least s | passes |\n|---|---|---|")
    for (name, seconds_of), fitted in zip(times.items(), (clusters, model), strict=True):
        print(f"| {name} | {min(seconds_of):.3f} | {fitted.n_passes_:.1f} |")
    min_weight = min(times["MinimumDensityClassifier"]) / min(times["MinimumDensity"])
    print(
        f"\nratio of the least times {min_weight:.2f}; of each pair, median {np.median(ratios):.2f}", end=" "
    )
    print(f"({ratios.min():.2f} to {ratios.max():.2f}); {100 * (model.predict(X) == y).mean():.2f} % right")


MEMORY = """
from ravine import MinimumDensity
from benchmarks.speed import four_gaussians
X, _ = four_gaussians(1_000_000, 50)
MinimumDensity(2).fit(X[:1000].copy())
def status(name):
    return next(int(line.split()[1]) / 1024 for line in open('/proc/self/status') if line.startswith(name))
open('/proc/self/clear_refs', 'w').write('5')  # the peak starts again from here
before = status('VmRSS')
MinimumDensity(2).fit(X)
peak = status('VmHWM')
print(f"resident before {before:.0f} MB, peak during the fit {peak:.0f} MB: {peak - before:.0f} MB more")
"""

IMPORTS = """
import time
import sklearn.cluster
began = time.perf_counter()
from ravine import MinimumDensity
imported = time.perf_counter()
from sklearn.datasets import load_iris
X = load_iris().data
times = [time.perf_counter()]
for _ in range(2):
    MinimumDensity(2).fit(X)
    times.append(time.perf_counter())
first, second = times[1] - times[0], times[2] - times[1]
print(f"import adds {imported - began:.3f} s; first fit {first:.3f} s, second {second:.3f} s")
"""


def in_process(code: str, **environment: str) -> str:
    """Run code in a fresh process."""
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {ROOT!r})\n{code}"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **environment},
    )
    return done.stdout.strip()


def memory() -> None:
    """The rise of the peak resident size by a fit of 1 000 000 x 50 after one small fit."""
    print(in_process(MEMORY))


def imports() -> None:
    """What importing adds, and the first and second fit of a process; also where nothing can be written."""
    package = Path(ROOT) / "src" / "ravine"
    compileall.compile_dir(package, quiet=1)  # byte code, which pip writes as well
    print(in_process(IMPORTS))
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(shutil.copytree(package, Path(folder) / "ravine"))
        files = sorted(copy.rglob("*"))
        folders = [Path(folder), copy, *(path for path in files if path.is_dir())]
        for path in folders:
            path.chmod(0o555)
        print(f"read-only: {in_process(IMPORTS, PYTHONPATH=folder, HOME=folder)}")
        assert sorted(copy.rglob("*")) == files  # root may write anywhere
        for path in folders:
            path.chmod(0o755)


PEER = """
import json, sys, time, numpy as np
from HiPart.clustering import MDH
X = np.load(sys.argv[1])
first, whole = [], []
search = MDH.calculate_node_data
def timed(self, *args):
    began = time.perf_counter()
    found = search(self, *args)
    calls.append(time.perf_counter() - began)
    return found
MDH.calculate_node_data = timed
for _ in range(2):
    calls = []
    began = time.perf_counter()
    labels = MDH(max_clusters_number=2, random_state=0).fit_predict(X)
    whole.append(time.perf_counter() - began)
    first.append(calls[0])
labels = np.asarray(labels).astype(int).tolist()
print(json.dumps({'first': min(first), 'whole': min(whole), 'labels': labels}))
"""


def peers() -> None:
    """One split of 5000 x 20 beside HiPart's MDH, in an environment of its own."""
    from ravine import MinimumDensity, metrics

    X, y = four_gaussians(5000, 20)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    ours, model = best_of(40, lambda: MinimumDensity(2).fit(X))
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/X.npy", X)
        done = subprocess.run(
            [f"{ROOT}/.venv-peers/bin/python", "-c", PEER, f"{folder}/X.npy"],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        )
    peer = json.loads(done.stdout)
    ratio = metrics.success_ratio(y, peer["labels"])
    print("| method | s | times ours | success ratio |\n|---|---|---|---|")
    print(f"| ravine MinimumDensity | {ours:.4f} | 1 | {metrics.success_ratio(y, model.labels_):.3f} |")
    print(f"| HiPart MDH, first split | {peer['first']:.2f} | {peer['first'] / ours:.0f} | {ratio:.3f} |")
    print(f"| HiPart MDH, fit to 2 | {peer['whole']:.2f} | {peer['whole'] / ours:.0f} | {ratio:.3f} |")


SECTIONS: dict[str, Callable[..., None]] = {
    "split": split,
    "trees": trees,
    "margin": margin,
    "labels": labels,
    "predict": predict,
    "memory": memory,
    "imports": imports,
    "peers": peers,
}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument(
        "--shapes", nargs="+", default=TREE_SHAPES, help="rows x columns, clusters of `trees`"
    )
    parser.add_argument("--methods", nargs="+", default=TREE_METHODS, help="estimators of `trees`")
    parser.add_argument("--repeats", type=int, default=5, help="runs of which `trees` prints the median")
    arguments = parser.parse_args(argv)
    of_trees = arguments.shapes, arguments.methods, arguments.repeats
    warnings.simplefilter("ignore")
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    for section in arguments.sections or SECTIONS:
        print(f"\n## {section}\n")
        SECTIONS[section](*(of_trees if section == "trees" else ()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
