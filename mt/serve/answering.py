"""The model as requests see it: its languages, what may be asked of it, and answers to lines that ask for the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mt.config.directions import sources, targets
from mt.config.languages import closeness
from mt.constraints.control import Control
from mt.constraints.glossary import Glossary, Term
from mt.decode.engine import Beam
from mt.decode.translation import Translation
from mt.errors import DecodeError
from mt.serve.details import NONE, Details, details_of
from mt.serve.language_names import named
from mt.serve.limits import Limits, RefusedError
from mt.serve.queue import Line
from mt.translator import Translator


@dataclass(frozen=True)
class Ask:
    """What lines of one batch have in common."""

    to: str | None
    search: Beam
    glossary: tuple[tuple[str, str], ...] = ()
    details: bool = False
    alternatives: int = 0


class Answer(NamedTuple):
    """What became of a line."""

    translation: Translation
    details: Details


class Language(NamedTuple):
    """As clients are told of it."""

    code: str
    name: str


class Model:
    """A translator, and what it is called."""

    def __init__(self, translator: Translator, name: str) -> None:
        self.translator, self.name = translator, name
        self.targets = translator.targets or targets(translator.config)
        """Codes of the languages it translates to, as far as they are known."""
        langs = translator.langs
        self.sources = sources(translator.config, to=None) or ((langs.src,) if langs else ())
        """Codes of the languages it translates from."""

    @property
    def source(self) -> Language | None:
        """The language it translates from, if it is known and the only one."""
        return Language(self.sources[0], named(self.sources[0])) if len(self.sources) == 1 else None

    @property
    def aligns(self) -> bool:
        """Whether it tells which words look at which."""
        try:
            return bool(self.translator.engine.models)
        except DecodeError:
            return False

    def target(self, wanted: str | None) -> str | None:
        """The code of the language that is wanted, as the model has it; None if nobody knows. Raises RefusedError if it has no such."""
        if wanted is None:
            if len(self.targets) > 1:
                raise RefusedError(422, f"target: choose one of {', '.join(self.targets)}")
            return self.targets[0] if self.targets else None
        if not self.targets:
            return None
        return closest(wanted, self.targets, what="target", does="translates to")

    def refuse_source(self, wanted: str | None) -> None:
        """Raise RefusedError for a language that the model does not translate from; `auto` is any."""
        if wanted not in (None, "auto") and self.sources:
            closest(wanted, self.sources, what="source", does="translates from")

    def refuse_prefix(self, text: str, prefix: str) -> None:
        """Raise RefusedError for a prefix longer than any translation of the text, for a search would go through all of it.

        Twice as many pieces are let pass: a translation that is sent back may be cut into more than it was made of.
        """
        src, tgt = self.translator.tokenizers
        most, pieces = self.translator.limit(src.encode(text)), len(tgt.encode(prefix))
        if pieces > 2 * most:
            raise RefusedError(422, f"prefix: has {pieces} pieces, a translation of this text {most} at most; send its beginning")

    def ask(
        self,
        *,
        target: str | None,
        beam: int | None = None,
        n_best: int | None = None,
        length_penalty: float | None = None,
        glossary: Sequence[tuple[str, str]] = (),
        details: bool = False,
        alternatives: int = 0,
        limits: Limits,
    ) -> Ask:
        """What is asked for. Raises RefusedError, or DecodeError for a search that gives no such thing."""
        for name, value in ("beam", beam), ("n_best", n_best), ("n", alternatives):
            if value is not None and value > limits.beam:
                raise RefusedError(422, f"{name}: this server searches for {limits.beam} at most")
        of_run = self.translator.config.decode
        width = max(of_run.beam, n_best) if beam is None and n_best else beam
        search = Beam.build(of_run, width=width, n_best=n_best, length_penalty=length_penalty)
        terms = tuple((source, target) for source, target in glossary)
        Glossary(Term(*term) for term in terms)  # asks whether it is one
        return Ask(self._to(target), search, terms, details, alternatives)

    def _to(self, target: str | None) -> str | None:
        """What the translator is asked for: nothing if it has no tags."""
        return target if self.translator.targets else None

    def search(self, ask: Ask, lines: Sequence[Line]) -> list[Answer]:
        """The answer to each line."""
        control = Control(glossary=Glossary(Term(*term) for term in ask.glossary) if ask.glossary else None)
        found = self.translator.translate(
            [line.text for line in lines],
            to=ask.to,
            settings=ask.search,
            control=control,
            prefixes=[line.prefix for line in lines] if any(line.prefix for line in lines) else None,
            alternatives=ask.alternatives,
        )
        details = details_of(self.translator, found, to=ask.to) if ask.details else [NONE] * len(found)
        return [Answer(one, own) for one, own in zip(found, details, strict=True)]

    def warm(self) -> None:
        """Translate something, so that the first request does not wait for what is made once. Raises MTError if that fails."""
        to = self.translator.targets[0] if self.translator.targets else None
        self.translator.translate(["1 2 3"], to=to)


def closest(wanted: str, known: Sequence[str], *, what: str, does: str) -> str:
    """The known code that fits best. Raises RefusedError if none does."""
    fitting = {code: fit for code in known if (fit := closeness(code, wanted)) is not None}
    if not fitting:
        raise RefusedError(422, f"{what} {wanted[:20]!r}: this model {does} {', '.join(known)}")
    return min(fitting, key=fitting.__getitem__)
