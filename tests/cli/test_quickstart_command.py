"""`mt quickstart`: a corpus and a config, wherever they are wanted, that are those of the repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from mt.config.load import load
from mt.errors import MTError
from tests.runs import mt, tree

ROOT = Path(__file__).parents[2]


def test_what_is_written_is_what_the_repository_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert mt("quickstart", capsys=capsys).code == 0
    written = tree(tmp_path / "quickstart")
    config = written.pop("quickstart.yaml").decode()
    assert written == {name: text for name, text in tree(ROOT / "data" / "quickstart").items() if name.partition(".")[2] in ("en", "de")}
    assert config.startswith("# mt train --config quickstart.yaml\n")
    assert config.count("\n") == (ROOT / "configs" / "quickstart.yaml").read_text(encoding="utf-8").count("\n")


def test_the_config_is_the_same_but_for_where_its_corpus_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert mt("quickstart", "new", capsys=capsys).code == 0
    ours, theirs = (load(path).config for path in (Path("new/quickstart.yaml"), ROOT / "configs" / "quickstart.yaml"))
    assert ours != theirs
    assert ours.model_dump(exclude={"data"}) == theirs.model_dump(exclude={"data"})
    moved = str(theirs.model_dump()).replace(str(ROOT / "data" / "quickstart"), str(tmp_path / "new"))
    assert str(ours.model_dump()) == moved


@pytest.mark.parametrize(("what", "told"), [("folder", "is there already"), ("file", "is a file")])
def test_nothing_is_written_over(what: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "mine"
    if what == "folder":
        place.mkdir()
        (place / "dear").write_text("x", encoding="utf-8")
    else:
        place.write_text("x", encoding="utf-8")
    before = tree(tmp_path)
    done = mt("quickstart", place, capsys=capsys)
    assert (done.code, done.lines) == (2, [f"{place}: {told}; give another folder: mt quickstart DIR"])
    assert tree(tmp_path) == before


def test_a_second_time_it_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    mt("quickstart", capsys=capsys)
    before = tree(tmp_path)
    done = mt("quickstart", capsys=capsys)
    assert (done.code, len(done.lines)) == (2, 1)
    assert "is there already, with its quickstart.yaml; go on with mt train --config quickstart/quickstart.yaml, or" in done.lines[0]
    assert tree(tmp_path) == before


def test_a_place_that_cannot_be_written_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    done = mt("quickstart", tmp_path / "file" / "new", capsys=capsys)
    assert done.code == 2
    assert len(done.lines) == 1
    assert "give another folder" in done.lines[0]


def test_it_prints_what_to_do_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    from mt.cli.quickstart_command import quickstart

    monkeypatch.chdir(tmp_path)
    quickstart(Path("a b"))
    assert "next: mt train --config 'a b/quickstart.yaml'\n" in capfd.readouterr().out
    with pytest.raises(MTError):
        quickstart(Path("a b"))
