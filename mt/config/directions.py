"""Which way each corpus goes, which target languages are asked for with a tag, and which sources are marked as synthetic."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mt.config.languages import closeness, corpora, differs, named, quoted
from mt.config.schema import Config, Corpus, DataConfig, Langs
from mt.config.stage import Trail

CODE = re.compile(r"[A-Za-z0-9]+([-_][A-Za-z0-9]+)*")


def langs_of(config: Config, corpus: Corpus) -> Langs | None:
    """The languages of a corpus of a complete config: its own, else those of the config; None where neither is known."""
    return corpus.langs or config.langs


def targets(config: Config) -> tuple[str, ...]:
    """The target languages of the training corpora, each once, in their order."""
    found = [langs.tgt for corpus in config.data.train if (langs := langs_of(config, corpus))]
    return tuple(dict.fromkeys(found))


def sources(config: Config, *, to: str | None) -> tuple[str, ...]:
    """The source languages of the training corpora, each once, in their order, without the one that is translated to."""
    found = [langs.src for corpus in config.data.train if (langs := langs_of(config, corpus))]
    return tuple(dict.fromkeys(lang for lang in found if not (to and closeness(lang, to) == 0)))


def tags(config: Config) -> tuple[str, ...]:
    """The target languages that have a tag; none where the source needs none (`data.tags`)."""
    found, wanted = targets(config), config.data.tags
    return found if wanted is True or (wanted == "auto" and len(found) > 1) else ()


def tag_of(config: Config, corpus: Corpus) -> str | None:
    """The language of the tag before each source of a corpus; None without tags."""
    langs = langs_of(config, corpus)
    return langs.tgt if langs and tags(config) else None


def target_of(config: Config, corpus: Corpus) -> str | None:
    """The language that the scores of a corpus are in; where it is not said, the only one that is trained on."""
    langs, found = langs_of(config, corpus), targets(config)
    return langs.tgt if langs else found[0] if len(found) == 1 else None


def with_directions(data: DataConfig) -> DataConfig | None:
    """The corpora, each with the languages its own file names tell; None where those of the training corpora are no more than one pair."""
    if len({langs for corpus in data.train if (langs := named(corpus))}) < 2:
        return None

    def told(corpus: Corpus) -> Corpus:
        return corpus.model_copy(update={"langs": named(corpus)})

    def all_told(sets: dict[str, Corpus]) -> dict[str, Corpus]:
        return {name: told(corpus) for name, corpus in sets.items()}

    dev = data.dev if data.dev is None or data.dev == "none" else all_told(data.dev) if isinstance(data.dev, dict) else told(data.dev)
    return data.model_copy(update={"train": [told(corpus) for corpus in data.train], "dev": dev, "test": all_told(data.test)})


def refusals(config: Config) -> Iterator[tuple[Trail, str]]:
    """Everything about the directions of a complete config that cannot work, with its cure."""
    found, tagged = targets(config), tags(config)
    for trail, corpus in corpora(config.data):
        if corpus.synthetic and trail[1] != "train":
            yield (*trail, "synthetic"), "nobody marks what is to be translated; leave it out, it is for training corpora"
    if config.data.tags is True and not found:
        yield ("data", "tags"), "no target language is known; give langs, such as {src: en, tgt: de}"
    if not tagged:
        return
    cure = "give it langs, such as {src: en, tgt: de}"
    for trail, corpus in corpora(config.data):
        langs = langs_of(config, corpus)
        if langs is None:
            yield trail, f"its languages are not known, and the others have tags for {quoted(tagged)}; {cure}"
        elif langs.tgt not in tagged:
            what = f"goes to {langs.tgt!r}, but no training corpus does (they go to {quoted(tagged)})"
            yield trail, f"{what}; a model cannot translate to a language it was not trained on"
        elif not CODE.fullmatch(langs.tgt):
            yield trail, f"the language {langs.tgt!r} cannot be in a tag; use letters, digits, - and _, as in pt-BR"


def doubts(config: Config) -> Iterator[tuple[Trail, str]]:
    """What is hardly meant."""
    found = targets(config)
    if config.data.tags is False and len(found) > 1:
        yield ("data", "tags"), f"without them nothing tells the model which of {quoted(found)} to translate to"
    if all(corpus.synthetic for corpus in config.data.train):
        what = "so are all training corpora: without one that is not, the model never sees a source without <bt>, as it has to translate"
        yield ("data", "train", 0, "synthetic"), what
    yield from _strangers(config, found)


def _strangers(config: Config, found: tuple[str, ...]) -> Iterator[tuple[Trail, str]]:
    """Corpora that go, as they or their file names say, to a language that no training corpus goes to."""
    known = {*found, *(langs.tgt for corpus in config.data.train if (langs := named(corpus)))}
    unnamed = [f"data.train.{i} ({corpus.called()})" for i, corpus in enumerate(config.data.train) if not named(corpus)]
    for trail, corpus in corpora(config.data):
        langs = named(corpus)
        turned = config.langs and not corpus.langs and langs == Langs(src=config.langs.tgt, tgt=config.langs.src)
        if langs and differs(langs.tgt, known) and not turned:
            cure = f"; if {unnamed[0]} does, give it langs: {{src: {langs.src}, tgt: {langs.tgt}}}" if unnamed else ""
            yield trail, f"goes to {langs.tgt!r}, but no training corpus does (they go to {quoted(found)}){cure}"
