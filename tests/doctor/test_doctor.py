"""Each kind of finding on a corpus that has it and on one that has not; the place, the count and the severity."""

from __future__ import annotations

import gzip
import json
import resource
import unicodedata
from pathlib import Path

import pytest

from mt.doctor import summary
from mt.doctor.findings import Diagnosis
from mt.doctor.kinds import BOUNDS, WORDS, Severity
from mt.errors import DataError
from mt.extras import install
from tests.corpora import config, diagnosis, examine, of_kind, pairs, places, write

GOOD = pairs(200)


def kinds(found: Diagnosis, *, least: Severity = Severity.NOTE) -> set[str]:
    return {finding.kind for finding in found.findings if finding.severity >= least}


def test_a_good_corpus_has_no_findings(tmp_path: Path) -> None:
    found = examine(tmp_path, GOOD)
    assert found.findings == []
    (facts,) = found.corpora
    assert (facts.name, facts.role, facts.pairs, facts.usable, facts.sampled) == ("train.en", "train", 200, 200, 200)
    assert not any(facts.counts.values())


# ── one line of 200 is ill ──────────────────────────────────────────────────────────────────────────────────────────

ILL = {
    "undecodable": ("Yesterday a caf\udce9 opened.", None, "train.en:8", Severity.ERROR),
    "carriage_returns": (None, "Gestern kam\rniemand her.", "train.de:8", Severity.WARNING),
    "bom": (None, "Gestern \ufeffkam niemand.", "train.de:8", Severity.WARNING),
    "nul": ("Yesterday\0 nobody came.", None, "train.en:8", Severity.WARNING),
    "control": ("Yesterday \x07nobody came.", None, "train.en:8", Severity.WARNING),
    "c1_controls": ("Yesterday, nobody came \x96 at all.", None, "train.en:8", Severity.WARNING),
    "line_separators": (None, "Gestern kam\u2028niemand.", "train.de:8", Severity.WARNING),
    "private_use": ("Yesterday \ue001 nobody came.", None, "train.en:8", Severity.WARNING),
    "replacement": ("Yesterday at the caf\ufffd.", None, "train.en:8", Severity.WARNING),
    "mojibake": (None, "Gestern Ã¤rgerte es niemanden.", "train.de:8", Severity.WARNING),
    "unnormalised": (None, unicodedata.normalize("NFD", "Gestern ärgerte es niemanden."), "train.de:8", Severity.WARNING),
    "invisible": (None, "Gestern kam nie\u00admand her.", "train.de:8", Severity.WARNING),
    "empty": (None, " \u3000", "train.en:8", Severity.WARNING),
    "duplicates": (GOOD[3][0], GOOD[3][1], "train.en:8", Severity.NOTE),
    "duplicates_normalised": (GOOD[3][0].upper(), GOOD[3][1].replace(" ", "  "), "train.en:8", Severity.NOTE),
    "same_source": (GOOD[3][0], None, "train.en:8", Severity.NOTE),
    "same_target": (None, GOOD[3][1], "train.en:8", Severity.NOTE),
    "copies": (" Yesterday nobody.", "Yesterday nobody. ", "train.en:8", Severity.WARNING),
    "ratio": ("Yesterday nobody came to the green garden.", "Gestern.", "train.en:8", Severity.WARNING),
    "long_lines": ("Yesterday nobody came here. " * 40, "Gestern kam niemand her. " * 40, "train.en:8", Severity.WARNING),
    "numbers": ("Yesterday 12 of 30 came.", "Gestern kamen 21 von 40.", "train.en:8", Severity.NOTE),
    "script": ("Вчера никто не пришёл.", None, "train.en:8", Severity.WARNING),
    "subwords": (None, "Ges@@ tern kam nie@@ mand.", "train.de:8", Severity.WARNING),
    "markup": ("Yesterday <b>nobody</b> came.", None, "train.en:8", Severity.NOTE),
}
WELL = "Yesterday nobody came.", "Gestern kam niemand."
WITH = {
    "duplicates": {"duplicates_normalised"},
    "same_source": {"ratio"},
    "same_target": {"ratio"},
}
"""What else such a line is."""


