"""Files that appear complete or not at all, one by one and several together."""

import os
import stat

import pytest

from ravine.io.atomic import all_or_none, write_atomically


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def write_all(folder, files):
    with all_or_none() as place:
        for name in files:
            write_atomically(place(folder / name), name.encode())


def test_files_appear_together_at_the_end(tmp_path):
    (tmp_path / "target").write_text("old")
    (tmp_path / "link.csv").symlink_to("target")
    with all_or_none() as place:
        for name in ("a.csv", "link.csv"):
            assert place(tmp_path / name).suffix == ".csv"
            write_atomically(place(tmp_path / name), b"new")
        assert not (tmp_path / "a.csv").exists()
        assert (tmp_path / "target").read_text() == "old"
    assert names(tmp_path) == ["a.csv", "link.csv", "target"]
    assert (tmp_path / "link.csv").is_symlink()
    assert [(tmp_path / name).read_text() for name in ("a.csv", "target")] == ["new", "new"]


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_an_error_before_the_end_leaves_nothing(tmp_path, error):
    def files():
        yield "a"
        raise error

    with pytest.raises(error):
        write_all(tmp_path, files())
    assert names(tmp_path) == []


def test_permissions_are_those_of_a_new_file_and_the_umask_is_not_set(tmp_path, monkeypatch):
    (tmp_path / "usual").touch()
    monkeypatch.setattr(os, "umask", None)
    write_all(tmp_path, "a")
    write_atomically(tmp_path / "b", b"")
    modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert len(modes) == 1
