"""Whole, damaged and crafted model files, and what becomes of them; also run as a process of its own.

    python -m tests.store.model_files FOLDER 10000

tries all crafted files and 10 000 damaged ones. FOLDER holds whole models as `write_bases` writes them, so
that the process only loads and predicts.
"""

import io
import json
import re
import struct
import sys
import warnings
import zipfile
from collections import Counter
from copy import deepcopy
from functools import cache, partial
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.metrics.pairwise import rbf_kernel

import ravine
from ravine import InvalidModelError, RavineError
from tests.every_estimator import ESTIMATORS

IRIS = load_iris(as_frame=True)
ROWS = IRIS.data.to_numpy()[::7]  # predicted by every model that loads
SIMILAR = rbf_kernel(IRIS.data.to_numpy(), gamma=0.1)


def partly(names):
    """Labels of every fifth row, -1 for the others."""
    y_partial = np.full(len(names), -1, dtype=object)
    y_partial[::5] = names[::5]
    return y_partial


def models():
    """Fitted models of every kind that a file can hold."""
    X, y = IRIS.data, IRIS.target.to_numpy()
    names = np.array(["setosa", "versicolor", "Virginica ü"])[y]
    few = {"landmarks": 20, "n_components": 4}
    merged = ravine.PrincipalDirection(5).fit(X)
    merged.tree_ = merged.tree_.merge(0, 2)
    return {
        "auto": ravine.MinimumDensity("auto", level=0.5, min_cluster_size=5).fit(X),
        "merged": merged,
        "one": ravine.MinimumDensity(1).fit(X.to_numpy()),
        "several": ESTIMATORS["orthogonal"](3).fit(X),
        "margin": ravine.MaximumMargin(3).fit(X.to_numpy()),
        "rbf": ravine.MinimumDensity(3, kernel="rbf", kernel_params=few).fit(X),
        "polynomial": ravine.PrincipalDirection(3, kernel="polynomial", kernel_params=few).fit(X.to_numpy()),
        "diffusion": ravine.MinimumDensity(3, kernel="diffusion").fit(X.to_numpy()),
        "precomputed": ravine.MinimumDensity(2, kernel="precomputed").fit(SIMILAR),
        "outliers": ravine.MinimumDensity(3, outliers="label").fit(np.vstack([ROWS] * 3 + [[1e6, 0, 0, 0]])),
        "chosen": ravine.AutoCluster(3).fit(X),
        "sparse": ravine.MinimumDensity(3, kernel="diffusion").fit(sparse.csr_array(X.to_numpy())),
        "two classes": ravine.MinimumDensityClassifier(kernel="rbf", kernel_params=few).fit(X, partly(y > 0)),
        "pairs": ravine.MinimumDensityClassifier().fit(X, partly(names)),
        "classes": ravine.MinimumDensityClassifier().fit(X.to_numpy(), partly(y + 3)),
    }


def write_bases(folder):
    """Write the models, one file each."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, model in models().items():
            ravine.save(model, Path(folder) / f"{name}.ravine")


def read_bases(folder):
    """Return the content of each model's file."""
    return {path.stem: path.read_bytes() for path in sorted(Path(folder).glob("*.ravine"))}


@cache
def unpacked(content):
    """Return the JSON and the arrays of a file; not to be changed."""
    with np.load(io.BytesIO(content)) as stored:
        arrays = dict(stored)
    return bytes(arrays.pop("meta")).decode(), arrays


def edited(content, change):
    """Return a file whose JSON and arrays were changed, and zipped again as they should be."""
    text, arrays = unpacked(content)
    meta, arrays = json.loads(text), {name: array.copy() for name, array in arrays.items()}
    text = change(meta, arrays)
    return packed(text if isinstance(text, bytes) else json.dumps(meta).encode(), arrays)


def packed(text, arrays):
    """Return JSON and arrays as the content of a file."""
    buffer = io.BytesIO()
    np.savez(buffer, meta=np.frombuffer(text, dtype=np.uint8), **arrays)
    return buffer.getvalue()


# --- what becomes of a file ---