@pytest.mark.parametrize("kind", ILL)
def test_one_ill_line_is_found_at_its_place(tmp_path: Path, kind: str) -> None:
    src, tgt, place, severity = ILL[kind]
    ill = [WELL[side] if text is None else text.encode("utf-8", "surrogateescape") for side, text in enumerate((src, tgt))]
    found = examine(tmp_path, [*GOOD[:7], ill, *GOOD[8:]])
    (finding,) = of_kind(found, kind)
    assert places([finding]) == [place]
    assert (finding.count, finding.share, finding.corpus, finding.severity) == (1, 1 / 200, "train.en", severity)
    assert found.corpora[0].counts[kind] == 1
    assert kinds(found) - {"byte_characters"} == {kind} | WITH.get(kind, set())


def test_windows_line_ends_and_a_mark_at_the_beginning_are_notes(tmp_path: Path) -> None:
    lines = [(f"{src}\r", tgt) for src, tgt in GOOD]
    found = examine(tmp_path, [("\ufeff" + lines[0][0], lines[0][1]), *lines[1:]])
    assert kinds(found) == {"crlf", "file_bom"}
    assert kinds(found, least=Severity.WARNING) == set()
    (crlf,) = of_kind(found, "crlf")
    assert (crlf.count, crlf.side) == (200, "source")
    assert places(of_kind(found, "file_bom")) == ["train.en:1"]


# ── files ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("lost", "side"), [(100, 1), (100, 0), (20, 1), (150, 0)])
def test_a_lost_line_is_located(tmp_path: Path, lost: int, side: int) -> None:
    sides = [list(lines) for lines in zip(*GOOD, strict=True)]
    del sides[side][lost]
    spec = write(tmp_path, "train", list(zip(*(lines + ["x"] * (len(lines) - 200) for lines in sides), strict=False)))
    for lines, suffix in zip(sides, ("en", "de"), strict=True):
        (tmp_path / f"train.{suffix}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    found = diagnosis(config(tmp_path, train=spec))
    (counts,) = of_kind(found, "line_counts")
    assert counts.severity == Severity.ERROR
    assert ("train.en has 199 lines" in counts.what) == (side == 0)
    (shift,) = of_kind(found, "alignment")
    assert abs(int(places([shift])[0].removeprefix("train.en:")) - lost) <= 3
    assert ("ahead of" in shift.what) == (side == 1)


def test_shares_are_of_all_lines_of_a_side(tmp_path: Path) -> None:
    """Also where a file is longer than its partner."""
    write(tmp_path, "train", [(f"{src}\0", tgt) for src, tgt in GOOD])
    (tmp_path / "train.de").write_text("".join(f"{tgt}\n" for _, tgt in GOOD[:50]), encoding="utf-8")
    found = diagnosis(config(tmp_path, train="{src: train.en, tgt: train.de}"))
    (nul,) = of_kind(found, "nul")
    assert (nul.count, nul.share) == (200, 1.0)
    assert nul.what.startswith("200 of 200 source lines (100.00%) hold NUL")
    assert of_kind(found, "line_counts")[0].what.endswith("train.en:51 is the first without a partner")


def test_a_shift_within_equal_counts_is_an_error(tmp_path: Path) -> None:
    lines = pairs(600)
    shifted = [*lines[:300], *((src, tgt) for (src, _), (_, tgt) in zip(lines[300:], [*lines[301:], lines[0]], strict=True))]
    found = examine(tmp_path, shifted)
    (shift,) = of_kind(found, "alignment")
    assert shift.severity == Severity.ERROR
    assert abs(int(places([shift])[0].removeprefix("train.en:")) - 301) <= 3


@pytest.mark.parametrize("parts", [[4096, 600], [8192, 4096, 600], [300, 600]])
def test_a_shift_in_a_shard_is_told_in_that_shard(tmp_path: Path, parts: list[int]) -> None:
    """Also where shards end where a block of lines does."""
    for number, count in enumerate(parts):
        lines = pairs(count, seed=number)
        if number == len(parts) - 1:
            tgt = [tgt for _, tgt in lines]
            lines = list(zip([src for src, _ in lines], [*tgt[:200], *tgt[201:], tgt[200]], strict=True))
        write(tmp_path, f"part-{number}", lines)
    found = diagnosis(config(tmp_path, train="{src: part-*.en, tgt: part-*.de}"))
    (shift,) = of_kind(found, "alignment")
    name, line = places([shift])[0].split(":")
    assert name == f"part-{len(parts) - 1}.en"
    assert abs(int(line) - 201) <= 3
    assert f"from about {name}:{line} on" in shift.what


def test_shards_in_two_orders_are_strangers(tmp_path: Path) -> None:
    """As part-10 comes before part-2: each is too short to tell, all together do."""
    for number in range(1, 13):
        for (side, name), lines in zip((("en", number), ("de", f"{number:02d}")), zip(*pairs(300, seed=number), strict=True), strict=True):
            (tmp_path / f"part-{name}.{side}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    found = diagnosis(config(tmp_path, train="{src: part-*.en, tgt: part-*.de}"))
    (odd,) = of_kind(found, "strangers")
    assert odd.severity == Severity.WARNING
    assert odd.what.startswith("part-1.en:1 to part-9.en:300: ")
    assert odd.count == 3600


def test_a_shift_among_records_is_told_by_their_origin(tmp_path: Path) -> None:
    """Blank lines and a file before it move the line, and no count of pairs is taken for it."""
    lines = pairs(600)
    tgt = [tgt for _, tgt in lines]
    shifted = zip([src for src, _ in lines], [*tgt[:200], *tgt[201:], tgt[200]], strict=True)
    rows = [json.dumps({"src": src, "tgt": tgt}) for src, tgt in shifted]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"src": src, "tgt": tgt}) + "\n" for src, tgt in GOOD[:50]), encoding="utf-8")
    (tmp_path / "b.jsonl").write_text("\n" * 70 + "".join(f"{row}\n\n" for row in rows), encoding="utf-8")
    found = diagnosis(config(tmp_path, train="{jsonl: '?.jsonl'}"))
    (shift,) = of_kind(found, "alignment")
    name, line = places([shift])[0].split(":")
    assert name == "b.jsonl"
    assert abs(int(line) - (70 + 2 * 200 + 1)) <= 6
    assert "source unit n belongs to target unit n-1" in shift.what


