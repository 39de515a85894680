"""Which way each corpus goes, which languages have tags, and what is refused about them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mt.config.directions import langs_of, sources, tag_of, tags, target_of, targets
from mt.config.load import dump, load

BOTH = "data:\n  train:\n  - {src: a.en, tgt: a.de}\n  - {src: b.en, tgt: b.fr}\n  dev: {src: d.en, tgt: d.fr}\n"
TSV = """\
data:
  train:
  - {tsv: a.tsv, langs: {src: en, tgt: de}}
  - {tsv: b.tsv, langs: {src: de, tgt: en}}
  - {tsv: c.tsv}
  dev: none
"""
UNKNOWN = "its languages are not known, and the others have tags for"
CURE = "give it langs, such as {src: en, tgt: de}"


def ways(config: Any) -> list[str]:
    return [f"{langs.src}-{langs.tgt}" if (langs := langs_of(config, corpus)) else "?" for corpus in config.data.train]


def test_one_direction_needs_no_tags(read) -> None:
    config = read("").config
    assert (targets(config), tags(config), tag_of(config, config.data.dev)) == (("de",), (), None)
    assert target_of(config, config.data.dev) == "de"
    assert config.data.train[0].langs is None


def test_the_source_languages_are_all_but_the_one_that_is_translated_to(read) -> None:
    more = "  - {src: c.de, tgt: c.en-GB}\n  dev:"
    config = read(BOTH.replace("  dev:", more), data=False).config
    assert [sources(config, to=to) for to in (None, "fr", "de", "EN", "en-GB")] == [("en", "de")] * 2 + [("en",), ("de",), ("en", "de")]


def test_several_target_languages_have_tags(read) -> None:
    config, warnings = read(BOTH, data=False)
    assert ways(config) == ["en-de", "en-fr"]
    assert tags(config) == ("de", "fr")
    assert [tag_of(config, corpus) for corpus in (*config.data.train, config.data.dev)] == ["de", "fr", "fr"]
    assert config.langs is None
    assert warnings == ()


def test_languages_of_a_corpus_come_before_those_of_its_name_and_of_the_config(read) -> None:
    text = """\
langs: {src: en, tgt: de}
data:
  train:
  - {src: a.en, tgt: a.fr}
  - {src: a.en, tgt: a.fr, langs: {src: en, tgt: nl}}
  dev: none
