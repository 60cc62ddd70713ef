"""Time and memory beside the peers', in one run on one machine.

python benchmarks/speed.py                 all sections
python benchmarks/speed.py split small     some of them
python benchmarks/speed.py separation --data DIR   with the papers' data sets as well
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
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
ROOT = str(Path(__file__).resolve().parent.parent)
if not __package__:  # run as a script, from anywhere
    sys.path.insert(0, ROOT)


TREE_SHAPES = ("1000x20,10", "10000x20,10", "100000x20,10", "1000000x20,10", "20000x300,10", "1000000x50,2")
THREADED_ROWS = 100_000  # least rows of the shapes that `threads` tries
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


def threads(shapes: list[str], methods: list[str], repeats: int) -> None:
    """Whole trees with one and with two threads, turn by turn: the least wall time, and the ratio."""
    import ravine

    print(f"least of {repeats}: seconds with one and with two threads, ratio\n")
    print("| rows x columns, K | " + " | ".join(methods) + " |\n|" + "---|" * (1 + len(methods)))
    for shape in shapes:
        size, K = shape.split(",")
        n, d = map(int, size.split("x"))
        if n < THREADED_ROWS:
            continue
        X, _ = gaussians(n, d, 4 if int(K) == 2 else int(K))
        cells = [f"{n} x {d}, {K}"]
        for name in methods:
            models = [getattr(ravine, name)(int(K), n_jobs=k) for k in (1, 2)]
            least = [np.inf, np.inf]
            for _ in range(repeats):
                for k, model in enumerate(models):
                    model.fit(X[:500])  # loads modules, which is not measured
                    least[k] = min(least[k], best_of(1, lambda m=model, X=X: m.fit(X))[0])  # type: ignore[misc]
            assert (models[0].labels_ == models[1].labels_).all()
            cells.append(f"{least[0]:.3f}, {least[1]:.3f}, {least[0] / least[1]:.2f}")
        print("| " + " | ".join(cells) + " |", flush=True)


def growth() -> None:
    """Time by rows and by features: linear in both."""
    from ravine import MinimumDensity

    print("| rows | features | s | microseconds a row and feature | passes |\n|---|---|---|---|---|")
    for n, d in [
        (125_000, 50),
        (250_000, 50),
        (500_000, 50),
        (1_000_000, 50),
        (1_000_000, 25),
        (500_000, 100),
    ]:
        X, _ = four_gaussians(n, d)
        seconds, model = best_of(3, lambda: MinimumDensity(2).fit(X))  # noqa: B023
        print(f"| {n} | {d} | {seconds:.2f} | {seconds / n / d * 1e6:.4f} | {model.n_passes_:.1f} |")


def small() -> None:
    """One split of 1000 x 50 after the first call."""
    from ravine import MinimumDensity, metrics

    X, y = four_gaussians(1000, 50)
    seconds, model = best_of(20, lambda: MinimumDensity(2).fit(X))
    print(f"1000 x 50: {seconds:.4f} s, success ratio {metrics.success_ratio(y, model.labels_):.3f}")


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


def slope(sizes: list[int], seconds: list[float]) -> float:
    """Return the slope of a line through the points on log-log axes."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def connectivity(data: str | None) -> None:
    """Spectral connectivity beside minimum density, the path form beside the dense eigenproblem."""
    from scipy.linalg import eigh

    from ravine import MinimumDensity, SpectralConnectivity, metrics
    from ravine.data.memory import MemoryRows
    from ravine.data.node import Node, measure
    from ravine.data.query import run
    from ravine.index.connectivity import ConnectivityIndex
    from ravine.index.density import MinimumDensityIndex
    from ravine.optimize.pursuit import evaluate

    n, d = 1_000_000, 50
    X, y = four_gaussians(n, d)
    rows = MemoryRows(X)
    node = replace(run(measure(Node(rows))), deviation=2.0)
    direction = np.eye(d)[0]
    indices = {
        "minimum density": MinimumDensityIndex(0.9 * 2.0 * n**-0.2, 0.9),
        "connectivity, normalized": ConnectivityIndex(0.5 * 2.0 * n**-0.2, 1.5),
        "connectivity, standard": ConnectivityIndex(0.5 * 2.0 * n**-0.2, 1.5, normalized=False),
    }
    print("| one evaluation, 1 000 000 x 50 | s | ratio |\n|---|---|---|")
    times: dict[str, float] = {}
    for _ in range(4):  # turn by turn, so that all see the same machine
        for name, index in indices.items():
            seconds, _found = best_of(1, lambda i=index: run(evaluate(node, i, direction)))  # type: ignore[misc]
            times[name] = min(seconds, times.get(name, np.inf))
    for name, seconds in times.items():
        print(f"| {name} | {seconds:.3f} | {seconds / times['minimum density']:.2f} |")

    print("\n| one split, 1 000 000 x 50, one thread | s | ratio | passes | success ratio |\n|" + "---|" * 5)
    models = {
        "MinimumDensity": MinimumDensity(2, n_jobs=1),
        "SpectralConnectivity": SpectralConnectivity(2, n_jobs=1),
        "SpectralConnectivity, standard": SpectralConnectivity(2, laplacian="standard", n_jobs=1),
    }
    times = {}
    for _ in range(3):
        for name, model in models.items():
            times[name] = min(best_of(1, lambda m=model: m.fit(X))[0], times.get(name, np.inf))  # type: ignore[misc]
    for name, model in models.items():
        ratio = times[name] / times["MinimumDensity"]
        success = metrics.success_ratio(y, model.labels_)
        print(f"| {name} | {times[name]:.2f} | {ratio:.2f} | {model.n_passes_:.1f} | {success:.3f} |")

    points = np.sort(np.random.default_rng(0).standard_normal(3000))
    from ravine.index.connectivity_loops import connectivity

    slope = np.empty(3000)

    def path() -> Any:
        return connectivity(points, np.ones(3000), 0.1, True, slope)

    def dense() -> Any:
        K = np.exp(-np.abs(points[:, None] - points[None, :]) / 0.1)
        degree = K.sum(axis=1)
        return eigh(np.eye(3000) - K / np.sqrt(np.outer(degree, degree)))[0][1]

    path()
    quick, (log_theta, _) = best_of(5, path)
    slow, exact = best_of(1, dense)
    found = 1.0 / (1.0 + np.exp(-log_theta))
    print(
        f"\n3000 points: path form {1e3 * quick:.2f} ms, dense {slow:.2f} s, {slow / quick:.0f} times; ",
        end="",
    )
    print(f"relative difference {abs(found - exact) / exact:.1e}")
    if data is not None:
        from benchmarks.datasets import load

        digits, classes = load("optdigits", data)
        print("\n| optdigits to 10 clusters | s | v_measure |\n|---|---|---|")
        for projection in ("univariate", "orthogonal", "correlated"):
            model = SpectralConnectivity(10, projection=projection)
            seconds, _ = best_of(2, lambda m=model: m.fit(digits))  # type: ignore[misc]
            print(f"| {projection} | {seconds:.1f} | {metrics.v_measure(classes, model.labels_):.3f} |")


