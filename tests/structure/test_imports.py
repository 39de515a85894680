"""The layout keeps its promises: imports point down, light packages stay light, every file has a name and a size that say what it holds."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "mt"
MODULES = sorted(PACKAGE.rglob("*.py"))
HEAVY = ("torch", "datasets", "sacrebleu", "sentencepiece", "pandas", "tensorboard", "matplotlib")


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    code = "from importlinter.cli import lint_imports_command as run; run(['--no-cache', '--no-logo'])"
    return subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, encoding="utf-8")


def heavy_after(code: str) -> list[str]:
    """Run code in a fresh Python; which heavy libraries did it load?"""
    report = f"import sys; print(*[name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", f"{code}\n{report}"], cwd=ROOT, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_imports_point_down() -> None:
    done = lint_imports(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("module", "line", "complaint"),
    [
        ("errors.py", "import mt.files", "mt.errors is not allowed to import mt.files"),
        ("model/loss.py", "import mt.data.store", "mt.model is not allowed to import mt.data"),
        ("search/step.py", "import mt.model.device", "mt.search is not allowed to import mt.model"),
        ("evaluate/metrics.py", "import torch", "mt.evaluate is not allowed to import torch"),
        ("utils.py", "", "mt.utils"),
    ],
)
def test_a_wrong_import_is_seen(tmp_path: Path, module: str, line: str, complaint: str) -> None:
    shutil.copytree(PACKAGE, tmp_path / "mt", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    with (tmp_path / "mt" / module).open("a", encoding="utf-8", newline="\n") as file:
        file.write(f"\n{line}\n")
    done = lint_imports(tmp_path)
    assert done.returncode != 0
    assert complaint in done.stdout


def test_the_package_and_the_command_line_are_light() -> None:
    assert heavy_after("import mt, mt.cli.app") == []


def test_light_packages_never_load_torch() -> None:
    light = [PACKAGE / name for name in ("errors.py", "files.py", "rundir.py", "config", "tokenizer", "evaluate")]
    paths = [path for entry in light for path in ([entry] if entry.is_file() else sorted(entry.glob("*.py")))]
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in paths]
    assert "torch" not in heavy_after(f"import {', '.join(names)}")


def test_public_names_are_there_on_first_use() -> None:
    assert "torch" in heavy_after("from mt import Translator\nassert Translator.__module__ == 'mt.translator'")


def test_an_unknown_public_name_is_an_attribute_error() -> None:
    import mt

    assert set(mt.__all__) <= set(dir(mt))
    with pytest.raises(AttributeError, match="'mt' has no attribute 'Translater'"):
        _ = mt.Translater


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_is_short_enough_to_hold_one_thing(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 330


def test_no_two_files_have_one_name() -> None:
    counts = Counter(path.name for path in MODULES if path.name != "__init__.py")
    assert [name for name, count in counts.items() if count > 1] == []


def test_names_say_what_they_know() -> None:
    vague = {"util", "utils", "helper", "helpers", "common", "misc", "base"}
    assert [path for path in PACKAGE.rglob("*") if path.stem in vague] == []


@pytest.mark.parametrize(
    ("path", "ignored"),
    [
        ("data/europarl/train.en", True),
        ("runs/demo/config.yaml", True),
        ("data/quickstart/train.en", False),
        ("mt/formats/readers.py", False),
        ("tests/formats/test_readers.py", False),
    ],
)
def test_git_ignores_corpora_and_runs_but_no_source(path: str, ignored: bool) -> None:
    done = subprocess.run(["git", "check-ignore", "--no-index", "--quiet", path], cwd=ROOT)
    assert done.returncode == (0 if ignored else 1)