@pytest.mark.parametrize("rows", [["a\tb\tc"], []])
def test_a_shift_among_rows_is_told_by_their_line(tmp_path: Path, rows: list[str]) -> None:
    lines = pairs(600)
    tgt = [tgt for _, tgt in lines]
    rows = rows * 50 + [f"{src}\t{one}" for (src, _), one in zip(lines, [*tgt[:200], *tgt[201:], tgt[200]], strict=True)]
    (tmp_path / "a.tsv").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    found = diagnosis(config(tmp_path, train="{tsv: a.tsv, columns: [0, 1]}" if len(rows) == 600 else "{tsv: a.tsv}"))
    (shift,) = of_kind(found, "alignment")
    assert abs(int(places([shift])[0].removeprefix("a.tsv:")) - (len(rows) - 600 + 201)) <= 3


def test_sides_in_another_order_are_strangers(tmp_path: Path) -> None:
    lines = pairs(1500)
    found = examine(tmp_path, [(src, tgt) for (src, _), (_, tgt) in zip(lines, reversed(lines), strict=True)])
    assert "strangers" in kinds(found, least=Severity.WARNING)


EMPTY_FILES = {
    "x.en": "",
    "x.tsv": "",
    "x.jsonl": "\n",
    "x.csv": "src,tgt\n",
    "x.tmx": '<tmx version="1.4"><header srclang="en"/><body/></tmx>',
    "x.po": 'msgid ""\nmsgstr ""\n\nmsgid "one"\nmsgstr ""\n',
}