def margin() -> None:
    """Maximum margin: growth with the rows and the stored entries, beside LinearSVC on the labels found."""
    from scipy import sparse
    from sklearn.svm import LinearSVC
    from threadpoolctl import threadpool_limits

    from ravine import MaximumMargin

    sizes = [10_000, 31_623, 100_000, 316_228, 1_000_000]
    print("| rows | features | stored | s | passes | CCCP steps a round |\n|---|---|---|---|---|---|")

    def measure(X: Any, stored: int, repeats: int) -> tuple[float, Any]:
        seconds, model = best_of(repeats, lambda: MaximumMargin(2).fit(X))
        split, (n, d) = model.tree_.splits[0], X.shape
        steps = split.n_iter / split.facts["rounds"]
        print(
            f"| {n} | {d} | {stored} | {seconds:.2f} | {model.n_passes_:.1f} | {steps:.1f} |",
            flush=True,
        )
        return seconds, model

    times = []
    X, _ = four_gaussians(sizes[-1], 50)
    for n in sizes:
        seconds, model = measure(X[:n], 50 * n, 3)
        times.append(seconds)
    print(f"\nslope over the rows, dense: {slope(sizes, times):.2f}")
    with threadpool_limits(1):
        theirs, _ = best_of(1, lambda: LinearSVC(dual=False).fit(X, model.labels_))
    ours, _ = best_of(1, lambda: MaximumMargin(2).fit(X))
    print(f"1 000 000 x 50: {ours:.2f} s, LinearSVC {theirs:.2f} s, ratio {ours / theirs:.2f}\n", flush=True)
    rng = np.random.default_rng(0)
    times = []
    for n in sizes:  # 20 entries a row of 300 columns; half the rows prefer the first columns, half the last
        columns = (300 * rng.random((n, 20)) ** 2).astype(np.int64)
        columns[1::2] = 299 - columns[1::2]
        places = np.repeat(np.arange(n), 20), columns.ravel()
        thin = sparse.csr_matrix((np.ones(20 * n), places), shape=(n, 300))
        times.append(measure(thin, thin.nnz, 1)[0])
    print(f"\nslope over the stored entries, sparse: {slope(sizes, times):.2f}")


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