def outcome(content, path):
    """Load a file, and predict where that goes; return what came out of it.

    Anything other than ravine's own errors is raised, as is a prediction that is none.
    """
    path.write_bytes(content)
    try:
        model = ravine.load(path)
    except InvalidModelError as error:
        message = str(error).removeprefix(f"{path} ")
        return f"refused: {message}" if len(message) < 500 and "\n" not in message else f"rambles: {message}"
    rows = {4: ROWS, len(SIMILAR): SIMILAR[::7]}.get(model.n_features_in_)
    if rows is None:
        return "loaded, for other columns"
    try:
        check_predictions(model, rows)
    except RavineError as error:
        return f"loaded, but rows are refused: {error}"
    return "loaded"


def check_predictions(model, rows):
    """Ask a model for everything that it predicts."""
    labels, inside = model.predict(rows), model.decision_function(rows)
    share = model.predict_proba(rows) if hasattr(model, "predict_proba") else np.ones((len(rows), 1))
    classes = getattr(model, "classes_", np.arange(share.shape[1]))
    assert share.shape == (len(rows), len(classes))
    assert np.isfinite(share).all()
    np.testing.assert_allclose(share.sum(axis=1), 1.0)
    assert np.isin(labels, [*classes, -1] if getattr(model, "outliers", "") == "label" else classes).all()
    assert not np.isnan(inside).any()
    if hasattr(model, "tree_"):
        assert np.isfinite(model.transform(rows)).all()
        assert model.tree_.export_text()
        assert model.tree_.to_json()
        assert [model.tree_.cut(k).n_clusters for k in (1, model.tree_.n_clusters)] == [
            1,
            model.tree_.n_clusters,
        ]


# --- damaged files ---

NUMBERS = (0, 1, -1, 2, 3, 7, 100, 2**31, -(2**31), 10**9, 2**62, -(2**63))
REALS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-320, 1e9, 2.0**31, 1e300, -1e308, np.nan, np.inf, -np.inf)
VALUES = (None, True, False, 0, 1, -1, 3, 10**9, 2**63, 10**400, 0.5, -1e308, "", "x", "nan", "auto", "rbf")
VALUES += ([], {}, [[]], [1], ["x"], {"x": 1}, [None], [0.5, "x"])
TYPES = ["i1", "i4", "i8", "u8", "f2", "f4", "f8", "c16", "S3", "U3", "?"]


def pick(rng, things):
    return things[rng.integers(len(things))]


def damaged(rng, content):
    """Return a file with something wrong with it, most often zipped as it should be."""
    way = rng.random()
    if way < 0.25:
        return damage_bytes(rng, content)
    change = damage_arrays if way < 0.7 else damage_json
    return edited(
        content, lambda meta, arrays: [change(rng, meta, arrays) for _ in range(rng.integers(1, 3))]
    )


def damage_bytes(rng, content):
    a, b = np.sort(rng.integers(0, len(content), 2))
    way = rng.integers(5)
    if way == 0:
        return content[:a]
    if way == 1:
        return content[:a] + content[b:]
    if way == 2:
        return content[:b] + content[a:]
    changed = bytearray(content)
    for at in rng.integers(0, len(content), rng.integers(1, 7)):
        changed[at] = rng.integers(256)
    return bytes(changed)


def damage_arrays(rng, meta, arrays):
    name = pick(rng, sorted(arrays))
    array = arrays[name]
    way = rng.integers(12)
    if way < 6 and array.size and array.dtype in (np.int64, np.float64):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            array.flat[rng.integers(array.size)] = pick(rng, NUMBERS if array.dtype.kind == "i" else REALS)
    elif way == 6:
        arrays[name] = rng.permutation(array)
    elif way == 7:
        arrays[name] = pick(rng, [array[:-1], array[1:], array[:0], np.concatenate([array, array[-1:]])])
    elif way == 8:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            arrays[name] = array.astype(pick(rng, TYPES) if array.dtype.kind in "if" else "U3")
    elif way == 9:
        arrays[name] = pick(
            rng, [array.ravel(), array[None], array.T, array.reshape(-1, 1), array[..., None]]
        )
    elif way == 10:
        other = pick(rng, sorted(arrays))
        arrays[name], arrays[other] = arrays[other], arrays[name]
    elif rng.random() < 0.5:
        del arrays[name]
    else:
        raw = bytearray(np.ascontiguousarray(array).tobytes())
        if raw:
            raw[rng.integers(len(raw))] = rng.integers(256)
            arrays[name] = np.frombuffer(raw, array.dtype).reshape(array.shape)


