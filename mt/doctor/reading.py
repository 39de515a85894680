"""The pairs of a corpus in blocks, read on where training would stop: at a bad byte, a short row, an end that comes too early.

Plain text and TSV are taken as they lie in the file: a byte that is no UTF-8 becomes a lone surrogate (Python's surrogateescape), and the
carriage return at a line's end and the byte order mark at a file's beginning are still there, for `characters` to find. The other formats
come through their readers, which end at the first thing that is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import BinaryIO, NamedTuple

from mt.config.schema import Corpus, Langs, TextFiles, TsvFile
from mt.doctor.findings import Spots
from mt.errors import DataError, EmptyError
from mt.files import AS_UTF8, BOM, MAX_LINE_BYTES, UTF16, UTF16_BOMS, open_binary, shards
from mt.formats.pairs import Pair, counted
from mt.formats.readers import read_pairs
from mt.unpack import CHUNK_BYTES, position

BLOCK = 4096
"""Pairs of a block."""
BLOCK_CHARACTERS = 4_000_000
"""A block ends here if its lines are long."""


COLUMNS = "wrong number of columns"
"""The flaw of a row."""


class Place(NamedTuple):
    """Where a pair comes from."""

    names: tuple[str, str]
    at: int | str
    """See Places."""

    def of(self, side: int = 0) -> str:
        """The origin of a side, such as `train.de.gz:17`."""
        return self.at if isinstance(self.at, str) else f"{self.names[side]}:{self.at}"


class Places(NamedTuple):
    """Where the pairs of a block come from."""

    names: tuple[str, str]
    """Files of the two sides; the same twice where one file holds both."""
    at: Sequence[int | str]
    """For each pair the line in these files, or a whole origin."""

    def one(self, row: int) -> Place:
        """The place of a pair; to be kept, unlike these of a whole block."""
        return Place(self.names, self.at[row])

    def of(self, row: int, side: int = 0) -> str:
        """The origin of a side of a pair."""
        return self.one(row).of(side)

    @property
    def numbered(self) -> bool:
        """Whether pair n of a file is its line n."""
        return isinstance(self.at, range)

    @property
    def begins(self) -> bool:
        """Whether the first pair is the first line of its file."""
        return self.at[0] == 1


class Block(NamedTuple):
    """Some pairs in a row; or, where one file goes on after the other has ended, lines of one side alone, the other being empty."""

    src: list[str]
    tgt: list[str]
    places: Places


def plain(lines: list[str], *, begins: bool) -> list[str]:
    """Lines as training would read them: no carriage return at the end, no byte order mark before the first of a file, spaces for TABs."""
    texts = [line.removesuffix("\r").replace("\t", " ") for line in lines]
    if begins and texts:
        texts[0] = texts[0].removeprefix("\ufeff")
    return texts


Advance = Callable[[int], None]
"""Told how many more bytes of the files, as they lie on the disk, have been read."""


class Reading:
    """One corpus, read once; what its files were like is known when `blocks` has ended."""

    def __init__(
        self, corpus: Corpus, langs: Langs | None, advance: Advance = lambda _: None, rejected: Callable[[Pair], None] = lambda _: None
    ) -> None:
        """`advance` hears of the bytes read, `rejected` of what is no pair: `flaw` says why."""
        self._corpus, self._langs, self._advance, self._rejected = corpus, langs, advance, rejected
        self.flaws: dict[str, Spots] = {}
        """What is no pair, by its flaw: a row of a TSV file with the wrong number of columns, and what the file itself says not to use."""
        self.unreadable: list[str] = []
        """Why reading ended early, a message for each file."""
        self.uneven: list[tuple[Path, Path, int, int]] = []
        """Files that belong together and have different numbers of lines, with these."""

    def blocks(self) -> Iterator[Block]:
        """All pairs in order, those flawed and those without two sides left out. Raises DataError for a file that cannot be opened."""
        blocks: Iterator[Block]
        match self._corpus:
            case TextFiles():
                blocks = self._text(shards(self._corpus.src), shards(self._corpus.tgt))
            case TsvFile():
                blocks = (block for path in shards(self._corpus.tsv) for block in self._table(path))
            case _:
                blocks = self._records()
        return self._limited(blocks)

    def _limited(self, blocks: Iterator[Block]) -> Iterator[Block]:
        """The first `max_pairs`; what comes after them does not matter."""
        left = self._corpus.max_pairs
        for block in blocks:
            if left is None:
                yield block
                continue
            yield Block(block.src[:left], block.tgt[:left], block.places)
            left -= len(block.src)
            if left <= 0:
                return

    def _reject(self, pair: Pair) -> None:
        self.flaws.setdefault(str(pair.flaw), Spots()).add(pair.origin, pair.src, pair.tgt)
        self._rejected(pair)

    # ── plain text ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _text(self, src: list[Path], tgt: list[Path]) -> Iterator[Block]:
        if len(src) != len(tgt):
            assert isinstance(self._corpus, TextFiles)
            counts = f"{self._corpus.src} stands for {counted(len(src), 'file')}, {self._corpus.tgt} for {len(tgt)}"
            self.unreadable.append(f"{counts}: file n of one must translate file n of the other, in the order of their names")
        for paths in zip(src, tgt, strict=False):
            with ExitStack() as stack:
                yield from self._sides(paths, stack)

    def _sides(self, paths: tuple[Path, Path], stack: ExitStack) -> Iterator[Block]:
        """Line n of one file with line n of the other, then what one of them has more."""
        names = paths[0].name, paths[1].name
        sides = [_Lines(path, stack, self._advance) for path in paths]
        number, alone = 1, [0, 0]
        while True:
            for side in sides:
                side.fill()
            counts = [len(side.lines) for side in sides]
            ended = [not count for count in counts]
            if all(ended):
                break
            rows = min(BLOCK, max(counts) if any(ended) else min(counts))
            src, tgt = (side.take(rows) for side in sides)
            if any(ended):
                alone = [count + len(lines) for count, lines in zip(alone, (src, tgt), strict=True)]
            at = range(number, number + rows)
            number += rows
            yield Block(src, tgt, Places(names, at))
        for side in sides:
            self.unreadable += side.broken
        if any(alone) and not any(side.broken for side in sides):
            common = number - 1 - sum(alone)
            self.uneven.append((*paths, common + alone[0], common + alone[1]))

    # ── other formats ───────────────────────────────────────────────────────────────────────────────────────────────

    def _table(self, path: Path) -> Iterator[Block]:
        assert isinstance(self._corpus, TsvFile)
        columns = self._corpus.columns
        src, tgt = columns or (0, 1)
        width = 0 if columns else 2
        number = 1
        with ExitStack() as stack:
            lines = _Lines(path, stack, self._advance)
            while lines.fill():
                rows = lines.take(BLOCK)
                kept: list[tuple[str, str, int]] = []
                for at, row in enumerate(rows, number):
                    cells = row.split("\t")
                    width = width or max(len(cells), src + 1, tgt + 1)
                    if len(cells) == width:
                        kept.append((cells[src], cells[tgt], at))
                    else:
                        self._reject(Pair(row.rstrip("\r"), "", f"{path.name}:{at}", COLUMNS))
                number += len(rows)
                if kept:
                    sources, targets, lines_at = (list(column) for column in zip(*kept, strict=True))
                    yield Block(sources, targets, Places((path.name, path.name), lines_at))
            self.unreadable += lines.broken

    def _records(self) -> Iterator[Block]:
        pairs = read_pairs(self._corpus, langs=self._langs)
        done = False
        while not done:
            block, done = self._next_pairs(pairs)
            if block:
                sources, targets, origins = (list(column) for column in zip(*(pair[:3] for pair in block), strict=True))
                yield Block(sources, targets, Places(("", ""), origins))
        self._advance(sum(path.stat().st_size for place in self._corpus.paths() for path in shards(place) if path.exists()))

    def _next_pairs(self, pairs: Iterator[Pair]) -> tuple[list[Pair], bool]:
        """The next few without a flaw, and whether they are the last."""
        block: list[Pair] = []
        characters = 0
        try:
            for pair in pairs:
                if pair.flaw:
                    self._reject(pair)
                    continue
                block.append(pair)
                characters += len(pair.src) + len(pair.tgt)
                if len(block) == BLOCK or characters > BLOCK_CHARACTERS:
                    return block, False
        except EmptyError:
            pass
        except DataError as error:
            self.unreadable.append(str(error))
        return block, True


class _Lines:
    """The lines of one file, some at a time; `ended` when there are no more, `broken` says why if that is too early."""

    def __init__(self, path: Path, stack: ExitStack, advance: Advance) -> None:
        self._path, self._advance = path, advance
        self._stream = stack.enter_context(closing(open_binary(path)))
        self._text = self._decoded(self._stream)
        self._read = 0
        self.lines: list[str] = []
        self.ended = False
        self.broken: list[str] = []

    def fill(self) -> bool:
        """Have enough lines for a block, or all that are left. Is there any?"""
        characters = sum(map(len, self.lines))
        while not self.ended and len(self.lines) < BLOCK and characters < BLOCK_CHARACTERS:
            try:
                more = next(self._text, None)
            except DataError as error:
                self.broken.append(str(error))
                more = None
            if more is None:
                self.ended = True
            else:
                self.lines += more
                characters += sum(map(len, more))
            now = position(self._stream)
            self._advance(now - self._read)
            self._read = now
        return bool(self.lines)

    def take(self, count: int) -> list[str]:
        """The first lines; fewer if there are not so many."""
        taken = self.lines[:count]
        del self.lines[:count]
        return taken

    def _decoded(self, stream: BinaryIO) -> Iterator[list[str]]:
        """All lines, in lists; see the top of the file for what is in them."""
        rest, number = b"", 1
        while chunk := stream.read(CHUNK_BYTES):
            if number == 1 and not rest and (chunk.startswith(UTF16_BOMS) or UTF16.match(chunk)):
                raise DataError(f"{self._path}:1: is not UTF-8; {AS_UTF8}")
            head, newline, tail = chunk.rpartition(b"\n")
            if newline:
                lines = (rest + head).decode("utf-8", "surrogateescape").split("\n")
                number += len(lines)
                yield lines
                rest = b""
            rest += tail
            if len(rest) > MAX_LINE_BYTES:
                raise DataError(f"{self._path}:{number}: the line is longer than {MAX_LINE_BYTES} bytes; is this one sentence a line?")
        if number == 1 and (returns := rest.count(b"\r")) > 1:
            raise DataError(f"{self._path}: no line feed but {returns} carriage returns: old Mac line ends? convert with tr '\\r' '\\n'")
        if rest and not (number == 1 and rest == BOM):
            yield [rest.decode("utf-8", "surrogateescape")]
