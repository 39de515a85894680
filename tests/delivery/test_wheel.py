"""The wheel: builds without network, holds what the program needs and nothing else, and says what it is."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

import mt

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
QUICKSTART = {f"mt/quickstart/{name}.{side}" for name in ("train", "dev", "test") for side in ("en", "de")} | {
    "mt/quickstart/quickstart.yaml"
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """By the installed build backend: nothing is fetched."""
    folder = tmp_path_factory.mktemp("wheel")
    words = [
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "--disable-pip-version-check",
        "--wheel-dir",
        folder,
        ROOT,
    ]
    done = subprocess.run([sys.executable, "-m", "pip", *map(str, words)], capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stdout + done.stderr
    (made,) = folder.iterdir()
    return made


@pytest.fixture(scope="module")
def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as packed:
        return {name for name in packed.namelist() if not name.endswith("/")}


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as packed:
        (name,) = (name for name in packed.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(packed.read(name).decode("utf-8"))


def test_it_is_for_any_system_and_named_after_project_and_version(wheel: Path) -> None:
    assert wheel.name == f"{PROJECT['name'].replace('-', '_')}-{mt.__version__}-py3-none-any.whl"


def test_it_holds_every_file_of_the_package_and_the_quickstart(names: set[str]) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "mt"], cwd=ROOT, capture_output=True, encoding="utf-8"
    )
    assert listed.returncode == 0, listed.stderr
    tracked = set(listed.stdout.splitlines())
    assert {"mt/py.typed", "mt/page/look.css"} < tracked <= names
    assert names - tracked == QUICKSTART | {name for name in names if ".dist-info/" in name}


def test_there_is_no_test_no_run_and_no_cache_in_it(names: set[str]) -> None:
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == {"mt"}
    assert [name for name in names if "__pycache__" in name or name.endswith((".pyc", ".safetensors", ".model"))] == []


def test_the_quickstart_in_it_is_the_one_of_the_repository(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        for name in QUICKSTART:
            file = Path(name).name
            folder = "configs" if file.endswith(".yaml") else "data/quickstart"
            assert packed.read(name) == (ROOT / folder / file).read_bytes()


def test_the_archive_of_sources_has_what_a_wheel_is_made_of(tmp_path: Path, names: set[str]) -> None:
    words = [sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--directory", str(tmp_path)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    (made,) = tmp_path.iterdir()
    with tarfile.open(made) as packed:
        inside = {name.partition("/")[2] for name in packed.getnames()}
    package = {name for name in names if not name.startswith("mt/quickstart/") and ".dist-info/" not in name}
    assert package | {"configs/quickstart.yaml", "data/quickstart/train.en", "README.md", "LICENSE", "pyproject.toml"} <= inside
    assert not {name.partition("/")[0] for name in inside} & {"tests", "runs", "shared", ".venv", "site"}


def test_its_metadata_are_those_of_the_project(metadata: Message) -> None:
    assert (metadata["Name"], metadata["Version"], metadata["Requires-Python"]) == (
        PROJECT["name"],
        mt.__version__,
        PROJECT["requires-python"],
    )
    assert metadata["License-Expression"] == PROJECT["license"]
    assert set(metadata.get_all("Provides-Extra", [])) == set(PROJECT["optional-dependencies"])
    needed = [line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]
    assert sorted(needed) == sorted(PROJECT["dependencies"])
    assert "# mt\n" in str(metadata.get_payload())


def test_its_command_is_mt(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        (name,) = (name for name in packed.namelist() if name.endswith(".dist-info/entry_points.txt"))
        assert packed.read(name).decode("utf-8").splitlines() == ["[console_scripts]", "mt = mt.__main__:main"]


def test_unpacked_anywhere_it_runs_and_writes_the_quickstart(wheel: Path, tmp_path: Path) -> None:
    """Nothing of the repository is needed: the package is imported from where the wheel was unpacked."""
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(tmp_path / "site")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r}); sys.argv = ['mt', 'quickstart']; from mt.__main__ import main; main()"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], cwd=tmp_path, capture_output=True, encoding="utf-8", env={})
    assert done.returncode == 0, done.stderr
    assert "next: mt train --config quickstart/quickstart.yaml\n" in done.stdout
    assert (tmp_path / "quickstart" / "train.de").read_bytes() == (ROOT / "data" / "quickstart" / "train.de").read_bytes()