def damage_json(rng, meta, arrays):
    inside, key = meta, None
    while True:
        keys = sorted(inside) if isinstance(inside, dict) else list(range(len(inside)))
        key = pick(rng, keys)
        if not isinstance(inside[key], dict | list) or not inside[key] or rng.random() < 0.3:
            break
        inside = inside[key]
    way = rng.integers(6)
    if way == 0:
        del inside[key]
    elif way == 1 and isinstance(inside, dict):
        inside["further"] = deepcopy(pick(rng, VALUES))
    elif way == 2 and isinstance(inside, list):
        inside.append(deepcopy(pick(rng, VALUES)))
    else:
        inside[key] = deepcopy(pick(rng, VALUES))


# --- crafted files ---

NOT_WHOLE = "not a valid ravine model"
INTEGERS = "{'descr': '<i8', 'fortran_order': False, 'shape': %s}"


def header(descr, shape, by_columns=False):
    buffer = io.BytesIO()
    facts = {"descr": descr, "fortran_order": by_columns, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, facts)
    return buffer.getvalue()


def raw_header(text):
    """An npy header of any text."""
    text = text.encode() + b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def zipped(members, compression=zipfile.ZIP_STORED):
    """Members of any name and content as a zip archive."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, content in members:
            archive.writestr(name, content)
    return buffer.getvalue()


def members_of(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return [(name, archive.read(name)) for name in archive.namelist()]


def with_member(content, name, data):
    """The file with a member in the place of that of this name, or after the others."""
    return zipped([(n, x) for n, x in members_of(content) if n != name] + [(name, data)])


def bomb(content, compression, megabytes):
    """A member of very many zeros that takes next to nothing."""
    buffer = io.BytesIO(content)
    with (
        zipfile.ZipFile(buffer, "a", compression, compresslevel=1) as archive,
        archive.open("bomb.npy", "w", force_zip64=True) as file,
    ):
        file.write(header("|u1", (megabytes << 20,)))
        for _ in range(megabytes):
            file.write(bytes(1 << 20))
    return buffer.getvalue()


def overlapping(content, copies):
    """One member under many names: as many entries of the directory point to the same bytes."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        start, info = archive.start_dir, archive.infolist()[0]
    entry = content[start : start + 46 + len(info.filename) + len(info.extra) + len(info.comment)]
    name = info.filename.encode()
    named = [entry.replace(name, b"%0*d.npy" % (len(name) - 4, i)) for i in range(copies)]
    directory = b"".join(named)
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, copies, copies, len(directory), start, 0)
    return content[:start] + directory + end


def declared(content, size):
    """The file with another size in the directory's entry of its first member."""
    at = content.index(b"PK\x01\x02")
    return content[: at + 20] + struct.pack("<2L", size, size) + content[at + 28 :]


class Code:
    def __reduce__(self):
        return (sys.exit, ("code from the file was run",))


def _set(name, where, value):
    return lambda meta, arrays: arrays[name].__setitem__(where, value)


def _fill(name, value):
    return lambda meta, arrays: arrays[name].fill(value)


def _replace(**arrays_or_meta):
    def change(meta, arrays):
        for name, value in arrays_or_meta.items():
            (arrays if name in arrays or isinstance(value, np.ndarray) else meta)[name] = value

    return change


def _parameter(**parameters):
    return lambda meta, arrays: meta["parameters"].update(parameters)


def _map(**facts):
    return lambda meta, arrays: meta["map"].update(facts)


def _map_parameter(**parameters):
    return lambda meta, arrays: meta["map"]["parameters"].update(parameters)


