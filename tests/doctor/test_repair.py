"""--fix: a copy in which what it mends and leaves out is not found any more, and a line about everything left out."""

from __future__ import annotations

import random
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.config.load import load
from mt.doctor.doctor import Doctor
from mt.doctor.kinds import Severity
from mt.doctor.repair import mended, refuse_overwriting, repair
from mt.errors import DataError
from tests.corpora import config, diagnosis, pairs, write

GOOD = pairs(60)


def fix(path: Path, prefix: Path, *overrides: str) -> list[str]:
    settings = load(path, overrides).config
    return repair(settings, prefix, Doctor(settings).examine())


def ill_corpus() -> list[tuple[str | bytes, str | bytes]]:
    """Good pairs, and one pair of each kind that is mended or left out."""
    return [
        *GOOD,
        ("\ufeffYesterday one\r", "Gestern eins"),
        ("Yesterday two\u2028more", "Gestern z\u00adwei\x00 mehr"),
        ("Yesterday cafe\u0301", "Gestern Cafe\u0301"),
        (b"Yesterday caf\xe9", "Gestern Caf\u00e9 zu"),
        ("Yesterday nothing", " "),
        GOOD[4],
        ("The held-out sentence is here .", "Etwas ganz anderes"),
        ("The unfit <b>one</b>", "Das <b>Untaugliche</b>"),
    ]


def test_the_copy_is_clean_and_the_rest_is_written_down(tmp_path: Path) -> None:
    test = write(tmp_path, "news", [("the held-out sentence is here", "Der Testsatz ist hier")])
    path = config(tmp_path, train=write(tmp_path, "train", ill_corpus()), test=f"{{news: {test}}}", more="")
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    (line,) = fix(path, tmp_path / "clean", "data.filters.markup=true")

    written = {file.name: file.read_bytes() for file in tmp_path.iterdir() if file.name not in before}
    assert set(written) == {"clean.en", "clean.de", "clean.dropped.tsv"}
    assert all((tmp_path / name).read_bytes() == data for name, data in before.items())
    src, tgt = (written[f"clean.{lang}"].decode().splitlines() for lang in ("en", "de"))
    assert src[:60] == [pair[0] for pair in GOOD]
    assert list(zip(src, tgt, strict=True))[60:] == [
        ("Yesterday one", "Gestern eins"),
        ("Yesterday two more", "Gestern zwei mehr"),
        ("Yesterday caf\u00e9", "Gestern Caf\u00e9"),
    ]
    dropped = [row.split("\t") for row in written["clean.dropped.tsv"].decode().splitlines()]
    assert [row[:2] for row in dropped] == [
        ["train.en:64", "bytes that are not UTF-8"],
        ["train.en:65", "empty side"],
        ["train.en:68", "markup"],
        ["train.en:66", "duplicate"],
        ["train.en:67", "in a dev or test set"],
    ]
    assert dropped[0][2] == "Yesterday caf\\xe9"
    assert line.startswith("train.en: 63 of 68 pairs written to ")
    assert ", 3 of them mended; left out" in line

    again = diagnosis(config(tmp_path, train="{src: clean.en, tgt: clean.de}", test=f"{{news: {test}}}"))
    assert [finding for finding in again.findings if finding.corpus == "clean.en" or finding.kind == "leakage"] == []


PIECES = [*"abä .!?<12\t\u00ad\ufeff\0\x1b\x7f\ufdd0\U0001fffe\u2028\x0b\r\udcff\x85", "e\u0301"]
CURED = {
    "undecodable",
    "carriage_returns",
    "crlf",
    "bom",
    "nul",
    "control",
    "line_separators",
    "unnormalised",
    "empty",
    "duplicates",
    "leakage",
}