"""
    config = read(text, data=False).config
    assert ways(config) == ["en-de", "en-nl"]
    assert tags(config) == ("de", "nl")


def test_many_to_one_needs_no_tags(read) -> None:
    text = "data: {train: [{src: a.en, tgt: a.de}, {src: b.fr, tgt: b.de}], dev: {tsv: d.tsv}}"
    config = read(text, data=False).config
    assert (ways(config), tags(config)) == (["en-de", "fr-de"], ())
    assert target_of(config, config.data.dev) == "de"


@pytest.mark.parametrize(("setting", "expected"), [("true", ("de",)), ("false", ()), ("auto", ())])
def test_tags_of_one_language_where_they_are_asked_for(read, setting: str, expected: tuple[str, ...]) -> None:
    assert tags(read("", f"data.tags={setting}").config) == expected


def test_tags_can_be_left_out_though_that_is_doubted(read) -> None:
    config, warnings = read(BOTH + "  tags: false\n", data=False)
    assert tags(config) == ()
    assert warnings == ("x.yaml:6: data.tags: without them nothing tells the model which of 'de', 'fr' to translate to",)


def test_synthetic_is_said_of_training_corpora_and_not_of_all(read, problems) -> None:
    text = "data:\n  train:\n  - {src: a.en, tgt: a.de}\n  - {src: b.en, tgt: b.de, synthetic: true}\n  dev: {src: d.en, tgt: d.de}\n"
    config, warnings = read(text, data=False)
    assert ([corpus.synthetic for corpus in config.data.train], tags(config), warnings) == ([False, True], (), ())
    (warning,) = read(text.replace("tgt: a.de", "tgt: a.de, synthetic: true"), data=False).warnings
    assert warning.startswith(
        "x.yaml:3: data.train.0.synthetic: so are all training corpora: without one that is not, the model never sees"
    )
    refused = "nobody marks what is to be translated; leave it out, it is for training corpora"
    assert problems(text.replace("tgt: d.de", "tgt: d.de, synthetic: true"), data=False) == [f"x.yaml:5: data.dev.synthetic: {refused}"]


def test_a_complete_config_stays_what_it_is(read, folder: Path) -> None:
    config = read(BOTH, data=False).config
    (folder / "again.yaml").write_text(dump(config), encoding="utf-8")
    assert load(folder / "again.yaml").config == config


def test_both_directions_are_no_mistake(read) -> None:
    text = "data: {train: [{src: a.en, tgt: a.de}, {src: a.de, tgt: a.en}], dev: {src: d.de, tgt: d.en}}"
    config, warnings = read(text, data=False)
    assert (ways(config), tags(config), warnings) == (["en-de", "de-en"], ("de", "en"), ())


SEVERAL = "{german: {src: d.en, tgt: d.de}, french: {src: d.en, tgt: d.fr}}"


def test_several_dev_sets_have_names_and_directions(read, folder: Path) -> None:
    config, warnings = read(BOTH.replace("{src: d.en, tgt: d.fr}", SEVERAL), data=False)
    assert [(name, tag_of(config, one), target_of(config, one)) for name, one in config.data.dev_sets().items()] == [
        ("german", "de", "de"),
        ("french", "fr", "fr"),
    ]
    assert warnings == ()
    assert config.data.dev_sets()["french"].paths() == [folder / "d.en", folder / "d.fr"]
    (folder / "again.yaml").write_text(dump(config), encoding="utf-8")
    assert load(folder / "again.yaml").config == config
    assert read(BOTH, data=False).config.data.dev_sets().keys() == {"d.en"}
    assert read("", "data.dev=none").config.data.dev_sets() == {}


@pytest.mark.parametrize(
    ("dev", "problem"),
    [
        ("{german: {src: d.en, tgt: d.nl}}", "data.dev.german: goes to 'nl', but no training corpus does (they go to 'de', 'fr'); "),
        ("{german: {src: d.en, target: d.de}}", "data.dev.german.target: unknown key, did you mean `data.dev.german.tgt`?"),
        ("{german: {src: d.en}}", "data.dev.german.tgt: is missing; add it"),
        ("{german: {tsv: d.tsv, csv: d.csv}}", "data.dev.german.csv: does not go with tsv; remove one of the two"),
        ("{src: d.en, target: d.de}", "data.dev.target: unknown key, did you mean `data.dev.tgt`?"),
        ("{german: d.tsv}", "data.dev.german: unknown key; possible here: name, "),
        ("{src: d.en, tgt: d.de, langs: {source: en, tgt: de}}", "data.dev.langs.source: unknown key, did you mean `data.dev.langs.src`?"),
    ],
)
def test_what_is_wrong_with_a_dev_set_names_it(problems, dev: str, problem: str) -> None:
    assert problems(BOTH.replace("{src: d.en, tgt: d.fr}", dev), data=False)[0].startswith(f"x.yaml:5: {problem}")


def test_a_dev_set_in_another_language_is_doubted(read) -> None:
    text = "data: {train: [{src: a.en, tgt: a.de}], dev: {tsv: d.tsv, langs: {src: en, tgt: fr}}}"
    (warning,) = read(text, data=False).warnings
    assert warning == "x.yaml:1: data.dev: goes to 'fr', but no training corpus does (they go to 'de')"


SETS = "dev: {german: {src: d.en, tgt: d.de}, french: {src: d.en.gz, tgt: d.fr.gz}}"


def test_a_training_corpus_whose_languages_were_forgotten_is_told_by_the_dev_sets(read) -> None:
    text = f"data:\n  train: [{{src: a.en.gz, tgt: a.de.gz}}, {{tsv: enfr.tsv}}]\n  {SETS}\n  test: {{news: {{src: n.en, tgt: n.fr}}}}"
    what = "goes to 'fr', but no training corpus does (they go to 'de')"
    cure = "if data.train.1 (enfr.tsv) does, give it langs: {src: en, tgt: fr}"
    assert read(text, data=False).warnings == (f"x.yaml:3: data.dev.french: {what}; {cure}", f"x.yaml:4: data.test.news: {what}; {cure}")
    (warning,) = read(text.replace(", {tsv: enfr.tsv}", ""), "data.test={}", data=False).warnings
    assert warning.endswith(what)
    mended = read(text, "data.train.1.langs={src: en, tgt: fr}", data=False)
    assert (tags(mended.config), mended.warnings) == (("de", "fr"), ())


@pytest.mark.parametrize("langs", ["{src: en, tgt: de-AT}", "{src: eng, tgt: deu}", "{src: english, tgt: german}"])
def test_another_name_for_a_language_is_not_another_language(read, langs: str) -> None:
    assert read("data: {train: [{tsv: a.tsv}], dev: {src: d.en, tgt: d.de}}", f"langs={langs}", data=False).warnings == ()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "data: {train: [{tsv: a}], dev: none, tags: true}",
            "1: data.tags: no target language is known; give langs, such as {src: en, tgt: de}",
        ),
        (
            TSV,
            f"5: data.train.2: {UNKNOWN} 'de', 'en'; {CURE}",
        ),
        (
            BOTH.replace("d.en, tgt: d.fr", "d.en, tgt: d.nl"),
            "5: data.dev: goes to 'nl', but no training corpus does (they go to 'de', 'fr'); "
            "a model cannot translate to a language it was not trained on",
        ),
        (
            BOTH + "  test:\n    news: {tsv: n.tsv}\n",
            f"7: data.test.news: {UNKNOWN} 'de', 'fr'; {CURE}",
        ),
        (
            "langs: {src: en, tgt: zh CN}\ndata: {train: [{tsv: a}], dev: none, tags: true}",
            "2: data.train.0: the language 'zh CN' cannot be in a tag; use letters, digits, - and _, as in pt-BR",
        ),
    ],
)
def test_what_cannot_work_is_refused_in_a_line(problems, text: str, problem: str) -> None:
    assert problems(text, data=False) == [f"x.yaml:{problem}"]


def test_a_text_has_one_letter_case(problems, read) -> None:
    problem = "x.yaml:2: data.augment.upper_case: upper_case 0.6 and title_case 0.5 are more than 1 together; lower one of them"
    text = "data: {train: [{tsv: a}], dev: none,\n  augment: {upper_case: 0.6, title_case: 0.5}}"
    assert problems(text, data=False) == [problem]
    assert read(text.replace("0.6", "0.5"), data=False).config.data.augment.upper_case == 0.5