def _split(**facts):
    """The last split with other values."""
    return lambda meta, arrays: meta["splits"][-1].update(facts)


def _evidence(**facts):
    """The first split that was tested with other evidence."""

    def change(meta, arrays):
        next(split for split in meta["splits"] if split["evidence"])["evidence"].update(facts)

    return change


def _no_last_split(meta, arrays):
    """A tree with a split less than it has inner nodes."""
    n_made = len(arrays["weight"]) // 2
    arrays |= {name: arrays[name][: n_made - 1] for name in ("split_normals", "split_directions")}
    del meta["splits"][n_made - 1 :]


def _first_boundary_only(meta, arrays):
    """A classifier of three classes with the first of its two boundaries."""
    for name in ("split_normals", "split_directions"):
        arrays[name] = arrays[name][:1]
    del meta["splits"][1:]


def _curved(meta, arrays):
    """A classifier with a boundary that is not a hyperplane."""
    del meta["splits"][0]["threshold"]
    meta["splits"][0] |= {"centers": [[1.0], [0.0]], "right": [0, 1]}


def _refused_twice(meta, arrays):
    """A tree in which a split is there twice: made, and refused by the same node."""
    for name in ("split_normals", "split_directions"):
        arrays[name] = np.concatenate([arrays[name], arrays[name][:1]])
    meta["splits"].append(meta["splits"][0])


