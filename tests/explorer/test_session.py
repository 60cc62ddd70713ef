"""Sessions: every action is Python that repeats it, can be undone, and is on disk at once."""

import json
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_wine

import ravine
from ravine import InvalidInputError, MinimumDensity, explain
from ravine.explorer.answers import Answers
from ravine.explorer.exports import EXPORTS, model_of
from ravine.explorer.session import Session, digest
from ravine.explorer.state import Rows

X = load_wine().data
MODEL = MinimumDensity(3).fit(X)
WORK = [
    ("split", {"node": 2, "method": "MinimumDensity", "n_clusters": 2}),
    ("rename", {"label": 3, "name": 'it\'s "good"'}),
    ("move", {"node": 0, "distance": 0.25}),
    ("mark", {"numbers": [3, 70, 2], "label": 0}),
    ("mark", {"numbers": [100, 140], "label": 1}),
    ("split", {"node": 1, "method": "MinimumDensity", "n_clusters": 3}),
    ("split", {"node": 3, "method": "PrincipalDirection", "n_clusters": 2}),
    ("merge", {"a": 0, "b": 4}),
    ("prune", {"node": 2}),
    ("cut", {"n_clusters": 4}),
]


@pytest.fixture
def session(tmp_path):
    return Session(Rows(X), MODEL, tmp_path, code=["model = MinimumDensity(3).fit(X)"])


def labels(session):
    return session.state.tree.route(session.rows.of(session.state.model))


def run(session, X=X):
    """The labels that the script of a session gives alone."""
    written = {}
    script = session.script().split("with open(")[0]  # without the file
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(script, {"X": X}, written)
    return written


def export(session, what, row_ids=None):
    return EXPORTS[what][2](Answers(session, row_ids)).decode()


def do(session, work):
    for action, arguments in work:
        session.act(action, arguments)


def test_the_script_gives_the_same_labels_after_every_action(session):
    for action, arguments in WORK:
        session.act(action, arguments)
        found = run(session)
        np.testing.assert_array_equal(found["labels"], labels(session), err_msg=action)
        assert found.get("names", {}) == session.state.names
        y = session.state.partial_labels(len(X))
        assert ("y" in found) == (y is not None)
        assert y is None or (found["y"] == y).all()
    assert len(np.unique(labels(session))) == 4


def test_with_a_kernel_too(session):
    do(session, [("split", {"node": 0, "method": "MinimumDensity", "n_clusters": 3, "kernel": "rbf"})])
    assert session.state.tree.mapped
    do(
        session,
        [
            ("move", {"node": 0, "distance": 0.01}),
            ("split", {"node": 2, "n_clusters": 2}),
            ("prune", {"node": 1}),
        ],
    )
    np.testing.assert_array_equal(run(session)["labels"], labels(session))
    lines = [line for lines in session.code() for line in lines]  # the panel of the page
    assert sum(line.startswith("rows = rows_for_tree(model, X)") for line in lines) == 1
    do(session, [("split", {"node": 1, "n_clusters": 2})])
    np.testing.assert_array_equal(run(session)["labels"], labels(session))
    with pytest.raises(InvalidInputError, match="choose the root"):
        session.act("split", {"node": 1, "kernel": "rbf"})


def test_a_file_is_explored_like_an_array(session, tmp_path):
    np.save(tmp_path / "rows.npy", X)
    file = ravine.open(tmp_path / "rows.npy")
    explorer = ravine.explore(MODEL, file, session=tmp_path / "file", open_browser=False)
    explorer.stop()
    work = [WORK[5], WORK[2], ("split", {"node": 0, "n_clusters": 3, "kernel": "rbf"}), WORK[0]]
    do(explorer.session, work)
    do(session, work)
    np.testing.assert_array_equal(explorer.labels, labels(session))
    np.testing.assert_array_equal(run(explorer.session, file)["labels"], explorer.labels)
    report = export(explorer.session, "report")
    assert f"{explorer.tree.n_clusters} clusters in 178 rows" in report


def test_undo_and_redo_go_through_the_same_states(session):
    seen = [labels(session)]
    for action, arguments in WORK:
        session.act(action, arguments)
        seen.append(labels(session))
    for before in reversed(seen[:-1]):
        session.act("undo", {})
        np.testing.assert_array_equal(labels(session), before)
    with pytest.raises(InvalidInputError, match="nothing to undo"):
        session.act("undo", {})
    for after in seen[1:]:
        session.act("redo", {})
        np.testing.assert_array_equal(labels(session), after)
    session.act("undo", {})
    session.act("rename", {"label": 0, "name": "other"})
    with pytest.raises(InvalidInputError, match="nothing to redo"):
        session.act("redo", {})


