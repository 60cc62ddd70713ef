"""The files of a release agree with each other and with the package."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import ravine

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
RECIPE = (ROOT / "conda" / "meta.yaml").read_text()
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_the_version_is_the_same_everywhere():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == ravine.__version__
    assert f'version = "{ravine.__version__}"' in RECIPE
    assert "version" in PROJECT["dynamic"]  # read from the package


def test_the_project_has_one_address():
    source = PROJECT["urls"]["Source"]
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["repository-code"] == source
    assert f"home: {source}\n" in RECIPE
    assert all(address.startswith(source) for address in PROJECT["urls"].values())


def test_the_conda_recipe_needs_what_the_package_needs():
    run = RECIPE.split("  run:\n")[1].split("\n\n")[0]
    listed = {line.strip("- ").replace(" ", "") for line in run.splitlines()}
    needed = {one.split(";")[0].lower() for one in PROJECT["dependencies"]}  # conda has no capital letters
    assert listed == {*needed, f"python{PROJECT['requires-python']}"}


def test_the_conda_recipe_has_the_commands_of_the_package():
    assert [f"{name} = {target}" for name, target in PROJECT["scripts"].items()] == re.findall(
        r"    - (ravine = \S+)", RECIPE
    )


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_are_restricted_and_run_targets_of_the_makefile(path):
    workflow = yaml.safe_load(path.read_text())
    assert workflow["permissions"] == {"contents": "read"}
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    for job in workflow["jobs"].values():
        assert all("uses" in step or "run" in step for step in job["steps"])
        for step in job["steps"]:
            assert set(re.findall(r"make ([\w-]+)", step.get("run", ""))) <= targets


def test_classifiers_name_the_pythons_of_the_workflow():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text())
    tested = workflow["jobs"]["systems"]["strategy"]["matrix"]["python"]
    for python in tested:
        assert f"Programming Language :: Python :: {python}" in PROJECT["classifiers"]
    assert PROJECT["requires-python"] == f">={tested[0]}"