# (base, change of its JSON and arrays, what the message says)
CHANGES = {
    "a label of 1e9": ("merged", _set("label", 0, 10**9), "label has to be at most"),
    "labels with a gap": (
        "merged",
        lambda m, a: a["label"].__iadd__(a["label"] > 0),
        "label has to be 0, 1, 2, ... without a gap",
    ),
    "a leaf without a label": ("merged", _fill("label", -1), "label has to be at least 0"),
    "a root without weight": ("merged", _set("weight", 0, 0.0), "weight has to be of a root above 0"),
    "a negative weight": ("merged", _set("weight", 1, -1.0), "weight has to be at least 0"),
    "splits of one node": ("merged", _split(node=0), "splits.node has to be each node once"),
    "a split of a node that is not there": (
        "merged",
        _split(node=99),
        "splits.node has to be a whole number",
    ),
    "its own parent": (
        "merged",
        lambda m, a: m["splits"][1].update(node=3),
        "splits.node has to be each",
    ),
    "a split too few": ("merged", _no_last_split, "splits has to be at least"),
    "a split refused by a node that was split": (
        "merged",
        _refused_twice,
        "splits.node has to be each node once",
    ),
    "no nodes": ("merged", _replace(weight=np.zeros(0)), "weight has to be of a root above 0"),
    "a node too few": ("merged", lambda m, a: a.update(weight=a["weight"][:-1]), "of pairs of nodes"),
    "a quality of 7": ("merged", _split(quality=7.0), "splits.quality has to be from 0 to 1"),
    "a quality of NaN": ("merged", _split(quality="nan"), "splits.quality has to be from 0 to 1"),
    "fewer than no iterations": ("merged", _split(n_iter=-1), "n_iter has to be .*, got -1"),
    "too many iterations": ("merged", _split(n_iter=2**63), "n_iter has to be a whole number"),
    "a method that is no text": ("merged", _split(method=9), "splits.method has to be a text"),
    "a threshold that is not finite": (
        "merged",
        _split(threshold="inf"),
        "splits.threshold has to be a number",
    ),
    "no splits": ("merged", _replace(splits=None), "splits has to be a list of objects"),
    "a p-value of 2": ("auto", _evidence(p_value=2.0), "evidence.p_value has to be"),
    "draws that are not whole": ("auto", _evidence(n_draws=0.5), "n_draws has to be a whole number"),
    "other columns": ("merged", _replace(n_features=5), "columns has to be a list of 5 texts"),
    "other columns without names": ("margin", _replace(n_features=5), "pivot has to be float64 of"),
    "no columns": ("margin", _replace(n_features=0), "n_features has to be a whole number of at least 1"),
    "columns of numbers": ("merged", _replace(columns=[1, 2, 3, 4]), "columns has to be a list of texts"),
    "names of no column": ("one", _replace(feature_names=["a"]), "feature_names has to be a list of 4 texts"),
    "a value to fill too few": ("margin", _replace(fill=np.zeros(3)), "fill has to be float64 of"),
    "NaN to fill": ("margin", _replace(fill=np.full(4, np.nan)), "fill has to be finite"),
    "a map without a kernel": ("margin", _replace(map={"kind": "rbf"}), "map has to be null for"),
    "a spread of 0": ("margin", _replace(spread=0.0), "spread has to be a number of at least"),
    "a tree that is mapped": ("margin", _replace(mapped=True), "mapped has to be true with a kernel"),
    "a version of the future": ("one", _replace(version=99), "version of the format has to be 4.*got 99"),
    "a version of the past": ("one", _replace(version=1), "version of the format has to be 4.*got 1"),
    "a version of text": ("one", _replace(version="2"), "version has to be a whole number"),
    "another format": ("one", _replace(format="zip"), "format has to be one of ravine model, got 'zip'"),
    "a class of another library": ("one", _replace(**{"class": "Popen"}), "class has to be one of"),
    "an exception as class": ("one", _replace(**{"class": "RavineError"}), "class has to be one of"),
    "another estimator": ("one", _replace(**{"class": "PrincipalDirection"}), "parameters has to be of"),
    "a classifier with a tree": (
        "one",
        lambda m, a: m.update({"class": "MinimumDensityClassifier"}, parameters={}),
        "classes has to be an array of the file, got no such array",
    ),
    "a function to call": ("one", _parameter(verbose="print"), "verbose has to be True, False or a function"),
    "an unknown parameter": ("one", _parameter(shell=True), "parameters has to be of .*, got \\['shell'\\]"),
    "facts of a list": ("merged", _split(facts=[]), "splits.facts has to be an object of JSON"),
    "a fact of text": ("merged", _split(facts={"x": "many"}), "facts.x has to be a number"),
    "a finite fact as text": ("merged", _split(facts={"x": "1"}), "facts.x has to be a number"),
    "NaN in JSON": (
        "one",
        lambda m, a: json.dumps({**m, "n_passes": np.nan}).encode(),
        "n_passes has to be a number",
    ),
    # several directions
    "centers on one side": ("several", _split(centers=[[0.0], [1.0]], right=[1, 1]), "on both sides"),
    "centers of no direction": (
        "several",
        _split(centers=[[], []], right=[0, 1]),
        "split_normals has to be 0",
    ),
    "centers of too many directions": (
        "several",
        _split(centers=[[0.0] * 99] * 2, right=[0, 1]),
        "split_normals has to be 99",
    ),
    "centers of too few directions": (
        "several",
        _split(centers=[[0.0], [1.0]], right=[0, 1]),
        "split_normals has to be as many",
    ),
    "a center too few": ("several", _split(centers=[[0.0, 0.0]]), "splits.right has to be int64 of shape"),
    "ragged centers": ("several", _split(centers=[[0.0], [1.0, 2.0]]), "centers has to be lists of numbers"),
    "centers of text": ("several", _split(centers="many"), "centers has to be lists of numbers"),
    "centers that are not finite": ("several", _split(centers=[["nan"]]), "centers has to be finite"),
    # maps
    "another kernel": (
        "rbf",
        _map(kind="laplacian"),
        "map.kind has to be the kernel of the parameters, 'rbf'",
    ),
    "an unknown kernel": ("rbf", _map(kind="os.system"), "map.kind has to be one of additive_chi2"),
    "a kernel of two kinds": ("rbf", _map(kind=["rbf"]), "map.kind has to be one of"),
    "a kernel that is a list": ("rbf", _parameter(kernel=["rbf"]), "map.kind has to be the kernel"),
    "a map that is a list": (
        "rbf",
        _replace(map=["rbf"]),
        "map has to be an object of JSON, got \\['rbf'\\]",
    ),
    "no gamma": ("rbf", _map(parameters={}), "map.parameters has to be with gamma"),
    "gamma 0": ("rbf", _map_parameter(gamma=0), "gamma has to be a number above 0"),
    "gamma of text": ("rbf", _map_parameter(gamma="wide"), "gamma has to be a number above 0"),
    "gamma auto": ("rbf", _map_parameter(gamma="auto"), "gamma has to be a number above 0"),
    "gamma true": ("rbf", _map_parameter(gamma=True), "gamma has to be a number above 0"),
    "degree 0": ("polynomial", _map_parameter(degree=0), "degree has to be a number at least 1"),
    "coef0 of a list": ("polynomial", _map_parameter(coef0=[1]), "coef0 has to be a number"),
    "a parameter of another kernel": ("rbf", _map_parameter(degree=2), "map.parameters has to be those of"),
    "a negative scale": ("rbf", _set("map_inverse_scale", 0, -1.0), "map_inverse_scale has to be at least 0"),
    "no landmarks": (
        "rbf",
        lambda m, a: a.update(
            map_landmarks=a["map_landmarks"][:0], map_coefficients=a["map_coefficients"][:0]
        ),
        "map_coefficients has to be of a landmark",
    ),
    "no components": (
        "rbf",
        lambda m, a: a.update(map_coefficients=a["map_coefficients"][:, :0]),
        "a component",
    ),
    "chi2 with negative landmarks": (
        "rbf",
        lambda m, a: (m["parameters"].update(kernel="chi2"), m["map"].update(kind="chi2")),
        "map_landmarks has to be at least 0",
    ),
    "a column that is not there": (
        "precomputed",
        _set("map_landmarks", 0, 150),
        "map_landmarks has to be at most 149",
    ),
    "no neighbors": ("diffusion", _map(n_neighbors=0), "n_neighbors has to be a whole number of at least 2"),
    "neighbors of text": ("diffusion", _map(n_neighbors="5"), "n_neighbors has to be a whole number"),
    "a landmark without mass": ("diffusion", _set("map_masses", 0, 0.0), "map_masses has to be above 0"),
    "masses too large to add": ("diffusion", _fill("map_masses", 1e308), "map_masses has to be at"),
    # classifiers
    "a class twice": ("classes", _fill("classes", 3), "different and sorted"),
    "classes in disorder": (
        "pairs",
        lambda m, a: a.update(classes=a["classes"][::-1]),
        "different and sorted",
    ),
    "one class": (
        "classes",
        lambda m, a: a.update(classes=a["classes"][:1]),
        "classes has to be two or more",
    ),
    "a class too many": (
        "classes",
        _replace(classes=np.arange(9)),
        "splits has to be 36, one per",
    ),
    "a class of NaN": ("classes", _replace(classes=np.array([0.0, 1.0, np.nan])), "classes has to be finite"),
    "text that is none": (
        "pairs",
        lambda m, a: a.update(classes=np.array([[1, 2**31 - 1]] * 3, np.uint32).view("U2").ravel()),
        NOT_WHOLE,
    ),
    "one boundary of three": ("pairs", _first_boundary_only, "splits has to be 3, one per pair"),
    "a boundary that is curved": ("pairs", _curved, "splits has to be hyperplanes in a classifier"),
}