def separation(directory: str | None = None) -> None:
    """Maximin separation after its start, beside the k-means start of the paper (Table 3), one thread."""
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    from benchmarks.datasets import problem
    from ravine import MaximinSeparation

    def run(X: Array) -> None:
        with threadpool_limits(1):
            seconds, peer = best_of(1, lambda: KMeans(2, n_init=10, random_state=0).fit(X))
            times = [seconds]
            for solver, init in (("mpm", peer.labels_), ("gep", peer.labels_), ("mpm", None)):
                model = MaximinSeparation(2, init=init).set_params(solver=solver)
                times.append(best_of(3, lambda m=model: m.fit(X))[0])  # type: ignore[misc]
        figures = " | ".join(f"{seconds:.2f}" for seconds in times)
        print(f"| {X.shape[0]} | {X.shape[1]} | {figures} |", flush=True)

    print("| rows | features | KMeans(2, n_init=10) s | mpm s | gep s | mpm with its own start s |")
    print("|---|---|---|---|---|---|")
    run(four_gaussians(1_000_000, 50)[0])
    if directory is not None:
        for name in ("letter_ab", "satellite_1_2", "spambase", "mnist_3_8", "mnist_1_7", "mnist_8_9"):
            run(problem(name, directory)[0])


SECTIONS: dict[str, Callable[..., None]] = {
    "split": split,
    "trees": trees,
    "threads": threads,
    "growth": growth,
    "small": small,
    "connectivity": connectivity,
    "margin": margin,
    "labels": labels,
    "predict": predict,
    "memory": memory,
    "imports": imports,
    "separation": separation,
    "peers": peers,
}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument("--data", help="directory of npz files (X, y), for `separation` and `connectivity`")
    parser.add_argument(
        "--shapes", nargs="+", default=TREE_SHAPES, help="rows x columns, clusters, for `trees`, `threads`"
    )
    parser.add_argument(
        "--methods", nargs="+", default=TREE_METHODS, help="estimators, for `trees`, `threads`"
    )
    parser.add_argument(
        "--repeats",
        type=int,
        default=5,
        help="runs of which `trees` prints the median, and `threads` the least",
    )
    arguments = parser.parse_args(argv)
    given: dict[str, tuple[Any, ...]] = {
        "separation": (arguments.data,),
        "connectivity": (arguments.data,),
        "trees": (arguments.shapes, arguments.methods, arguments.repeats),
        "threads": (arguments.shapes, arguments.methods, arguments.repeats),
    }
    warnings.simplefilter("ignore")
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    for section in arguments.sections or SECTIONS:
        print(f"\n## {section}\n")
        SECTIONS[section](*given.get(section, ()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