@pytest.mark.parametrize("seed", range(4))
def test_nothing_that_the_copy_is_to_be_free_of_is_found_in_it(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)

    def text() -> bytes:
        return "".join(rng.choices(PIECES, k=rng.randint(0, 4))).encode("utf-8", "surrogateescape")

    dev = write(tmp_path, "dev", [(text(), text()) for _ in range(20)])
    path = config(tmp_path, train=write(tmp_path, "train", [*GOOD, *GOOD[:5], *((text(), text()) for _ in range(1500))]), dev=dev)
    told = {kind for kind, count in diagnosis(path).corpora[0].counts.items() if count}
    assert told >= CURED
    fix(path, tmp_path / "clean")
    (facts, _) = diagnosis(config(tmp_path, train="{src: clean.en, tgt: clean.de}", dev=dev)).corpora
    assert {kind: facts.counts[kind] for kind in CURED} == dict.fromkeys(CURED, 0)
    assert facts.pairs >= 60


def test_each_of_several_corpora_has_its_copy(tmp_path: Path) -> None:
    first, second = write(tmp_path, "a", GOOD[:30]), write(tmp_path, "b", GOOD[20:])
    fix(config(tmp_path, train=f"{first}, {second}"), tmp_path / "clean")
    lines = {name: (tmp_path / f"clean.{name}.en.en").read_text(encoding="utf-8").splitlines() for name in ("a", "b")}
    assert lines == {"a": [src for src, _ in GOOD[:30]], "b": [src for src, _ in GOOD[30:]]}