def change_files(bases):
    """Files with one thing wrong, and with each array and each value of JSON wrong in turn."""
    for name, (base, change, message) in CHANGES.items():
        yield name, edited(bases[base], change), message
    for base in ("auto", "several", "rbf", "diffusion", "precomputed", "pairs"):
        for name, array in unpacked(bases[base])[1].items():
            yield from array_files(bases[base], base, name, array)
    for base in ("auto", "diffusion", "pairs"):
        meta = json.loads(unpacked(bases[base])[0])
        for name in meta:
            yield f"{base}: without {name}", edited(bases[base], lambda m, a, n=name: m.pop(n) and None), name
            odd = _replace(**{name: {"odd": [0.5]}})
            yield f"{base}: {name} odd", edited(bases[base], odd), name.removesuffix("s")
        for name in meta["parameters"]:
            odd = edited(bases[base], _parameter(**{name: {"odd": [0.5]}}))
            if name != "kernel_params":
                yield f"{base}: parameter {name} of an object", odd, f"parameters.{name} has to be a value"
            odd = edited(bases[base], _parameter(**{name: ["odd"]}))
            yield (
                f"{base}: parameter {name} of a list",
                odd,
                {"init": "'odd'", "kernel": "map"}.get(name, name),
            )
    yield from record_files(bases)


