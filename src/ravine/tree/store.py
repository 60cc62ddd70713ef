"""Keeping trees and models: JSON, and a file of JSON and arrays that never runs code.

A model file is a zip archive as numpy writes it (npz): `meta` holds UTF-8 JSON with the format's version, the
class, its parameters and what is not an array; the other members are arrays without pickled objects.
docs/format.md describes it.
"""

from __future__ import annotations

import io
import json
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from ravine._validate import FloatArray, InvalidInputError, InvalidModelError, RavineError
from ravine.data.feature_map import map_from_parts
from ravine.split.hyperplane import Boundary, Evidence, Hyperplane, NearestCentre, Split

if TYPE_CHECKING:
    from ravine.tree.tree import ClusterTree

FORMAT = "ravine model"
VERSION = 1
NODE_ARRAYS = ("parent", "left", "right", "weight", "order", "label")
SPLIT_NUMBERS = ("value", "quality", "gradient_norm", "cut")
EVIDENCE_NUMBERS = ("p_value", "log_depth", "null_mean", "null_deviation", "n_draws")


def to_parts(tree: ClusterTree) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a tree as JSON-able facts and as arrays; splits made and refused are stacked."""
    arrays: dict[str, Any] = {name: getattr(tree, name) for name in NODE_ARRAYS}
    known = [(node, split, 1) for node, split in enumerate(tree.splits) if split is not None]
    known += [(node, split, 0) for node, split in enumerate(tree.refused) if split is not None]
    splits = [split for _, split, _ in known]
    d = len(splits[0].direction) if splits else 0
    arrays["split_node"] = np.array([node for node, _, _ in known], dtype=np.int64)
    arrays["split_made"] = np.array([made for _, _, made in known], dtype=np.int64)
    arrays["split_weights"] = np.array([s.boundary.weights for s in splits]).reshape(len(splits), d)
    arrays["split_direction"] = np.array([s.direction for s in splits]).reshape(len(splits), d)
    arrays.update(_centres_to_arrays([s.boundary for s in splits], d))
    arrays["split_iterations"] = np.array([s.n_iter for s in splits], dtype=np.int64)
    arrays["pivot"] = splits[0].boundary.pivot if splits else np.zeros(0)
    for name in SPLIT_NUMBERS:
        arrays[f"split_{name}"] = np.array(
            [s.boundary.cut if name == "cut" else getattr(s, name) for s in splits]
        )
    for name in EVIDENCE_NUMBERS:
        arrays[f"evidence_{name}"] = np.array(
            [np.nan if s.evidence is None else getattr(s.evidence, name) for s in splits], dtype=np.float64
        )
    facts = {
        "methods": [s.method for s in splits],
        "statuses": [s.status for s in splits],
        "facts": [dict(zip(s.facts, _jsonable(list(s.facts.values())), strict=True)) for s in splits],
        "feature_names": None if tree.feature_names is None else list(tree.feature_names),
        "mapped": tree.mapped,
    }
    return facts, arrays


def _centres_to_arrays(boundaries: Sequence[Boundary], d: int) -> dict[str, Any]:
    """Return the boundaries that are not hyperplanes: directions, centres and sides, with their split.

    The centres' coordinates follow each other, because boundaries may differ in their number of directions.
    """
    several = [(i, b) for i, b in enumerate(boundaries) if isinstance(b, NearestCentre)]
    if not several:
        return {}
    return {
        "several_split": np.repeat([i for i, _ in several], [len(b.directions) for _, b in several]),
        "several_directions": np.concatenate([b.directions for _, b in several]).reshape(-1, d),
        "centre_split": np.repeat([i for i, _ in several], [len(b.centres) for _, b in several]),
        "centre_right": np.concatenate([b.right for _, b in several]).astype(np.int64),
        "centre_points": np.concatenate([b.centres.ravel() for _, b in several]),
    }


def _centres_from_arrays(arrays: Mapping[str, Any], pivot: FloatArray) -> dict[int, NearestCentre]:
    """Return the boundaries that are not hyperplanes, by their split."""
    if "several_split" not in arrays:
        return {}
    directions = np.ascontiguousarray(arrays["several_directions"], dtype=np.float64)
    points = np.ascontiguousarray(arrays["centre_points"], dtype=np.float64)
    of_direction = np.asarray(arrays["several_split"], dtype=np.int64)
    of_centre = np.asarray(arrays["centre_split"], dtype=np.int64)
    right = np.asarray(arrays["centre_right"]) != 0
    _check(directions.shape == (len(of_direction), len(pivot)), "directions of as many features")
    _check(right.shape == of_centre.shape and right.ndim == 1, "a side for every centre")
    _check(bool(np.isfinite(directions).all() and np.isfinite(points).all()), "finite centres")
    found, at = {}, 0
    for i in dict.fromkeys(of_direction.tolist()):
        mine, size = directions[of_direction == i], int((of_direction == i).sum())
        sides = right[of_centre == i]
        stop = at + size * len(sides)
        _check(stop <= len(points) and sides.any() and not sides.all(), "centres on both sides")
        found[i] = NearestCentre(mine, pivot, points[at:stop].reshape(-1, size), sides)
        at = stop
    _check(at == len(points), "a place for every centre")
    return found


def from_parts(facts: Mapping[str, Any], arrays: Mapping[str, Any]) -> ClusterTree:
    """Return the tree, after checking that the parts fit together."""
    from ravine.tree.tree import ClusterTree

    whole: dict[str, Any] = {
        name: np.ascontiguousarray(arrays[name], dtype=np.float64 if name == "weight" else np.int64)
        for name in NODE_ARRAYS
    }
    n = len(whole["parent"])
    _check(n > 0 and all(array.shape == (n,) for array in whole.values()), "node arrays of one length")
    _check_links(whole["parent"], whole["left"], whole["right"])
    made: list[Split | None] = [None] * n
    refused: list[Split | None] = [None] * n
    for i, split in enumerate(_splits(facts, arrays)):
        node = int(arrays["split_node"][i])
        _check(0 <= node < n, "splits of nodes that are there")
        (made if arrays["split_made"][i] else refused)[node] = split
    leaf = whole["left"] < 0
    _check(
        all((split is None) == bool(leaf[i]) for i, split in enumerate(made)), "a split for every inner node"
    )
    labels = whole["label"]
    _check(bool((labels[leaf] >= 0).all() and (labels[leaf] < n).all()), "a label for every leaf")
    _check(bool((whole["order"][~leaf] >= 0).all()), "an order for every split")
    names = facts["feature_names"]
    d = len(np.asarray(arrays["pivot"]))
    _check(
        names is None or (isinstance(names, list) and (d == 0 or len(names) == d)), "a name for every feature"
    )
    return ClusterTree(
        splits=tuple(made),
        refused=tuple(refused),
        feature_names=None if names is None else tuple(map(str, names)),
        mapped=bool(facts.get("mapped", False)),
        **whole,
    )


def _check(holds: bool, what: str) -> None:
    if not holds:
        raise InvalidModelError(f"not a whole ravine model: {what} expected")


def _check_links(parent: Any, left: Any, right: Any) -> None:
    """Check that every node but the root is the child of an earlier node, once."""
    n = len(parent)
    inner = np.flatnonzero(left >= 0)
    _check(bool(((left >= 0) == (right >= 0)).all()), "two children or none")
    children = np.concatenate([left[inner], right[inner]])
    _check(sorted(children.tolist()) == list(range(1, n)), "every node as a child once")
    _check(
        bool((parent[children] == np.concatenate([inner, inner])).all()), "children that know their parent"
    )
    _check(bool(parent[0] == -1 and (parent[1:] < np.arange(1, n)).all()), "parents before children")


def _splits(facts: Mapping[str, Any], arrays: Mapping[str, Any]) -> list[Split]:
    weights = np.ascontiguousarray(arrays["split_weights"], dtype=np.float64)
    direction = np.ascontiguousarray(arrays["split_direction"], dtype=np.float64)
    pivot = np.ascontiguousarray(arrays["pivot"], dtype=np.float64)
    m = len(weights)
    _check(weights.ndim == 2 and weights.shape == direction.shape, "weights of one shape")
    _check(m == 0 or pivot.shape == (weights.shape[1],), "a pivot of as many features")
    _check(bool(np.isfinite(weights).all() and np.isfinite(pivot).all()), "finite weights")
    numbers: dict[str, FloatArray] = {}
    for name in [f"split_{x}" for x in SPLIT_NUMBERS] + [f"evidence_{x}" for x in EVIDENCE_NUMBERS]:
        numbers[name] = np.asarray(arrays[name], dtype=np.float64)
    counted = [*numbers.values(), *(np.asarray(arrays[f"split_{x}"]) for x in ("node", "made", "iterations"))]
    _check(all(array.shape == (m,) for array in counted), "figures of every split")
    methods, statuses = facts["methods"], facts["statuses"]
    further = facts.get("facts") or [{}] * m  # files of the first versions have none
    _check(len(methods) == len(statuses) == len(further) == m, "a method, a status and facts of every split")
    _check(bool(np.isfinite(numbers["split_cut"]).all()), "finite cuts")
    evidence = [numbers[f"evidence_{name}"] for name in EVIDENCE_NUMBERS]
    several = _centres_from_arrays(arrays, pivot)
    return [
        Split(
            boundary=several.get(i) or Hyperplane(weights[i], pivot, float(numbers["split_cut"][i])),
            direction=direction[i],
            method=str(methods[i]),
            value=float(numbers["split_value"][i]),
            quality=float(numbers["split_quality"][i]),
            gradient_norm=float(numbers["split_gradient_norm"][i]),
            status=str(statuses[i]),
            n_iter=int(arrays["split_iterations"][i]),
            evidence=None if np.isnan(evidence[0][i]) else _evidence([float(x[i]) for x in evidence]),
            facts={str(name): float(x) for name, x in further[i].items()},
        )
        for i in range(m)
    ]


def _evidence(numbers: list[float]) -> Evidence:
    p_value, log_depth, null_mean, null_deviation, n_draws = numbers
    return Evidence(p_value, log_depth, null_mean, null_deviation, int(n_draws))


def to_json(tree: ClusterTree) -> str:
    """Return the whole tree as JSON; numbers that are not finite become strings."""
    facts, arrays = to_parts(tree)
    lists = {name: _jsonable(array) for name, array in arrays.items()}
    shape = list(np.shape(arrays["split_weights"]))
    return json.dumps({"format": FORMAT, "version": VERSION, **facts, "shape": shape, "arrays": lists})


def _jsonable(array: Any) -> list[Any]:
    return [x if isinstance(x, int) or np.isfinite(x) else str(x) for x in np.asarray(array).ravel().tolist()]


def from_json(text: str) -> ClusterTree:
    """Read a tree from JSON."""
    try:
        facts = json.loads(text)
        _check_format(facts)
        arrays = {name: np.array([float(x) for x in values]) for name, values in facts["arrays"].items()}
        for name in ("split_weights", "split_direction"):
            arrays[name] = arrays[name].reshape(facts["shape"])
        if "several_directions" in arrays:
            arrays["several_directions"] = arrays["several_directions"].reshape(-1, facts["shape"][1])
        return from_parts(facts, arrays)
    except RavineError:
        raise
    except Exception as error:
        raise InvalidModelError(f"not a ravine tree in JSON: {error}") from error


def _check_format(facts: Any) -> None:
    _check(isinstance(facts, dict) and facts.get("format") == FORMAT, "a file written by ravine.save")
    version = facts.get("version")
    _check(isinstance(version, int) and version >= 1, "a version")
    if version > VERSION:
        raise InvalidModelError(
            f"this model is of format {version}, and this ravine reads up to {VERSION}: upgrade ravine"
        )


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted clusterer to a file, without the training rows, at once or not at all.

    Only the landmarks of a kernel's map are training rows that are kept (all rows, where there are few).

    The file holds JSON and arrays, no code; `ravine.load` reads it in this version and later ones.
    """
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    if not hasattr(model, "tree_"):
        raise InvalidInputError(
            f"ravine.save keeps models that have a tree, and {type(model).__name__} has none: "
            "keep it with pickle or joblib"
        )
    facts, arrays = to_parts(model.tree_)
    map_facts = None
    if model.feature_map_ is not None:
        map_facts, map_arrays = model.feature_map_.parts()
        arrays |= map_arrays
        columns = getattr(model, "feature_names_in_", None)
        map_facts["columns"] = None if columns is None else list(map(str, columns))
    meta = {
        "format": FORMAT,
        "version": VERSION,
        "class": type(model).__name__,
        "parameters": {name: _parameter(value) for name, value in model.get_params(deep=False).items()},
        "n_features": int(model.n_features_in_),
        "n_passes": float(model.n_passes_),
        "n_iter": int(model.n_iter_),
        "fill": _parameter(getattr(model, "fill_", None)),
        "map": map_facts,
        **facts,
    }
    buffer = io.BytesIO()
    np.savez(buffer, meta=np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8), **arrays)
    write_atomically(Path(path), buffer.getvalue())


