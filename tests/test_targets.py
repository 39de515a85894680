"""Several target languages: who has to be told, what is refused, and that a tag is no text, no output and no piece of a limit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mt.decode.engine import Beam, Sampling
from mt.decode.parts import Part, batches_of
from mt.errors import DecodeError
from mt.rundir import RunDir
from mt.translator import Translator
from tests import toy
from tests.translating import in_float64, lively_run, mt

LINES = [*toy.sentences(6, seed=5, shortest=1), "", "bage <2de> ."]
TEXT = "".join(f"{line}\n" for line in LINES).encode()
SHORT = ("decode.max_length_factor=0.5", "decode.max_length_extra=6", "decode.beam=3", "data.dev=none")


def run_of(folder: Path, *languages: str, joint: bool = True, tags: str = "auto") -> RunDir:
    """An untrained run that translates from English to these."""
    corpora = [f"{{src: {folder}/train.src, tgt: {folder}/train.trg, langs: {{src: en, tgt: {lang}}}}}" for lang in languages]
    return lively_run(folder, *SHORT, f"data.train=[{', '.join(corpora)}]", f"data.tags={tags}", f"tokenizer.joint={joint}")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    return run_of(tmp_path_factory.mktemp("two"), "de", "ja")


@pytest.fixture(scope="module")
def translator(run: RunDir) -> Translator:
    return in_float64(run)


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    """It has one target language, and a tag for it."""
    return run_of(tmp_path_factory.mktemp("one"), "de", tags="true")


@pytest.fixture(scope="module")
def untagged(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    return run_of(tmp_path_factory.mktemp("none"), "de")


def texts(translator: Translator, to: str | None = None, lines: list[str] = LINES) -> list[str]:
    return [one.text for one in translator.translate(lines, to=to)]


# ── who has to be told ──────────────────────────────────────────────────────────────────────────────────────────────


def test_a_model_knows_its_target_languages(translator: Translator) -> None:
    assert translator.targets == ("de", "ja")
    assert texts(translator, "de") != texts(translator, "ja")
    assert texts(translator, "de")[6] == ""


def test_the_source_is_tag_and_pieces(translator: Translator) -> None:
    src = translator.tokenizers.src
    for to in translator.targets:
        sources = [[src.tag(to), *src.encode(line)] for line in LINES if line]
        limits = [translator.limit(ids[1:]) for ids in sources]  # a limit does not count the tag
        found = translator.engine.search(sources, Beam.build(translator.config.decode), limits=limits)
        ids = [one.hypotheses[0][1].ids for one in translator.translate(LINES, to=to) if one.hypotheses]
        assert ids == [hypotheses[0].ids for hypotheses in found]


def test_one_target_language_need_not_be_named(single: RunDir) -> None:
    translator = in_float64(single)
    assert translator.targets == ("de",)
    assert texts(translator) == texts(translator, "de")


def test_without_tags_there_is_nothing_to_ask_for(untagged: RunDir) -> None:
    translator = in_float64(untagged)
    assert translator.targets == ()
    assert translator.target().lang == "de"
    assert len(texts(translator)) == len(LINES)


def refusal(translator: Translator, to: str | None) -> str:
    with pytest.raises(DecodeError) as error:
        translator.translate(LINES, to=to)
    return str(error.value)


def test_what_cannot_be_translated_to_is_refused(translator: Translator, untagged: RunDir) -> None:
    assert refusal(translator, None) == "this model translates to de, ja: choose one with --to (in Python: to=…)"
    assert refusal(translator, "fr") == "--to fr: this model does not know that language; it translates to de, ja"
    assert refusal(translator, "<2de>") == "--to <2de>: this model does not know that language; it translates to de, ja"
    said = refusal(in_float64(untagged), "de")
    assert said == "--to de: this model was trained without target-language tags (it goes to de); leave --to out"


# ── what a tag is not ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("joint", [True, False])
def test_tags_belong_to_the_source_and_never_come_out(tmp_path: Path, joint: bool) -> None:
    translator = in_float64(run_of(tmp_path, "de", "ja", joint=joint))
    src, tgt = translator.tokenizers
    assert list(src.tags) == ["de", "ja"]
    assert list(tgt.tags) == (["de", "ja"] if joint else [])
    flat = Sampling(temperature=1e6)  # every id that can come does
    found = translator.translate(["bage depe ."] * 300, to="ja", settings=flat)
    ids = {i for one in found for i in one.hypotheses[0][1].ids}
    assert ids == set(range(tgt.size)) - {tgt.pad, tgt.unk, tgt.bos, tgt.eos, *tgt.tags.values()}


def test_a_tag_in_the_text_is_text(translator: Translator) -> None:
    (((ids),),) = translator.encoded(["<2de> bage ."])
    assert set(translator.tokenizers.src.tags.values()).isdisjoint(ids)
    assert texts(translator, "ja", ["<2de> bage ."]) != texts(translator, "ja", ["bage ."])


def test_the_limit_of_pieces_does_not_count_the_tag(translator: Translator) -> None:
    line = toy.sentences(1, seed=5)[0]
    most = len(translator.tokenizers.src.encode(line))
    data = translator.config.data.model_copy(update={"max_pieces": most})
    other = Translator(
        translator.model, translator.tokenizers, config=translator.config.model_copy(update={"data": data}), device=translator.engine.device
    )
    assert other.translate([line], to="de")[0].flags == translator.translate([line], to="de")[0].flags


@pytest.mark.parametrize("extra", [1, 2])
def test_batches_count_end_mark_and_tag(extra: int) -> None:
    parts = [Part(line, 0, [5] * length) for line, length in enumerate((3, 8, 1, 8, 9, 3, 8, 1, 3))]
    found = batches_of(parts, budget=40, extra=extra)
    assert [part for batch in found for part in batch] == sorted(parts, key=lambda part: -len(part.ids))
    for batch, later in zip(found, found[1:], strict=False):
        longest = len(batch[0].ids) + extra
        assert len(batch) * longest <= 40 < (len(batch) + 1) * longest
        assert later
    assert len(found[0]) == 40 // (9 + extra)
    assert [len(batch) for batch in batches_of(parts, budget=1, extra=extra)] == [1] * len(parts)
    assert batches_of([], budget=40, extra=extra) == []


# ── the command line ────────────────────────────────────────────────────────────────────────────────────────────────


def test_translate_to(run: RunDir) -> None:
    translator = Translator.load(run.path)
    for to in ("de", "ja"):
        assert mt("translate", "--model", run.path, "--to", to, stdin=TEXT).lines == texts(translator, to)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "this model translates to de, ja: choose one with --to (in Python: to=…)"),
        (("--to", "fr"), "--to fr: this model does not know that language; it translates to de, ja"),
    ],
)
def test_a_refusal_is_a_line_and_leaves_no_file(run: RunDir, tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    output = tmp_path / "out"
    done = mt("translate", "--model", run.path, "--output", output, *words, stdin=TEXT)
    assert (done.code, done.err, done.out) == (2, [said], b"")
    assert not output.exists()
    toy.write_lines(output, LINES)
    done = mt("eval", "--model", run.path, "--src", output, "--ref", output, *words)
    assert (done.code, done.out) == (2, b"")


def test_eval_to(run: RunDir, tmp_path: Path) -> None:
    toy.write_lines(tmp_path / "in", LINES)
    toy.write_lines(tmp_path / "ref", LINES)
    toy.write_lines(tmp_path / "hyp", texts(Translator.load(run.path), "ja"))
    scores = []
    for words in (("--model", run.path, "--src", tmp_path / "in", "--to", "ja"), ("--hyp", tmp_path / "hyp", "--lang", "ja")):
        done = mt("eval", *words, "--ref", tmp_path / "ref", "--metrics", "bleu,chrf", "--json", tmp_path / "s.json")
        assert done.code == 0
        scores.append(json.loads((tmp_path / "s.json").read_text(encoding="utf-8")))
    assert scores[0]["metrics"] == scores[1]["metrics"]
    assert "|tok:ja-mecab" in scores[0]["metrics"][0]["signature"]
    assert scores[0]["hypotheses"]["to"] == scores[0]["lang"] == "ja"


def test_eval_to_goes_with_a_model(tmp_path: Path) -> None:
    done = mt("eval", "--hyp", tmp_path / "x", "--ref", tmp_path / "y", "--to", "de")
    assert (done.code, done.err) == (2, ["--to goes with --model RUN, not with --hyp, whose translations exist already"])