def test_a_session_comes_back_where_it_was(session, tmp_path):
    do(session, [*WORK, ("undo", {})])
    found = Session(Rows(X), None, tmp_path, code=["model = MinimumDensity(3).fit(X)"])
    assert found.script() == session.script()
    assert [state.tree for state in found.states] == [state.tree for state in session.states]
    assert (found.state.names, found.state.marks) == (session.state.names, session.state.marks)
    do(found, [("redo", {}), ("merge", {"a": 0, "b": 1})])
    again = Session(Rows(X), None, tmp_path)
    np.testing.assert_array_equal(labels(again), labels(found))
    with pytest.raises(InvalidInputError, match="other rows"):
        Session(Rows(X + 1), None, tmp_path)
    (tmp_path / "session.json").write_text(json.dumps({"format": "ravine session"}))
    with pytest.raises(InvalidInputError, match="is not a valid session"):
        Session(Rows(X), None, tmp_path)


def test_a_continued_session_keeps_the_states_before(session, tmp_path):
    do(session, WORK[:4])
    found = Session(Rows(X), None, tmp_path)
    do(found, [WORK[5], WORK[2]])
    again = Session(Rows(X), None, tmp_path)
    assert [state.tree for state in again.states[:5]] == [state.tree for state in session.states]
    assert [state.tree for state in again.states] == [state.tree for state in found.states]


def test_rows_are_told_from_others_with_the_same_values_in_other_columns():
    rows = sparse.random_array((30, 8), density=0.2, random_state=np.random.default_rng(0), format="csr")
    other = sparse.csr_array((rows.data, rows.indices[::-1].copy(), rows.indptr), shape=rows.shape)
    assert digest(rows) == digest(rows.copy()) != digest(other)


def test_an_action_that_fails_changes_nothing(session):
    wrong = [
        ("split", {"node": 99}),
        ("split", {"node": 1, "method": "os.system"}),
        ("split", {"node": 1, "kernel": "no"}),
        ("move", {"node": 0, "distance": 1e9}),
        ("move", {"node": 2, "distance": 0.1}),
        ("merge", {"a": 0, "b": 0}),
        ("cut", {"n_clusters": 99}),
        ("rename", {"label": 9, "name": "x"}),
        ("rename", {"label": 0, "name": 5}),
        ("mark", {"numbers": [9999], "label": 0}),
        ("mark", {"numbers": [1], "label": "a"}),
        ("mark", {"numbers": [1], "label": 10**23}),
        ("mark", {"numbers": "1", "label": 0}),
        ("mark", {"numbers": 1, "label": 0}),
        ("merge", {"a": [0, 1], "b": 2}),
        ("merge", {"a": 0, "b": True}),
        ("prune", {"node": 1e400}),
        ("split", {"node": 1, "n_clusters": [2]}),
        ("split", {"node": 1, "method": ["MinimumDensity"]}),
        ("split", {}),
        ("split", None),
        (None, {}),
        ("mark", {"numbers": [-1], "label": 0}),
        ("exec", {}),
    ]
    for action, arguments in wrong:
        with pytest.raises(InvalidInputError):
            session.act(action, arguments)
        assert (session.position, session.version, len(session.states)) == (0, 0, 1), action


def test_a_cut_replaces_the_cut_before_it(session):
    do(session, [("cut", {"n_clusters": 2}), ("cut", {"n_clusters": 3}), ("cut", {"n_clusters": 2})])
    assert session.position == 1
    assert session.most_clusters == 3
    session.act("undo", {})
    assert session.state.tree.n_leaves == 3


def test_a_refused_cut_leaves_the_cut_before_it(session):
    session.act("cut", {"n_clusters": 2})
    with pytest.raises(InvalidInputError, match="cannot be cut into 99"):
        session.act("cut", {"n_clusters": 99})
    assert (session.position, session.version, session.state.tree.n_leaves) == (1, 1, 2)


def test_the_folder_always_holds_the_state_that_is_shown(session, tmp_path):
    for i in range(80):  # the states that are forgotten are freed, and others take their place in memory
        session.act("rename", {"label": 0, "name": f"wrong {i}"})
        session.act("undo", {})
        session.act("rename", {"label": 0, "name": f"right {i}"})
        index = json.loads((tmp_path / "session.json").read_text())
        assert index["actions"][index["position"] - 1] == ["rename", {"label": 0, "name": f"right {i}"}]
        session.act("undo", {})


