"""The ledger: this tree beside commit 167f872, measured in turns on one machine, in one table.

make compare DATA=DIR                                        at most 20 minutes with two processors
python benchmarks/compare.py --data DIR --only time memory

Both versions are installed from a wheel into environments of their own in build/compare, with the same
versions of all packages that both need, and each is measured by the benchmarks of its own commit. Without
`--data` only sets that come with scikit-learn or are generated count.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import os
import re
import subprocess
import sys
import threading
import tokenize
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

BEFORE = "167f872"
ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "compare"
ROWS = 3000  # most rows of the sets in the tables of quality
# in Python at the beginning of a line, in Cython also after its type or in an enum
CONSTANT = re.compile(r"^(?:cdef (?:double |enum: )|    )?[A-Z][A-Z0-9_]{2,}\b[^=(\n]*=[^=]", re.M)
Figures = dict[str, float]
Sets = list[tuple[str, Any, Any]]


def small_sets(data: str | None) -> Sets:
    """Return the labeled dense sets of at most 3000 rows, or generated ones."""
    from benchmarks.choice import real_sets
    from benchmarks.generators import generated

    found = real_sets(data) if data else generated(0)
    return [(name, X, y) for name, X, y in found if len(y) <= ROWS]


def papers(data: str | None) -> Iterator[tuple[str, Figures]]:
    """The tables of `papers.py` on the smaller sets; errors are negative, so that more is better."""
    from benchmarks import papers as tables
    from benchmarks.datasets import load, pair, problem
    from ravine import MaximinSeparation, MinimumDensity, metrics

    if data:
        mean = tables.mdh(data)[-2]
        yield "mdh", {key: mean[key] for key in ("success_ratio", "v_measure")}
        tables.TEN = tuple(name for name in tables.TEN if len(load(name, data)[1]) <= ROWS)  # type: ignore[assignment]
        mean = tables.clusters(data)[-1]
        yield "clusters", {key: mean[key] for key in ("MinimumDensity", "PDDP", "dePDDP")}
        tables.SEEDS = 2
        means = [row for row in tables.scpp(data) if row["dataset"] == "mean"]
        yield "scpp", {row["method"]: row["v_measure"] for row in means}
        kernel = [metrics.binary_v_measure(y, MinimumDensity(2, kernel="rbf").fit(X).labels_)
                  for _, X, y in small_sets(data)]  # fmt: skip
        yield "kmdh", {"KMDH V": float(np.mean(kernel))}
        for solver in ("mpm", "gep", "eig"):
            model = MaximinSeparation(2, solver=solver, standardize=False)
            problems = [problem(name, data) for name in ("breast_w_683", "ionosphere", "letter_ab", "pima")]
            errors = [metrics.clustering_error(y, model.fit(X).labels_) for X, y in problems]
            yield f"mspc {solver}", {"accuracy": 1.0 - float(np.mean(errors))}
    digits = load("digits")
    for a, b in ((3, 8), (1, 7), (2, 7), (8, 9)):
        yield f"cpmmc {a}-{b}", margin_accuracies(*pair(*digits, a, b))


def margin_accuracies(X: Any, y: Any) -> Figures:
    """Return the accuracies of maximum margin: by the classes best of four settings, and by the defaults."""
    from ravine import MaximumMargin, metrics

    def fit(**parameters: Any) -> Any:
        return MaximumMargin(2, **{"standardize": False, "max_iter": 200, **parameters}).fit(X)

    def accuracy(model: Any) -> float:
        return 1.0 - float(metrics.clustering_error(y, model.labels_))

    default = fit()
    C = default.tree_.splits[0].facts["C"]
    tuned = [
        fit(C=C * factor, balance=balance, n_init=1) for factor in (1.0, 10.0) for balance in (0.03, 0.1)
    ]
    return {
        "tuned": max(map(accuracy, tuned)),
        "default": accuracy(default),
        "standardized": accuracy(fit(standardize="auto")),
    }


def choice(data: str | None) -> Iterator[tuple[str, Figures]]:
    """AutoCluster and its candidates at the true number of clusters, and "auto" (V-measure, means)."""
    from ravine import AutoCluster, MinimumDensity, SpectralConnectivity, metrics

    models: dict[str, Callable[[int], Any]] = {
        "AutoCluster": lambda k: AutoCluster(k),
        "MinimumDensity": lambda k: MinimumDensity(k),
        "MinimumDensity diffusion": lambda k: MinimumDensity(k, kernel="diffusion"),
        "SpectralConnectivity": lambda k: SpectralConnectivity(k),
        "MinimumDensity auto": lambda k: MinimumDensity(),
        "SpectralConnectivity auto": lambda k: SpectralConnectivity(),
    }
    sets = small_sets(data)
    for name, make in models.items():
        scores = [metrics.v_measure(y, make(len(np.unique(y))).fit(X).labels_) for _, X, y in sets]
        yield name, {"V": float(np.mean(scores))}


def one_cluster(data: str | None) -> Iterator[tuple[str, Figures]]:
    """Tables and clouds without clusters: the share that comes out as one cluster."""
    from ravine import MinimumDensity

    # `auto` at commit 167f872
    here = next(name for name in ("number", "auto") if (Path("benchmarks") / f"{name}.py").exists())
    numbers = import_module(f"benchmarks.{here}")

    shapes = {name: lambda n, rng, draw=draw: draw(n, 10, rng) for name, draw in numbers.SHAPES.items()}
    for title, some in (("tables", numbers.TABLES), ("clouds", shapes)):
        found = [
            MinimumDensity("auto").fit(draw(500, np.random.default_rng([seed, 500]))).n_clusters_ == 1
            for draw in some.values()
            for seed in range(5)
        ]
        yield title, {"one cluster": float(np.mean(found))}


TREES = ("1000x20,10", "10000x20,10", "100000x20,10", "20000x300,10")


def seconds(data: str | None) -> Iterator[tuple[str, Figures]]:
    """Processor seconds of whole trees and of "auto", one thread, the least of three runs."""
    import ravine
    from benchmarks.datasets import load
    from benchmarks.speed import gaussians, processor_seconds

    def least(model: Any, X: Any, repeats: int = 3) -> float:
        return min(processor_seconds(lambda: model.fit(X))[0] for _ in range(repeats))

    for shape in TREES:
        size, K = shape.split(",")
        n, d = map(int, size.split("x"))
        X, _ = gaussians(n, d, int(K))
        for name in ("MinimumDensity", "SpectralConnectivity", "MaximinSeparation", "MaximumMargin"):
            model = getattr(ravine, name)(int(K), n_jobs=1)
            model.fit(X[:500])  # loads modules (and compiles, at commit 167f872), which is not measured
            yield f"{name} {shape}", {"s": least(model, X)}
    digits = load("digits")[0]
    yield "MinimumDensity() digits", {"s": least(ravine.MinimumDensity(n_jobs=1), digits)}
    yield "AutoCluster() digits", {"s": least(ravine.AutoCluster(n_jobs=1), digits, 1)}
    if data:
        yield (
            "MinimumDensity() news_rec",
            {"s": least(ravine.MinimumDensity(n_jobs=1), load("news_rec", data)[0], 1)},
        )


def memory(data: str | None) -> Iterator[tuple[str, Figures]]:
    """The peak resident size that a fit adds."""
    from benchmarks.speed import MEMORY, in_process

    yield "500 000 x 50", {"MB": float(in_process(MEMORY.replace("1_000_000", "500_000")).split()[-3])}


def size(data: str | None) -> Iterator[tuple[str, Figures]]:
    """The installation, the code and what a user may set."""
    import inspect

    import ravine

    package = Path(ravine.__file__).parent
    site = sum(path.stat().st_size for path in package.parent.rglob("*") if path.is_file())
    texts = [
        path.read_text() for path in Path("src").rglob("*") if path.suffix in (".py", ".pyx", ".pxd", ".h")
    ]
    bodies = sorted(length for text in texts for length in body_lines(text))
    yield "installation", {"MB": site / 1e6}
    yield "code", {"files": len(texts), "lines": sum(map(code_lines, texts))}
    yield "constants", {"n": sum(len(CONSTANT.findall(text)) for text in texts)}
    yield "longest file", {"lines": max(len(text.splitlines()) for text in texts)}
    yield "functions", {"p90 of lines": bodies[-1 - len(bodies) // 10], "longest": bodies[-1]}
    yield "one fit of MinimumDensity(2)", {"files": len(files_of_fit())}
    classes = [getattr(ravine, name) for name in ravine.__all__ if hasattr(getattr(ravine, name), "fit")]
    for some in classes:
        yield f"parameters of {some.__name__}", {"n": len(inspect.signature(some).parameters)}


def files_of_fit() -> set[str]:
    """Return the Python files of the package of which a function runs during one split of 1000 x 20."""
    import ravine

    package, found = Path(ravine.__file__).parent, set[str]()

    def note(frame: Any, event: str, argument: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and frame.f_code.co_name != "<module>" and path.is_relative_to(package):
            found.add(path.relative_to(package).as_posix())

    X = np.random.default_rng(0).standard_normal((1000, 20))
    X[:500, 0] += 6.0
    model = ravine.MinimumDensity(2)
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        model.fit(X)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return found


def body_lines(text: str) -> Iterator[int]:
    """Yield the number of lines of every function's body, without its docstring; Cython has none here.

    >>> list(body_lines('def f(x):\\n    "Doc."\\n    y = x\\n    return y\\n'))
    [2]
    """
    try:
        tree = ast.parse(text)
    except SyntaxError:  # Cython and C
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            if body:
                yield (body[-1].end_lineno or 0) - body[0].lineno + 1


def code_lines(text: str) -> int:
    """Return the number of lines without docstrings, comments and blanks.

    >>> code_lines('"Doc."\\n\\n# why\\nx = 1  # what\\n')
    1
    """
    skip = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, 0)
    try:
        tree = ast.parse(text)
    except SyntaxError:  # Cython and C
        bare = re.sub(r'^\s*(""".*?"""|/\*.*?\*/)', "", text, flags=re.M | re.S)
        return sum(bool(line.strip()) and not line.strip().startswith("#") for line in bare.splitlines())
    lines = {
        line
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in skip
        for line in range(token.start[0], token.end[0] + 1)
    }
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and node.value.value is not None
        ):
            lines -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


SECTIONS = {
    "papers": papers,
    "choice": choice,
    "one_cluster": one_cluster,
    "time": seconds,
    "memory": memory,
    "size": size,
}
QUALITY = ("papers", "choice", "one_cluster")


def run(*words: str | Path, **more: Any) -> str:
    """Run a command, and return what it prints."""
    done = subprocess.run([*map(str, words)], check=True, stdout=subprocess.PIPE, text=True, **more)
    return str(done.stdout)


def install(name: str, tree: Path, again: bool) -> Path:
    """Install a source tree into an environment of its own; return its interpreter."""
    home = FOLDER / name
    python = home / "bin" / "python"
    if again or not (home / "installed").exists():
        run(sys.executable, "-m", "venv", "--clear", home)
        constraints = FOLDER / "constraints.txt"
        same: list[str | Path] = ["-c", constraints] if constraints.exists() else []
        run(python, "-m", "pip", "install", "--quiet", *same, tree)
        if not same:
            names = [line for line in run(python, "-m", "pip", "freeze").splitlines() if "ravine" not in line]
            constraints.write_text("\n".join(names) + "\n")
        run(python, "-m", "pip", "uninstall", "--quiet", "--yes", "pip", "setuptools")
        (home / "installed").touch()
    return python


def measure(python: Path, tree: Path, section: str, data: str | None) -> dict[str, float]:
    """Return the figures of a section, measured in a fresh process of one version."""
    words: list[str | Path] = [python, __file__, "--measure", section, *(["--data", data] if data else [])]
    environment = {**os.environ, "PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    found: dict[str, float] = json.loads(run(*words, cwd=tree, env=environment).splitlines()[-1])
    return found


def report(section: str, before: dict[str, float], now: dict[str, float]) -> list[str]:
    """Return the lines of the table of one section, with its mean loss or ratio."""
    lines = []
    for key in dict.fromkeys([*before, *now]):
        a, b = before.get(key, np.nan), now.get(key, np.nan)
        change = f"{b - a:+.4f}" if section in QUALITY else f"{b / a:.3f} times" if a else ""
        lines.append(f"| {section} | {key} | {a:.6g} | {b:.6g} | {change} |")
    both = [(before[key], now[key]) for key in before if key in now]
    if section in QUALITY:
        lines.append(f"| {section} | **mean** | | | **{np.mean([b - a for a, b in both]):+.4f}** |")
    elif section in ("time", "memory"):
        ratio = float(np.exp(np.mean([np.log(b / a) for a, b in both])))
        lines.append(f"| {section} | **geometric mean** | | | **{ratio:.3f} times** |")
    return lines


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", help="directory of npz files (X, y)")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    parser.add_argument("--rounds", type=int, default=2, help="turns of the timed sections; the least counts")
    parser.add_argument("--measure", choices=SECTIONS, help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    data = str(Path(given.data).resolve()) if given.data else None
    if given.measure:
        rows = SECTIONS[given.measure](data)
        print(json.dumps({f"{name}, {key}": float(x) for name, row in rows for key, x in row.items()}))
        return 0
    tree = FOLDER / "tree"
    if not tree.exists():
        tree.mkdir(parents=True)
        archive = subprocess.run(["git", "archive", BEFORE], cwd=ROOT, check=True, stdout=subprocess.PIPE)
        subprocess.run(["tar", "-x", "-C", str(tree)], check=True, input=archive.stdout)
    versions = [(install("before", tree, False), tree), (install("now", ROOT, True), ROOT)]
    print(f"| section | figure | {BEFORE} | this tree | change |\n|" + "---|" * 5)
    for section in given.only:
        found: list[dict[str, float]] = [{}, {}]
        for _ in range(given.rounds if section == "time" else 1):
            for figures, (python, source) in zip(found, versions, strict=True):
                for key, value in measure(python, source, section, data).items():
                    figures[key] = min(value, figures.get(key, np.inf))
        print("\n".join(report(section, *found)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