@pytest.mark.parametrize("name", EMPTY_FILES)
def test_no_pairs(tmp_path: Path, name: str) -> None:
    for path in (tmp_path / name, tmp_path / "x.de"):
        path.write_text(EMPTY_FILES[name], encoding="utf-8")
    kind = name.partition(".")[2]
    spec = {"en": "{src: x.en, tgt: x.de}", "csv": "{csv: x.csv, columns: [src, tgt]}"}.get(kind, f"{{{kind}: {name}}}")
    found = diagnosis(config(tmp_path, train=spec))
    assert kinds(found, least=Severity.ERROR) == {"no_pairs", "no_tokenizer"}
    assert str(tmp_path / name) in of_kind(found, "no_pairs")[0].what


def test_pairs_of_which_none_can_be_used(tmp_path: Path) -> None:
    found = examine(tmp_path, [("", "")] * 3)
    assert "none of 3 pairs can be used" in of_kind(found, "no_pairs")[0].what


def test_rows_with_the_wrong_number_of_columns(tmp_path: Path) -> None:
    rows = [f"{src}\t{tgt}" for src, tgt in GOOD]
    rows[7] += "\tmore"
    rows[9] = "alone"
    (tmp_path / "train.tsv").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    found = diagnosis(config(tmp_path, train="{tsv: train.tsv}"))
    (finding,) = of_kind(found, "columns")
    assert places([finding]) == ["train.tsv:8", "train.tsv:10"]
    assert (finding.count, finding.share) == (2, 2 / 200)
    assert (found.corpora[0].pairs, found.corpora[0].usable) == (200, 198)