def test_an_action_that_cannot_be_saved_changes_nothing(session, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ravine.explorer.session.write_atomically", full)
    with pytest.raises(OSError, match="No space"):
        session.act("cut", {"n_clusters": 2})
    assert (session.position, session.version, len(session.states)) == (0, 0, 1)


def test_other_files_in_the_folder_stay_as_they_are(session, tmp_path):
    others = [tmp_path / name for name in ("my-notes2.txt", "model.ravine", "rows.csv")]
    for file in others:
        file.write_text("mine")
    found = Session(Rows(X), None, tmp_path)
    do(found, [WORK[0], WORK[2]])
    assert [file.read_text() for file in others] == ["mine"] * 3
    np.testing.assert_array_equal(labels(Session(Rows(X), None, tmp_path)), labels(found))


def test_no_text_of_a_session_folder_becomes_python(session, tmp_path):
    do(session, WORK[:3])
    index = json.loads((tmp_path / "session.json").read_text())
    index |= {"code": ["import os; os.system('x')"], "imports": ["MinimumDensity; import os"]}
    (tmp_path / "session.json").write_text(json.dumps(index))
    found = Session(Rows(X), None, tmp_path)
    assert "import os" not in found.script()
    np.testing.assert_array_equal(run(found)["labels"], labels(session))


@pytest.mark.parametrize(
    "wrong",
    [
        5,
        [],
        ["undo", {}],
        ["rename", {"label": 0, "name": 5}],
        ["rename", {"label": 0, "name": ["a"]}],
        ["rename", {"label": 77, "name": "a"}],
        ["mark", {"numbers": [9999], "label": 0}],
        ["mark", {"numbers": [1], "label": "a"}],
        ["mark", {"numbers": [[]], "label": 0}],
        ["os.system", {}],
        [["split"], {"node": 0}],
        ["", {}],
        ["move", {"node": "0); import os", "distance": 1.0}],
        ["move", {"node": 0, "distance": "1); import os"}],
        ["move", {"node": 0, "distance": 1.0, "other": 1}],
        ["move", [5]],
        ["prune", {"node": 1e400}],
    ],
)
def test_wrong_actions_of_a_session_are_one_sentence(session, tmp_path, wrong):
    session.act("move", {"node": 0, "distance": 0.25})
    index = json.loads((tmp_path / "session.json").read_text())
    index["actions"][0] = wrong
    (tmp_path / "session.json").write_text(json.dumps(index))
    with pytest.raises(InvalidInputError, match=r"not a valid session.*another folder"):
        Session(Rows(X), None, tmp_path)


@pytest.mark.parametrize(
    "wrong",
    [
        {"position": -1},
        {"position": 1e400},
        {"position": "0"},
        {"position": 2},
        {"actions": None},
        {"actions": 5},
    ],
)
def test_wrong_places_of_a_session_are_one_sentence(session, tmp_path, wrong):
    index = json.loads((tmp_path / "session.json").read_text()) | wrong
    (tmp_path / "session.json").write_text(json.dumps(index))
    with pytest.raises(InvalidInputError, match="is not a valid session"):
        Session(Rows(X), None, tmp_path)


def test_a_model_of_other_columns_is_not_continued(session, tmp_path):
    ravine.save(MinimumDensity(2).fit(X[:, :3]), tmp_path / "first-model.ravine")
    with pytest.raises(InvalidInputError, match="the tree was grown on 3"):
        Session(Rows(X), None, tmp_path)


def test_the_script_does_not_overwrite_a_file(session, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(session.script(), {"X": X})
    np.testing.assert_array_equal(np.loadtxt("labels.csv"), labels(session))
    with pytest.raises(FileExistsError):
        exec(session.script(), {"X": X})


def test_names_follow_their_clusters(session):
    do(session, [("rename", {"label": 2, "name": "last"}), ("rename", {"label": 0, "name": "first"})])
    members = {name: labels(session) == k for k, name in session.state.names.items()}
    session.act("split", {"node": 1, "n_clusters": 3})
    for k, name in session.state.names.items():
        np.testing.assert_array_equal(labels(session) == k, members[name])
    assert "last" in session.state.names.values()
    session.act("merge", {"a": session.state.tree.n_clusters - 1, "b": 0})
    assert "last" in session.state.names.values()


def test_answers_are_those_of_the_model(session):
    session.act("move", {"node": 0, "distance": 0.1})
    answers = Answers(session)
    tree, summary = session.state.tree, answers.summary()
    assert [one["weight"] for one in summary["clusters"]] == np.bincount(labels(session)).tolist()
    np.testing.assert_array_equal(summary["leaf"], tree.leaf_of(session.rows.of(MODEL)))
    explained, shown = explain(tree, X), answers.node(0)
    assert shown["quality"] == tree.splits[0].quality
    assert shown["drivers"] == [
        [d.feature, d.left_mean, d.right_mean, d.contribution] for d in explained.splits[0].drivers[:8]
    ]
    leaf = int(tree.leaves[0])
    nearest = answers.node(leaf)["exemplars"]["rows"]
    assert [row[0] for row in nearest[:3]] == tree.exemplars(X)[0].tolist()


def test_a_threshold_that_is_dragged_shows_what_a_move_gives(session):
    tree, shown = session.state.tree, Answers(session).node(0)
    distance, places = tree.boundary(0).signed_distance_of(X), shown["places"]
    assert places["left"] == [int((distance <= at).sum()) for at in places["at"]]
    assert max(np.diff(places["at"])) < (places["at"][-1] - places["at"][0]) / 590
    nearest = int(np.argmin(np.abs(places["at"])))
    assert places["quality"][nearest] == pytest.approx(shown["quality"], abs=0.03)
    for i in (nearest - 60, nearest + 77):
        session.act("move", {"node": 0, "distance": places["at"][i]})
        assert session.state.tree.weight[1] == places["left"][i]
        session.act("undo", {})


def session_with_far_rows(folder):
    far = X.copy()
    far[[3, 90]] = 1e7
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MinimumDensity(3).fit(far)
    session = Session(Rows(far), model, folder, code=["model = MinimumDensity(3).fit(X)"])
    return far, session


def test_rows_far_from_all_others_are_counted(tmp_path):
    far, session = session_with_far_rows(tmp_path)
    assert Answers(session).summary()["n_far"] == 2
    assert Answers(Session(Rows(far), None, tmp_path)).summary()["n_far"] == 2


def test_rows_that_are_far_are_not_in_the_pictures(tmp_path):
    _, session = session_with_far_rows(tmp_path)
    answers = Answers(session)
    assert answers.summary()["nodes"][0]["weight"] == 176
    assert answers.node(0)["curve"]["points"][-1] < 20
    assert answers.places()["frame"]["half"] < 20
    assert answers.node(0)["left"] + answers.node(0)["right"] == 176
    assert "Split of 176 rows" in export(session, "report")


def test_names_and_marks_compute_nothing_again(session):
    answers = Answers(session)
    answers.summary()
    means = answers.view_state()[1].means
    session.act("rename", {"label": 0, "name": "first"})
    session.act("mark", {"numbers": [1], "label": 0})
    assert answers.view_state()[1].means is means
    assert answers.summary()["clusters"][0]["name"] == "first"
    session.act("prune", {"node": 1})
    assert answers.view_state()[1].means is not means


def test_saved_labels_are_no_formulas_of_a_spreadsheet(session):
    session.act("rename", {"label": 0, "name": "=1+1"})
    ids = ["@a", *range(1, len(X))]
    lines = export(session, "labels", ids).splitlines()
    assert lines[0] == "id,cluster,name"
    assert lines[1].startswith("'@a,")
    assert {line.split(",")[2] for line in lines[1:] if line.split(",")[1] == "0"} == {"'=1+1"}


def test_far_rows_are_those_of_the_model_that_is_asked_about(tmp_path):
    far, session = session_with_far_rows(tmp_path)
    rows, model, other = session.rows, session.state.model, MinimumDensity(3, outliers="include").fit(far)
    assert [rows.far(one).tolist() for one in (model, other, model)] == [[3, 90], [], [3, 90]]


def test_every_change_has_another_version(session):
    versions = [session.version]
    for action in ("rename", "undo", "rename", "undo", "redo"):
        session.act(action, {"label": 0, "name": "one"} if action == "rename" else {})
        versions.append(session.version)
    assert len(set(versions)) == 6
    with pytest.raises(InvalidInputError, match="nothing to redo"):
        session.act("redo", {})
    assert session.version == versions[-1]


def test_what_is_saved_from_a_session_does_not_change_it(session):
    tree, before = MODEL.tree_, MODEL.labels_
    session.act("cut", {"n_clusters": 2})
    answers = Answers(session)
    for _, _, make in EXPORTS.values():
        make(answers)
    assert (model_of(answers).tree_.n_leaves, len(set(model_of(answers).labels_))) == (2, 2)
    assert session.states[0].model is MODEL
    assert MODEL.tree_ is tree
    assert MODEL.labels_ is before


def test_a_model_that_is_not_fitted_leaves_no_folder(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(InvalidInputError, match="needs a fitted clusterer"):
        ravine.explore(MinimumDensity(3), X, open_browser=False)
    assert list(tmp_path.iterdir()) == []