def record_files(bases):
    """Files with one value of a nested object missing, or of another kind."""
    for base, find in (
        ("auto", lambda meta: meta["splits"][0]),
        ("auto", lambda meta: next(split["evidence"] for split in meta["splits"] if split["evidence"])),
        ("several", lambda meta: meta["splits"][0]),
        ("pairs", lambda meta: meta["splits"][0]),
        ("chosen", lambda meta: meta["auto"]["candidates"][0]),
    ):
        for name in find(json.loads(unpacked(bases[base])[0])):
            lacking = edited(bases[base], lambda m, a, n=name, f=find: f(m).pop(n) and None)
            yield f"{base}: a record without {name}", lacking, f"{name}|centers has to be"
            for odd in ({"odd": ["x"]}, [["x"]], ["x", 1]):
                changed = edited(bases[base], lambda m, a, n=name, f=find, odd=odd: f(m).update({n: odd}))
                yield f"{base}: a record with {name} {odd}", changed, f"{name}.* has to be "


def array_files(content, base, name, array):
    """Files with one array missing, of another type or shape, or with numbers that are not finite."""
    changed = {
        "missing": None,
        "too short": array[:-1],
        "too long": np.concatenate([array, array[-1:]]),
        "with an axis more": array[None],
    }
    if array.dtype.kind in "if":
        changed["of another type"] = array.astype({"i": np.int32, "f": np.float32}[array.dtype.kind])
    if array.dtype.kind == "f":
        changed |= {f"of {x}": np.full_like(array, x) for x in (np.nan, np.inf, -np.inf)}
    for what, new in changed.items():
        yield f"{base}: {name} {what}", edited(content, partial(put, name, new)), " has to be "


def put(name, array, meta, arrays):
    """Put an array in the place of another, or nothing."""
    del arrays[name]
    if array is not None:
        arrays[name] = array


