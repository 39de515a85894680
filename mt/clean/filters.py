"""Which pairs are not trained on, and why: pure functions from a pair to a reason, and a tally that reports them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sized
from functools import partial

from mt.clean import traits
from mt.clean.flags import is_copied, is_uneven
from mt.clean.identify import Identifier
from mt.clean.scripts import scripts_of
from mt.clean.tally import Tally, table, table_json
from mt.config.cleaning import FilterConfig
from mt.config.directions import langs_of
from mt.config.schema import Config, Langs
from mt.errors import ConfigError
from mt.formats.pairs import EMPTY, Pair, drop_reason

__all__ = [
    "EMPTY",
    "Filter",
    "Tally",
    "TextFilters",
    "drop_reason",
    "in_other_script",
    "length_reason",
    "refuse_what_cannot_filter",
    "table",
    "table_json",
]

Filter = Callable[[Pair], str | None]
"""The reason to drop a pair, or None."""


def length_reason(src_ids: Sized, tgt_ids: Sized, *, max_pieces: int) -> str | None:
    """`longer than N pieces` if a side is, else None. Pieces count neither end mark nor tag.

    A side of no pieces at all is an `empty side`: normalisation may leave nothing of one that was not blank.
    """
    if not len(src_ids) or not len(tgt_ids):
        return EMPTY
    if max(len(src_ids), len(tgt_ids)) > max_pieces:
        return f"longer than {max_pieces} piece{'' if max_pieces == 1 else 's'}"
    return None


class TextFilters:
    """The filters on text that a config turns on, as one function: the first reason to drop a pair, or None. Pure, and can be pickled.

    Flaws and empty sides come first, then the cheaper filters: a pair has one reason, always the same one.
    """

    def __init__(self, cfg: FilterConfig, langs: Langs | None) -> None:
        """Raises ConfigError where a filter needs languages that nobody named, or a library that is not installed."""
        self._filters = [drop_reason, *_on_texts(cfg), *_on_languages(cfg, langs)]

    def __call__(self, pair: Pair) -> str | None:
        """Why the pair is not trained on; None if it is."""
        for reason in self._filters:
            if found := reason(pair):
                return found
        return None


def refuse_what_cannot_filter(config: Config) -> None:
    """Raise ConfigError where a filter of the training corpora needs what is not there, as training would."""
    for corpus in config.data.train:
        TextFilters(config.data.filters, langs_of(config, corpus))


def _on_texts(cfg: FilterConfig) -> Iterator[Filter]:
    """The filters that need no language, cheapest first."""
    if (most := cfg.max_chars) is not None:
        yield partial(_longer, most, f"longer than {most} character{'' if most == 1 else 's'}")
    if cfg.max_ratio is not None:
        yield partial(_uneven, cfg.max_ratio, f"one side more than {cfg.max_ratio:g} times the other")
    if cfg.copies:
        yield partial(_copied, "source = target")
    if cfg.control:
        yield partial(_either, traits.has_control, "control characters")
    if cfg.markup:
        yield partial(_either, traits.has_markup, "markup")
    shares = (
        (traits.digit_share, cfg.max_digits, "digits"),
        (traits.symbol_share, cfg.max_symbols, "symbols"),
        (traits.repeated_share, cfg.max_repeats, "repeated n-grams"),
    )
    for share, limit, what in shares:
        if limit is not None:
            yield partial(_above, share, limit, f"more than {_percent(limit)} {what}")


def _on_languages(cfg: FilterConfig, langs: Langs | None) -> Iterator[Filter]:
    """The filters that need the languages; what is not known about a language is not asked of its texts."""
    on = {"scripts": cfg.scripts, "languages": cfg.languages is not None}
    if langs is None:
        if needy := [f"data.filters.{key}" for key, is_on in on.items() if is_on]:
            raise ConfigError(f"{needy[0]} needs to know the languages; name them with langs: {{src: …, tgt: …}}")
        return
    sides = ((0, "source", langs.src), (1, "target", langs.tgt))
    if cfg.scripts:
        for side, name, lang in sides:
            if scripts := scripts_of(lang):
                yield partial(_in_other_script, side, scripts, f"{name} not in the script of {lang}")
    if cfg.languages is not None:
        identifier = Identifier(langs.src, langs.tgt)
        for side, name, lang in sides:
            if identifier.knows(lang):
                reason = f"{name} in another language than {lang} (over {_percent(cfg.languages)})"
                yield partial(_in_other_language, side, identifier, lang, cfg.languages, reason)


def _percent(share: float) -> str:
    return f"{100 * share:.4g}%"


def _text(pair: Pair, side: int) -> str:
    return pair.tgt if side else pair.src


# ── one filter each: settings, the reason, the pair ─────────────────────────────────────────────────────────────────


def _longer(limit: int, reason: str, pair: Pair) -> str | None:
    return reason if len(pair.src) > limit or len(pair.tgt) > limit else None


def _uneven(limit: float, reason: str, pair: Pair) -> str | None:
    return reason if is_uneven(pair.src, pair.tgt, limit) else None


def _copied(reason: str, pair: Pair) -> str | None:
    return reason if is_copied(pair.src, pair.tgt) else None


def _either(trait: Callable[[str], bool], reason: str, pair: Pair) -> str | None:
    return reason if trait(pair.src) or trait(pair.tgt) else None


def _above(share: Callable[[str], float], limit: float, reason: str, pair: Pair) -> str | None:
    return reason if share(pair.src) > limit or share(pair.tgt) > limit else None


FEWEST_LETTERS = 4  # in a wrong script: below, it may be `OK`, `USB` or a unit
_ADDRESS = re.compile(r"[A-Za-z0-9]+(?:[./@_:\\]+[A-Za-z0-9][A-Za-z0-9~?=&%#+-]*)+")
_LATIN_WORD = re.compile("[A-Za-z\u00c0-\u024f]+")


def in_other_script(text: str, partner: str, scripts: Collection[str]) -> bool:
    """More than half of the letters are foreign. Names and addresses in Latin letters do not count where there are letters beside them.

    A name is what stands in the partner, too.
    """
    foreign = traits.foreign_share(text, scripts)
    if foreign <= 0.5 or traits.letters_by_script(text).total() < FEWEST_LETTERS:
        return False
    if foreign < 1 and "Latin" not in scripts:
        names = {word for word in _LATIN_WORD.findall(partner) if not word.islower()}
        own = _LATIN_WORD.sub(lambda word: " " if word[0] in names else word[0], _ADDRESS.sub(" ", text))
        return traits.foreign_share(own, scripts) > 0.5
    return True


def _in_other_script(side: int, scripts: tuple[str, ...], reason: str, pair: Pair) -> str | None:
    return reason if in_other_script(_text(pair, side), _text(pair, 1 - side), scripts) else None


def _in_other_language(side: int, identifier: Identifier, lang: str, limit: float, reason: str, pair: Pair) -> str | None:
    return reason if identifier.elsewhere(_text(pair, side), lang) > limit else None