def test_rows_and_unknown_languages(tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_text("a b\tA B\nbroken\nc d\tC D\n", encoding="utf-8")
    fix(config(tmp_path, train="{tsv: x.tsv}"), tmp_path / "clean")
    assert (tmp_path / "clean.src").read_text(encoding="utf-8") == "a b\nc d\n"
    assert (tmp_path / "clean.tgt").read_text(encoding="utf-8") == "A B\nC D\n"
    assert (tmp_path / "clean.dropped.tsv").read_text(encoding="utf-8") == "x.tsv:2\twrong number of columns\tbroken\t\n"


@pytest.mark.parametrize(("tags", "repeated"), [("auto", 0), ("false", 60)])
def test_the_same_texts_in_another_language_are_repeated_only_without_tags(tmp_path: Path, tags: str, repeated: int) -> None:
    write(tmp_path, "train", GOOD)
    both = ", ".join(f"{{src: train.en, tgt: train.de, name: {lang}, langs: {{src: en, tgt: {lang}}}}}" for lang in ("de", "fr"))
    path = config(tmp_path, train=both)
    found = Doctor(load(path, [f"data.tags={tags}"]).config).examine()
    assert [facts.counts["duplicates"] for facts in found.corpora] == [0, repeated]
    assert fix(path, tmp_path / "clean", f"data.tags={tags}")[1].startswith(f"fr: {60 - repeated} of 60 pairs")


def test_sides_that_do_not_belong_together_are_not_copied(tmp_path: Path) -> None:
    path = config(tmp_path, train=write(tmp_path, "train", GOOD))
    with (tmp_path / "train.de").open("a", encoding="utf-8") as file:
        file.write("Eine mehr.\n")
    with pytest.raises(DataError, match=r"--fix .*clean: nothing written, for train.en has to be mended by hand first: .*60 lines.*61"):
        fix(path, tmp_path / "clean")
    assert not list(tmp_path.glob("clean*"))


def test_a_held_out_set_that_cannot_be_compared_keeps_the_copy_from_being_made(tmp_path: Path) -> None:
    dev = write(tmp_path, "dev", pairs(20, seed=1))
    (tmp_path / "dev.de").write_text("Nur eine.\n", encoding="utf-8")
    with pytest.raises(DataError, match="nothing written, for dev has to be mended by hand first"):
        fix(config(tmp_path, train=write(tmp_path, "train", GOOD), dev=dev), tmp_path / "clean")


def test_no_input_is_written_over(tmp_path: Path) -> None:
    path = config(tmp_path, train=write(tmp_path, "train", GOOD))
    with pytest.raises(DataError, match=r"would write over .*train.en, which is read"):
        refuse_overwriting(load(path).config, tmp_path / "train")
    refuse_overwriting(load(path).config, tmp_path / "clean")


@pytest.mark.parametrize("name", ["clean.en", "clean.de", "clean.dropped.tsv"])
def test_no_other_file_is_written_over(tmp_path: Path, name: str) -> None:
    path = config(tmp_path, train=write(tmp_path, "train", GOOD))
    (tmp_path / name).write_text("precious", encoding="utf-8")
    with pytest.raises(DataError, match=rf"{name} is there already; remove it, or give another prefix"):
        refuse_overwriting(load(path).config, tmp_path / "clean")


def test_a_file_that_is_cut_between_examination_and_copy_is_not_copied(tmp_path: Path) -> None:
    path = config(tmp_path, train=write(tmp_path, "train", GOOD))
    settings = load(path).config
    found = Doctor(settings).examine()
    write(tmp_path, "short", GOOD[:30])
    (tmp_path / "short.de").rename(tmp_path / "train.de")
    with pytest.raises(DataError, match="train.en: was changed while it was read, nothing is written"):
        repair(settings, tmp_path / "clean", found)
    assert not list(tmp_path.glob("*clean*"))


def test_two_corpora_never_share_a_copy(tmp_path: Path) -> None:
    first, second = write(tmp_path, "a b", GOOD[:30]), write(tmp_path, "a_b", GOOD[30:])
    with pytest.raises(DataError, match=r"two corpora would be written to .*clean\.a_b\.en\.en"):
        refuse_overwriting(load(config(tmp_path, train=f"{first}, {second}")).config, tmp_path / "clean")


@pytest.mark.parametrize("prefix", [".", "/"])
def test_a_prefix_has_a_name(tmp_path: Path, prefix: str) -> None:
    path = config(tmp_path, train=write(tmp_path, "train", GOOD))
    with pytest.raises(DataError, match="is a folder; give the beginning of names in it"):
        refuse_overwriting(load(path).config, Path(prefix))


def test_a_misread_encoding_loses_no_character(tmp_path: Path) -> None:
    """What was saved as Windows-1252 and read as Latin-1 comes back by the inverse: in the copy as in the original."""
    text = "\u201cAh\u2026\u201d \u2013 \u20ac5, he said."
    misread = text.encode("cp1252").decode("latin-1")
    path = config(tmp_path, train=write(tmp_path, "train", [*GOOD, (misread, "Er sagte das.")]))
    (line,) = fix(path, tmp_path / "clean")
    assert "mended" not in line
    copied = (tmp_path / "clean.en").read_bytes().decode().split("\n")[-2]
    assert copied.encode("latin-1").decode("cp1252") == text
    found = diagnosis(path)
    assert [finding.kind for finding in found.findings if finding.severity == Severity.WARNING and finding.side == "source"] == [
        "c1_controls"
    ]


def test_a_failure_leaves_nothing(tmp_path: Path) -> None:
    path = config(tmp_path, train=write(tmp_path, "train", GOOD))
    settings = load(path).config
    found = Doctor(settings).examine()
    (tmp_path / "clean.dropped.tsv").mkdir()
    before = sorted(tmp_path.iterdir())
    with pytest.raises(DataError, match="is a folder"):
        repair(settings, tmp_path / "clean", found)
    assert sorted(tmp_path.iterdir()) == before


@given(text=st.text(st.sampled_from("aä\u0308e\u0301\u00ad\ufeff\x00\x07\t\u2028\x85\x93\r \u200d\u200b\ue001\ufffd😀\u0939\u094d")))
def test_mending_is_done_once_and_touches_nothing_else(text: str) -> None:
    once = mended(text)
    assert mended(once) == once
    kept = [character for character in text if character in "\t\x85\x93 \u200d\u200b\ue001\ufffd😀\u0939\u094d"]
    assert [character for character in once if character in "\t\x85\x93\u200d\u200b\ue001\ufffd😀\u0939\u094d"] == [
        c for c in kept if c != " "
    ]
    assert unicodedata.is_normalized("NFC", once)
    assert not any(character in once for character in "\u00ad\ufeff\x00\x07\u2028\r")
