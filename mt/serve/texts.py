"""From texts to lines for the queue, and from their translations to texts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, Literal, NamedTuple

from mt.decode.parts import spaced
from mt.serve import html_text
from mt.serve.access_log import Note
from mt.serve.answering import Answer, Ask, Model
from mt.serve.inline_tags import Word, words_of, wrapped
from mt.serve.limits import Limits, RefusedError
from mt.serve.queue import Line, Queue
from mt.serve.sentences import Layout, Sentence, gap, laid_out, put_together, without_surrogates

LONG = 50_000
"""Characters that are cut into sentences in a thread of their own: meanwhile others are answered."""


class Translated(NamedTuple):
    """A sentence and what became of it."""

    sentence: Sentence
    before: str
    """White space before its translation."""
    answer: Answer


@dataclass(frozen=True)
class Text:
    """A text with its translation."""

    text: str
    sentences: list[Translated]
    layout: Layout | None = None
    """None for a document, which is made of several texts."""
    lang: str | None = None

    @property
    def flags(self) -> list[str]:
        """Of all sentences, each once."""
        return list(dict.fromkeys(flag for one in self.sentences for flag in one.answer.translation.flags))

    def ranked(self, most: int) -> list[str]:
        """The text with the best translation of each sentence, with the second best, and so on; each once."""
        if self.layout is None:
            return [self.text]
        every = [one.answer.translation.hypotheses for one in self.sentences]
        count = min(most, max(map(len, every), default=1) or 1)
        texts = [[own[min(rank, len(own) - 1)][0] if own else "" for own in every] for rank in range(count)]
        return list(dict.fromkeys(put_together(self.layout, one, lang=self.lang) for one in texts))

    def as_html(self, flow: html_text.Flow) -> str:
        """The translation with the elements of its source."""
        if not flow.elements:
            return html_text.escaped(self.text)
        words: list[Word] = []
        source_place = place = 0
        for one in self.sentences:
            source_place, place = source_place + len(one.sentence.before), place + len(one.before)
            words += words_of(one.answer.details, source_place, place)
            source_place, place = source_place + len(one.sentence.text), place + len(one.answer.translation.text)
        return wrapped(self.text, flow.elements, words, source=flow.text or "")

    def as_json(self, *, n_best: int, details: bool) -> dict[str, Any]:
        """What clients are given."""
        found: dict[str, Any] = {"text": self.text, "flags": self.flags, "hypotheses": []}
        if self.layout and len(self.sentences) == 1:
            own = self.sentences[0].answer.translation.hypotheses[:n_best]
            found["hypotheses"] = [
                {"text": put_together(self.layout, [text], lang=self.lang), "score": one.score, "log_prob": one.log_prob}
                for text, one in own
            ]
        if details:
            found["sentences"] = [sentence_json(one) for one in self.sentences]
            found["after"] = self.layout.after if self.layout else ""
        return found


def sentence_json(one: Translated) -> dict[str, Any]:
    """A sentence with its pieces."""
    translation, details = one.answer
    best = translation.hypotheses[0][1] if translation.hypotheses else None
    return {
        "source": one.sentence.text,
        "text": translation.text,
        "before": one.before,
        "score": best.score if best else None,
        "log_prob": best.log_prob if best else None,
        "flags": translation.flags,
        "tokens": [token._asdict() for token in details.tokens],
        "source_tokens": [token._asdict() for token in details.source_tokens],
        "alignment": details.alignment,
    }


class Service:
    """A model with a queue before it."""

    def __init__(self, model: Model, queue: Queue[Ask, Answer], limits: Limits) -> None:
        self.model, self.queue, self.limits = model, queue, limits

    async def lines(self, lines: Sequence[Line], ask: Ask, note: Note, *, seconds: float | None = None) -> list[Answer]:
        """The answers to lines."""
        note.sentences += len(lines)
        note.characters += sum(len(line.text) for line in lines)
        return await self.queue.translate(ask, lines, seconds=seconds or self.limits.seconds)

    async def texts(
        self,
        texts: Sequence[str],
        ask: Ask,
        note: Note,
        *,
        target: str | None,
        form: Literal["text", "html"] = "text",
        prefix: str = "",
        source: str | None = None,
        seconds: float | None = None,
    ) -> list[Text]:
        """Texts in a language, each translated sentence by sentence.

        Raises RefusedError as the queue does, and for a prefix of several sentences, of HTML, or longer than any translation.
        """
        known = source if source not in (None, "auto") else self.model.sources[0] if self.model.sources else None
        if form == "html":
            if prefix:
                raise RefusedError(422, "prefix: goes with plain text; send the sentence without its tags, and leave out format")
            return await self._documents(texts, ask, note, target=target, lang=known, seconds=seconds)
        cut = partial(map, partial(laid_out, lang=known), texts)
        layouts = list(cut()) if sum(map(len, texts)) < LONG else await asyncio.to_thread(lambda: list(cut()))
        if prefix:
            if any(len(layout.sentences) > 1 for layout in layouts):
                raise RefusedError(422, "prefix: goes with a text of one sentence; send the sentences one by one")
            self.model.refuse_prefix("".join(sentence.text for layout in layouts for sentence in layout.sentences), prefix)
        lines = [Line(sentence.text, prefix) for layout in layouts for sentence in layout.sentences]
        answers = iter(await self.lines(lines, ask, note, seconds=seconds))
        return [self._text(layout, list(islice(answers, len(layout.sentences))), target) for layout in layouts]

    async def _documents(
        self, documents: Sequence[str], ask: Ask, note: Note, *, target: str | None, lang: str | None, seconds: float | None
    ) -> list[Text]:
        """HTML, with its tags where the words are that they were around."""
        known = [html_text.flows(without_surrogates(document), together=self.model.aligns) for document in documents]
        if any(flow.elements for flows in known for flow in flows):
            ask = replace(ask, details=True)
        plain = [text for flows in known for flow in flows if (text := flow.text) is not None]
        rest = iter(await self.texts(plain, ask, note, target=target, source=lang, seconds=seconds))
        found = []
        for flows in known:
            texts = [None if flow.text is None else next(rest) for flow in flows]
            whole = "".join(flow.raw if text is None else text.as_html(flow) for flow, text in zip(flows, texts, strict=True))
            found.append(Text(whole, [one for text in texts if text for one in text.sentences], lang=target))
        return found

    def _text(self, layout: Layout, answers: Sequence[Answer], target: str | None) -> Text:
        text = put_together(layout, [answer.translation.text for answer in answers], lang=target)
        sentences = [
            Translated(sentence, gap(sentence.before, first=place == 0, lang=target), answer)
            for place, (sentence, answer) in enumerate(zip(layout.sentences, answers, strict=True))
        ]
        return Text(text, sentences, layout, target)


def word_after(text: str, prefix: str, target: str | None) -> str:
    """What comes next in a text after a prefix: a word, or a character where words have no spaces between them."""
    rest = text[len(prefix) :] if text.startswith(prefix) else text
    rest = rest.lstrip()
    if not spaced(target):
        return rest[:1]
    return rest.split(maxsplit=1)[0] if rest else ""