def _parameter(value: Any) -> Any:
    """Return a parameter as JSON has it; functions and random generators are not kept."""
    if isinstance(value, np.ndarray | list | tuple):
        return np.asarray(value).tolist()
    if isinstance(value, np.generic):
        return value.item()
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return None
    return value


def file_to_replace(path: Path) -> Path:
    """Return the file that writing to `path` creates or replaces, behind links; refuse what is not a file.

    A new file moved over a link, a pipe or a device would put a regular file in its place.
    """
    place = Path(os.path.realpath(path))
    try:
        kind = stat.S_IFMT(os.stat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return place
    if kind != stat.S_IFREG:
        what = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
        raise InvalidInputError(f"{path} is {what.get(kind, 'a device')}, not a regular file")
    return place


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file under another name beside its place; it is moved there at the end, or goes."""
    path = file_to_replace(path)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(name, 0o666 & ~umask)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file at once or not at all."""
    with atomic_file(path) as file:
        file.write(content)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a clusterer that `ravine.save` wrote; never runs anything from the file."""
    with open(path, "rb") as file:
        content = file.read()
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as stored:
            meta = json.loads(bytes(stored["meta"]).decode())
            _check_format(meta)
            arrays = {name: stored[name] for name in stored.files if name != "meta"}
        return _rebuild(meta, arrays)
    except RavineError as error:
        raise InvalidModelError(f"{os.fspath(path)}: {error}") from error
    except Exception as error:
        raise InvalidModelError(f"{os.fspath(path)} is not a whole ravine model: {error}") from error


def _rebuild(meta: Mapping[str, Any], arrays: Mapping[str, Any]) -> Any:
    import ravine

    known = {
        name: getattr(ravine, name) for name in ravine.__all__ if hasattr(getattr(ravine, name), "get_params")
    }
    _check(meta["class"] in known, f"one of {', '.join(sorted(known))}")
    make = known[meta["class"]]
    parameters = dict(meta["parameters"])
    _check(set(parameters) <= set(make().get_params(deep=False)), "parameters of that class")
    model = make(**parameters)
    tree = from_parts(meta, arrays)
    n_features = int(meta["n_features"])
    feature_map = None
    if meta.get("map") is not None:
        feature_map = map_from_parts(meta["map"], arrays, n_features)
    _check((feature_map is not None) == tree.mapped, "a map for a tree that needs one")
    known_features = n_features if feature_map is None else feature_map.n_components
    _check(len(arrays["pivot"]) in (0, known_features), f"{known_features} features")
    model._restore(tree, n_features, int(meta["n_iter"]), float(meta["n_passes"]), feature_map)
    if feature_map is not None and meta["map"]["columns"] is not None:
        model.feature_names_in_ = np.array(list(map(str, meta["map"]["columns"])), dtype=object)
        _check(len(model.feature_names_in_) == n_features, "a name for every column")
    if meta.get("fill") is not None:
        model.fill_ = np.asarray(meta["fill"], dtype=np.float64)
        _check(model.fill_.shape == (n_features,), "a value to fill in for every feature")
    return model