def container_files(bases):
    """Files that are wrong as archives, not in what they say."""
    whole = bases["merged"]
    text, arrays = unpacked(whole)
    yield "nothing", b"", "the file has to be one that ravine wrote"
    yield "text", b"a,b\n1,2\n", "the file has to be one that ravine wrote"
    yield "an archive of nothing", b"PK\x05\x06" + bytes(18), "meta has to be an array"
    yield "the beginning of an archive", b"PK\x03\x04", NOT_WHOLE
    yield "half", whole[: len(whole) // 2], NOT_WHOLE
    yield "bomb", bomb(whole, zipfile.ZIP_DEFLATED, 600), "the size of all members has to be"
    yield (
        "small bomb of bzip2",
        bomb(whole, zipfile.ZIP_BZIP2, 8),
        "the size of all members has to be",
    )
    yield "small bomb of lzma", bomb(whole, zipfile.ZIP_LZMA, 8), "the size of all members has to be"
    yield (
        "bomb of JSON",
        zipped([("meta.npy", header("|u1", (5 << 20,)) + b"[]," * (5 << 20))]),
        NOT_WHOLE,
    )
    most = b"[" + b'{"a":0},' * (500 << 10) + b"{}]"
    yield "JSON of a list", packed(most, arrays), "meta has to be an object of JSON"
    yield "deep JSON", packed(b"[" * 200_000, arrays), NOT_WHOLE
    yield ("a long number", packed(text.replace("false", "1" * 5000).encode(), arrays), NOT_WHOLE)
    yield "no meta", zipped([m for m in members_of(whole) if m[0] != "meta.npy"]), "meta has to be an array"
    yield (
        "meta of numbers",
        with_member(whole, "meta.npy", io_array(np.zeros(3))),
        NOT_WHOLE,
    )
    yield (
        "compressed",
        zipped(members_of(whole), zipfile.ZIP_DEFLATED),
        "the size of all members has to be",
    )
    yield "overlapping", overlapping(whole, 40), "the size of all members|File name"
    yield "many members", overlapping(whole, 5000), "the size of all members|File name"
    yield "a larger size", declared(whole, 2**31), "the size of all members has to be"
    yield "a smaller size", declared(whole, 100), NOT_WHOLE
    yield "a name twice", zipped([*members_of(whole), ("label.npy", b"")]), "label has to be int64"
    yield "meta twice", zipped([*members_of(whole), ("meta", b"")]), NOT_WHOLE
    yield "an archive in an archive", zipped([("model.ravine", whole)]), "meta has to be an array"
    for name in ("../../etc/passwd", "/etc/passwd.npy", "C:\\x.npy", "a\nb.npy", "__import__('os')", "a/"):
        data = header("<i8", (0,))
        yield f"meta under the name {name!r}", zipped([(name, data)]), "meta has to be an array|not a valid"
    for name, data, message in (
        ("objects", io_array(np.array([Code()] * 3, dtype=object)), "Object arrays cannot be loaded"),
        ("a pickle", b"cos\nsystem\n(S'true'\ntR.", "label has to be int64"),
        ("records", header([("a", "<i8"), ("b", "O")], (1,)), "Object arrays cannot be loaded"),
        ("dates", header("<M8[s]", (1,)) + bytes(8), "label has to be int64"),
        ("text of no length", header("<U0", (10**12,)), NOT_WHOLE),
        ("a huge shape", header("<i8", (2**40,)), NOT_WHOLE),
        ("a shape that overflows", header("<i8", (2**62, 2**62)), NOT_WHOLE),
        ("nothing of a huge shape", header("<i8", (0, 2**62, 2**62)), NOT_WHOLE),
        (
            "a negative shape",
            raw_header("{'descr': '<i8', 'fortran_order': False, 'shape': (-1,)}"),
            NOT_WHOLE,
        ),
        (
            "a shape of text",
            raw_header("{'descr': '<i8', 'fortran_order': False, 'shape': ('a',)}"),
            NOT_WHOLE,
        ),
        ("too many axes", header("<i8", (0,) * 70), NOT_WHOLE),
        ("a call in the header", raw_header("{'descr': __import__('os').abort()}"), NOT_WHOLE),
        ("a deep header", raw_header("-" * 9000 + "1"), NOT_WHOLE),
        ("a nested header", raw_header("(" * 9000), NOT_WHOLE),
        ("a long header", raw_header("{'a': " + "1" * 20_000 + "}"), NOT_WHOLE),
        ("another version", b"\x93NUMPY\x09\x00" + bytes(100), "version|magic"),
        ("bytes lacking", io_array(arrays["label"])[:-1], NOT_WHOLE),
    ):
        yield f"label as {name}", with_member(whole, "label.npy", data), message


def io_array(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def crafted(bases):
    """Files that are wrong on purpose: name, content, and what the message says."""
    yield from container_files(bases)
    yield from change_files(bases)


# --- in a process of its own ---


def peak_megabytes():
    """The largest resident size of this process so far; Linux tells that of the process alone."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def main(folder, n, seed="0"):
    """Try all crafted files and n damaged ones; print what came out of them as JSON."""
    warnings.simplefilter("ignore")
    folder, bases, rng = Path(folder), read_bases(folder), np.random.default_rng(int(seed))
    path, counts, unexpected, n_crafted = folder / "tried", Counter(), [], 0
    for name, content, message in crafted(bases):
        n_crafted += 1
        result = outcome(content, path)
        if not (result.startswith("refused") and re.search(message, result)):
            unexpected.append(f"{name}: {result}")
    for _ in range(int(n)):
        result = outcome(damaged(rng, bases[pick(rng, sorted(bases))]), path)
        counts["refused by a check" if " has to be " in result else result.split(":")[0]] += 1
    facts = {"crafted": n_crafted, "unexpected": unexpected, "damaged": counts, "megabytes": peak_megabytes()}
    print(json.dumps(facts))


if __name__ == "__main__":
    main(*sys.argv[1:])
