"""Settings of what training text is kept, what of it is held out, and of the noise that is put on it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from mt.config.stage import Auto, Contradiction, Count, Stage, auto_tag, clash, kind_tag

Share = Annotated[float, Field(ge=0, le=1)]


class FilterConfig(Stage):
    """Pairs that are not trained on. Those with an empty side and those above data.max_pieces always go; what is left out here is off."""

    max_chars: Count | None = 10_000
    """Longest side, in characters."""
    max_ratio: float | None = Field(default=None, gt=1)
    """Longest side / shortest side, in characters; 3 for related languages, 6 for English and Chinese."""
    copies: bool = False
    """Drop pairs whose two sides are equal."""
    duplicates: Literal["exact", "normalised"] | None = None
    """Drop pairs seen before, in any corpus with the same tag; normalised: letter case, digits, punctuation and spacing do not count."""
    scripts: bool = False
    """Drop pairs a side of which is mostly in letters its language is not written in."""
    languages: Share | None = None
    """Drop pairs a side of which is more likely than this in another language (needs the extra `languages`)."""
    max_repeats: Share | None = None
    """Largest share of a side's word 4-grams (character 8-grams without spaces) that occurred in it before."""
    max_digits: Share | None = None
    """Largest share of digits among a side's characters, spaces not counted."""
    max_symbols: Share | None = None
    """Largest share of punctuation and symbols among a side's characters, spaces not counted."""
    markup: bool = False
    """Drop pairs with HTML or XML tags or entities."""
    control: bool = False
    """Drop pairs with control characters, private-use characters or U+FFFD."""


class LocalShuffle(Stage):
    """Words of the source a little out of order (Lample et al. 2018, https://arxiv.org/abs/1711.00043)."""

    probability: Share = 0.0
    """Share of the pairs."""
    distance: Count = 3
    """No piece moves further, in pieces."""


class AugmentConfig(Stage):
    """Noise on training pairs, drawn anew in each epoch from the seed; each is a probability, 0 is off."""

    token_drop: Share = 0.0
    """Of each source piece being left out."""
    token_mask: Share = 0.0
    """Of each source piece being replaced by the unknown one."""
    local_shuffle: LocalShuffle = LocalShuffle()
    """Source pieces out of order."""
    upper_case: Share = 0.0
    """Of both sides being in capitals."""
    title_case: Share = 0.0
    """Of both sides having a capital at the beginning of each word."""
    strip_punctuation: Share = 0.0
    """Of both sides losing their final punctuation."""

    def contradictions(self) -> Iterator[Contradiction]:
        """A text has one letter case."""
        if self.upper_case + self.title_case > 1:
            what = f"upper_case {self.upper_case:g} and title_case {self.title_case:g} are more than 1 together; lower one of them"
            yield clash(what, "upper_case", "title_case")


class SplitConfig(Stage):
    """Shares of the training pairs that are held out where data.dev is left out, and stay out of training (docs/split.md)."""

    dev: Annotated[Auto | Annotated[float, Field(gt=0, le=0.5), Tag(kind_tag("number"))], Discriminator(auto_tag)] = "auto"
    """As dev set; auto: 5 %, halved while that is more than 2000 pairs, more of a corpus of fewer than 2000. The same share of more pairs
    holds out the same ones, and more."""
    test: Annotated[Auto | Annotated[float, Field(ge=0, lt=0.5), Tag(kind_tag("number"))], Discriminator(auto_tag)] = "auto"
    """As test set, where data.test is left out, too; 0: none."""