def test_a_file_cut_short_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    write(tmp_path, "train", pairs(8000))
    packed = gzip.compress((tmp_path / "train.en").read_bytes())
    (tmp_path / "train.en.gz").write_bytes(packed[: len(packed) // 2])
    found = diagnosis(config(tmp_path, train="{src: train.en.gz, tgt: train.de}"))
    (finding,) = of_kind(found, "unreadable")
    assert "ends too early" in finding.what
    assert kinds(found, least=Severity.ERROR) == {"unreadable"}
    assert 0 < found.corpora[0].pairs < 8000


@pytest.mark.parametrize(("data", "what"), [("x\ny\n".encode("utf-16"), "UTF-16"), (b"x\ry\rz\r", "carriage returns")])
def test_a_file_of_another_kind(tmp_path: Path, data: bytes, what: str) -> None:
    spec = write(tmp_path, "train", GOOD)
    (tmp_path / "train.de").write_bytes(data)
    found = diagnosis(config(tmp_path, train=spec))
    assert what in of_kind(found, "unreadable")[0].what


def test_no_room_for_what_is_remembered(tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    path = config(tmp_path, train=write(tmp_path, "train", pairs(5000)))
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        with pytest.raises(DataError, match="no room for what is to be remembered of the pairs; set TMPDIR"):
            diagnosis(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


# ── a whole side ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_tokenised_and_lower_cased_sides(tmp_path: Path) -> None:
    found = examine(tmp_path, [(src, tgt.replace(".", " .").lower()) for src, tgt in GOOD])
    assert kinds(found) == {"tokenised", "lower_cased"}
    for finding in found.findings:
        assert (finding.side, finding.severity, finding.count) == ("target", Severity.WARNING, 200)


def test_swapped_languages_are_an_error(tmp_path: Path) -> None:
    russian = {word: f"слово{'абвгдежзиклмнопрстуф'[i]}" for i, word in enumerate({word for src, _ in GOOD for word in src.split()[1:-1]})}
    lines = [(" ".join(["Вчера", *(russian[word] for word in src.split()[1:-1])]), tgt) for src, tgt in GOOD]
    spec = write(tmp_path, "train", lines)
    right = diagnosis(config(tmp_path, train=spec, more="langs: {src: ru, tgt: de}\n"))
    assert "script" not in kinds(right)
    swapped = diagnosis(config(tmp_path, train=spec, more="langs: {src: de, tgt: ru}\n"))
    assert {finding.side for finding in of_kind(swapped, "script") if finding.severity == Severity.ERROR} == {"source", "target"}


# ── filters that are on ─────────────────────────────────────────────────────────────────────────────────────────────


def test_what_a_filter_drops_is_a_note_and_what_none_drops_names_the_setting(tmp_path: Path) -> None:
    lines = [*GOOD, *GOOD[:20], ("Same text.", "Same text.")]
    (off,) = of_kind(examine(tmp_path, lines), "duplicates")
    (on,) = of_kind(examine(tmp_path, lines, "data.filters.duplicates=exact"), "duplicates")
    assert (off.count, off.severity, on.count, on.severity) == (20, Severity.WARNING, 20, Severity.NOTE)
    assert "data.filters.duplicates: exact" in off.cure
    assert on.cure == "training drops them (data.filters.duplicates)"


# ── leakage ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_leakage_is_counted_by_level_and_side(tmp_path: Path) -> None:
    test = pairs(400, seed=9)
    src, tgt = test[0]
    train = write(tmp_path, "train", [*GOOD, (src, tgt), (test[1][0].upper(), "Etwas anderes."), *[("Something else.", test[2][1])] * 2])
    found = diagnosis(config(tmp_path, train=train, test=f"{{news: {write(tmp_path, 'news', test)}}}"))
    numbers = found.leakage["news"]
    assert numbers["exact"] == {"source": 1, "target": 2, "both": 1}
    assert numbers["normalised"] == {"source": 2, "target": 2, "both": 1}
    assert (numbers["pairs"], numbers["met"]) == (400, 3)
    (finding,) = of_kind(found, "leakage")
    assert (finding.corpus, finding.count, finding.severity) == ("news", 3, Severity.WARNING)
    near, exact = "the source of 2, the target of 2, both in one pair of 1", "the source of 1, the target of 2, both in one pair of 1"
    assert finding.what.endswith(f"; the same or nearly: {near}; word for word: {exact}")
    first = finding.examples[0]
    assert (first["origin"], first["train_origin"], first["train_src"]) == ("news.en:1", "train.en:201", src)
    assert {facts.name: facts.counts["leakage"] for facts in found.corpora} == {"train.en": 4, "news": 3}
    assert "leaking: 3 pairs of news and 4 training pairs have a side in common, the same or nearly" in summary.lines(found)


def test_more_than_a_hundredth_is_an_error_and_the_others_are_clean(tmp_path: Path) -> None:
    dev, test = pairs(50, seed=1), pairs(50, seed=2)
    path = config(
        tmp_path,
        train=write(tmp_path, "train", [*GOOD, dev[0]]),
        dev=write(tmp_path, "dev", dev),
        test=f"{{news: {write(tmp_path, 'news', test)}}}",
    )
    found = diagnosis(path)
    (finding,) = of_kind(found, "leakage")
    assert (finding.corpus, finding.severity) == ("dev", Severity.ERROR)
    assert found.leakage["news"]["met"] == 0


def test_held_out_sets_that_share_pairs(tmp_path: Path) -> None:
    dev, test = pairs(50, seed=1), pairs(50, seed=2)
    path = config(
        tmp_path,
        train=write(tmp_path, "train", GOOD),
        dev=write(tmp_path, "dev", dev),
        test=f"{{news: {write(tmp_path, 'news', [*test, dev[3]])}}}",
    )
    found = diagnosis(path)
    assert {(finding.corpus, finding.severity) for finding in of_kind(found, "overlap")} == {
        ("dev", Severity.NOTE),
        ("news", Severity.NOTE),
    }
    assert of_kind(found, "leakage") == []
    assert not any("leaking:" in line for line in summary.lines(found))


def test_one_source_in_two_languages_is_no_overlap(tmp_path: Path) -> None:
    """As dev sets of one model for several target languages mostly are; a pair that is the same in both still is told."""
    source = [src for src, _ in pairs(50, seed=1)]
    sets = {"de": [("Same.", "Same."), *pairs(50, seed=1)], "fr": [("Same.", "Same."), *((src, src[::-1]) for src in source)]}
    train = [write(tmp_path, "train", GOOD), write(tmp_path, "more", pairs(50, seed=2)).replace("}", ", langs: {src: en, tgt: fr}}")]
    for lang, there in sets.items():
        write(tmp_path, f"dev-{lang}", there)
    for second, shared in (("fr", 1), ("de", 51)):
        dev = "".join(
            f"{name}: {{src: dev-{name}.en, tgt: dev-{name}.de, langs: {{src: en, tgt: {lang}}}}}, "
            for name, lang in (("de", "de"), ("fr", second))
        )
        found = diagnosis(config(tmp_path, train=", ".join(train), dev=f"{{{dev}}}"))
        assert {finding.corpus: finding.count for finding in of_kind(found, "overlap")} == dict.fromkeys(("dev de", "dev fr"), shared)


# ── several corpora ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_duplicates_are_told_across_training_corpora_and_names_are_unique(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    first = write(tmp_path, "train", GOOD)
    write(tmp_path / "more", "train", [*pairs(100, seed=4), *GOOD[:5]])
    found = diagnosis(config(tmp_path, train=f"{first}, {{src: more/train.en, tgt: more/train.de}}"))
    assert [facts.name for facts in found.corpora] == ["train.en", "train.en (2)"]
    assert [facts.counts["duplicates"] for facts in found.corpora] == [0, 5]


def test_max_pairs_ends_the_examination(tmp_path: Path) -> None:
    write(tmp_path, "train", [*GOOD[:100], ("Same.", "Same."), *GOOD[101:]])
    for most, copies in ((100, 0), (101, 1)):
        found = diagnosis(config(tmp_path, train=f"{{src: train.en, tgt: train.de, max_pairs: {most}}}"))
        assert (found.corpora[0].pairs, found.corpora[0].counts["copies"]) == (most, copies)


# ── tokenizer ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_characters_without_a_piece(tmp_path: Path) -> None:
    dev = [("Yesterday Ω came.", "Gestern kam Ω."), *pairs(50, seed=3)]
    path = config(tmp_path, train=write(tmp_path, "train", GOOD), dev=write(tmp_path, "dev", dev))
    lost = of_kind(diagnosis(path, "tokenizer.byte_fallback=false"), "lost_characters")
    assert [(finding.corpus, finding.side, finding.count) for finding in lost] == [("dev", "source", 1), ("dev", "target", 1)]
    assert "Ω U+03A9 (1)" in lost[0].what
    spelled = diagnosis(path, "tokenizer.byte_fallback=true", "tokenizer.vocab_size=600")
    assert of_kind(spelled, "lost_characters") == []
    assert [finding.count for finding in of_kind(spelled, "byte_characters")] == [1, 1]


def test_pairs_over_the_length_limit(tmp_path: Path) -> None:
    long = ("Yesterday " + "river bread " * 60, "Gestern " + "fluss brot " * 60)
    found = examine(tmp_path, [*GOOD, long], "data.max_pieces=100")
    (finding,) = of_kind(found, "length_limit")
    assert (finding.count, places([finding])) == (1, ["train.en:201"])
    assert "100 pieces" in finding.what


# ── the tables ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_kind_has_bounds_and_words_in_one_order() -> None:
    assert list(BOUNDS) == list(WORDS)
    for bounds in BOUNDS.values():
        assert bounds.note <= bounds.warning <= bounds.error


# ── languages ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_lines_in_another_language(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stub:
        """Takes each text with a `Si` for Spanish."""

        def __init__(self, *languages: str) -> None:
            assert languages == ("en", "de")

        def knows(self, language: str) -> bool:
            return language == "en"

        def elsewhere(self, text: str, language: str) -> float:
            assert language == "en"
            return 0.95 if "Si" in text else 0.2

    monkeypatch.setattr("mt.doctor.looks.Identifier", Stub)
    found = examine(tmp_path, [*GOOD[:7], ("Si, nobody came there.", "Si, niemand kam hierher."), *GOOD[8:]])
    (finding,) = of_kind(found, "language")
    assert (finding.side, finding.count, places([finding])) == ("source", 1, ["train.en:8"])


@pytest.mark.parametrize(("limit", "severity"), [("null", Severity.WARNING), ("0.95", Severity.WARNING), ("0.8", Severity.NOTE)])
def test_another_language_is_never_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, severity: Severity) -> None:
    """However many lines, as it is a guess; a note where the filter drops all that the doctor finds."""

    class Stub:
        def __init__(self, *languages: str) -> None:
            assert languages == ("en", "de")

        def knows(self, language: str) -> bool:
            return language == "en"

        def elsewhere(self, text: str, language: str) -> float:
            return float(bool(text and language))

    monkeypatch.setattr("mt.doctor.looks.Identifier", Stub)
    found = of_kind(examine(tmp_path, pairs(2500), f"data.filters.languages={limit}"), "language")
    assert [(finding.side, finding.severity) for finding in found] == [("source", severity)]
    assert all(finding.what.endswith("(in a sample)") for finding in found)


class Exact:
    """Knows a few German words; all else is English."""

    def __init__(self, *languages: str) -> None:
        self.knows = languages.__contains__

    def elsewhere(self, text: str, language: str) -> float:
        german = any(f" {word} " in f" {text.lower()} " for word in ("der", "die", "das", "und", "ist", "niemand"))
        return 0.99 if german != (language == "de") else 0.01


HOUSES = [(f"The house {n} is old and small.", f"Das Haus {n} ist alt und klein.") for n in range(50)]


@pytest.mark.parametrize("filtered", ["null", "0.5"])
def test_swapped_sides_are_not_to_be_filtered_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, filtered: str) -> None:
    monkeypatch.setattr("mt.doctor.looks.Identifier", Exact)
    assert not of_kind(examine(tmp_path, HOUSES), "language")
    monkeypatch.setattr("mt.doctor.doctor.installed", lambda: True)
    monkeypatch.setattr("mt.clean.filters.Identifier", Exact)
    found = of_kind(examine(tmp_path, [pair[::-1] for pair in HOUSES], f"data.filters.languages={filtered}"), "language")
    assert [(finding.side, finding.severity) for finding in found] == [("source", Severity.WARNING), ("target", Severity.WARNING)]
    assert all(finding.cure.startswith("are the sides swapped, ") for finding in found)


def test_one_side_in_another_language_is_not_swapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mt.doctor.looks.Identifier", Exact)
    (finding,) = of_kind(examine(tmp_path, [(tgt, f"{tgt} Ja.") for _, tgt in HOUSES]), "language")
    assert (finding.side, finding.cure) == ("source", "look at them, then leave them out (data.filters.languages: 0.9)")


@pytest.mark.parametrize("there", [True, False])
def test_that_languages_were_not_looked_at_is_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool) -> None:
    monkeypatch.setattr("mt.doctor.doctor.installed", lambda: there)
    found = of_kind(examine(tmp_path, GOOD), "unidentified")
    assert [(one.severity, one.what, install("languages") in one.cure) for one in found] == [
        (Severity.NOTE, "languages were not looked at", True)
    ] * (not there)


def test_a_corpus_turned_round_against_its_dev_set(tmp_path: Path) -> None:
    dev = write(tmp_path, "dev", pairs(50, seed=1))
    for columns, count in (("[0, 1]", 0), ("[1, 0]", 1)):
        (tmp_path / "train.tsv").write_text("".join(f"{src}\t{tgt}\n" for src, tgt in GOOD), encoding="utf-8")
        found = of_kind(diagnosis(config(tmp_path, train=f"{{tsv: train.tsv, columns: {columns}}}", dev=dev)), "turned")
        assert [(one.corpus, one.severity) for one in found] == [("train.tsv", Severity.WARNING)] * count
    both = f"{write(tmp_path, 'train', GOOD)}, {{src: train.de, tgt: train.en}}"
    assert not of_kind(diagnosis(config(tmp_path, train=both, dev=dev)), "turned")
