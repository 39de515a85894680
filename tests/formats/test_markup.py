"""XML that is broken or hostile, in both formats that are XML; each is one line, and nothing outside the file is read."""

from __future__ import annotations

import gzip
import os
import socket
import time
import tracemalloc
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from mt.config.schema import Corpus, Langs, TmxFile, XliffFile
from mt.errors import DataError
from mt.formats.pairs import Pair
from mt.formats.readers import read_pairs

TMX = '<tmx version="1.4"><header srclang="en"/><body>\n{}</body></tmx>'
UNIT = '<tu><tuv xml:lang="en"><seg>{}</seg></tuv><tuv xml:lang="de"><seg>{}</seg></tuv></tu>\n'
XLIFF = '<xliff version="1.2"><file original="a.c" source-language="en" target-language="de"><body>\n{}</body></file></xliff>'
TRANS_UNIT = '<trans-unit id="1"><source>{}</source><target>{}</target></trans-unit>\n'
KINDS = [("tmx", TMX, UNIT), ("xliff", XLIFF, TRANS_UNIT)]
SECRET = "what is in the other file"


def corpus(folder: Path, kind: str, data: bytes | str) -> Corpus:
    path = folder / f"x.{kind}"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return TmxFile(tmx=path) if kind == "tmx" else XliffFile(xliff=path)


def only_error(bad: Corpus) -> str:
    """The message, without the path of the file; it must come at once."""
    began = time.process_time()
    with pytest.raises(DataError) as caught:
        list(read_pairs(bad, langs=Langs(src="en", tgt="de")))
    assert time.process_time() - began < 2
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"{bad.paths()[0]}:")
    return message.removeprefix(str(bad.paths()[0]))


@pytest.mark.parametrize(("kind", "file", "unit"), KINDS)
def test_broken_xml_names_the_line(tmp_path: Path, kind: str, file: str, unit: str) -> None:
    whole = file.format(unit.format("a", "A") * 3)
    assert only_error(corpus(tmp_path, kind, whole.replace("</target>", "</goal>").replace("</seg>", "</sig>"))).startswith(
        ":2: broken XML: "
    )
    cut = only_error(corpus(tmp_path, kind, whole[:-5]))
    assert cut.startswith(":5: broken XML: ")
    assert cut.endswith("is the file whole?")
    assert only_error(corpus(tmp_path, kind, whole.replace("A<", "A\0<"))).startswith(":2: broken XML: ")
    assert only_error(corpus(tmp_path, kind, whole.replace("A", "&nbsp;"))).startswith(":2: broken XML: Entity 'nbsp' not defined")
    assert only_error(corpus(tmp_path, kind, whole.encode().replace(b"A", b"\xe4"))).startswith(":2: broken XML: ")


@pytest.mark.parametrize(("kind", "file", "unit"), KINDS)
def test_no_xml_at_all(tmp_path: Path, kind: str, file: str, unit: str) -> None:
    assert only_error(corpus(tmp_path, kind, "Good morning.\n")).startswith(":1: broken XML: syntax error")
    assert only_error(corpus(tmp_path, kind, "")).startswith(":1: broken XML: no element found")
    assert only_error(corpus(tmp_path, kind, f"<?xml version='1.0' encoding='klingon'?>{file}")).startswith(":1: its encoding is not read")
    assert only_error(corpus(tmp_path, kind, "<!-- -->" * 2**18)).startswith(f": no element <{kind}> within the first")
    assert only_error(corpus(tmp_path, kind, f"<!--\n-->\n<html>{unit}</html>")).startswith(f":3: begins with <html>, expected <{kind}>")


@pytest.mark.parametrize(("kind", "file", "unit"), KINDS)
def test_a_packed_file_cut_short(tmp_path: Path, kind: str, file: str, unit: str) -> None:
    packed = gzip.compress(file.format(unit.format("a", "A") * 1000).encode())
    assert only_error(corpus(tmp_path, kind, packed[:-20])).startswith(": the compressed file ends too early")


# ── entities ────────────────────────────────────────────────────────────────────────────────────────────────────────


def laughs(depth: int = 12) -> str:
    """Ten times ten times ten …: a few hundred bytes that stand for terabytes."""
    entities = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">\n' for n in range(1, depth))
    return f'<!ENTITY l0 "ha">\n{entities}'


@pytest.mark.parametrize("place", ["text", "attribute"])
@pytest.mark.parametrize(("kind", "file", "unit"), KINDS)
def test_a_billion_laughs(tmp_path: Path, kind: str, file: str, unit: str, place: str) -> None:
    body = unit.format("&l11;", "A") if place == "text" else unit.format("a", "A").replace("<t", '<t note="&l11;" ', 1)
    tracemalloc.start()
    message = only_error(corpus(tmp_path, kind, f"<!DOCTYPE {kind} [\n{laughs()}]>{file.format(body)}"))
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()
    assert message.startswith(":2: declares an XML entity")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize(
    "declaration",
    ['<!ENTITY x SYSTEM "{}">', '<!ENTITY % x SYSTEM "{}"> %x;', '<!ENTITY % x SYSTEM "{}"> ', '<!ENTITY x PUBLIC "-//X//EN" "{}">'],
)
@pytest.mark.parametrize(("kind", "file", "unit"), KINDS)
def test_no_other_file_is_opened(tmp_path: Path, kind: str, file: str, unit: str, declaration: str, encoding: str) -> None:
    # Whoever opens a pipe that nobody writes to waits for ever.
    os.mkfifo(tmp_path / "pipe")
    text = f"<!DOCTYPE {kind} [{declaration.format((tmp_path / 'pipe').as_uri())}]>{file.format(unit.format('&x;', 'A'))}"
    assert only_error(corpus(tmp_path, kind, text.encode(encoding))).startswith(":1: declares an XML entity")


@pytest.mark.parametrize(("kind", "file", "unit"), KINDS)
def test_neither_dtd_nor_included_file_is_opened(tmp_path: Path, kind: str, file: str, unit: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    pipe = (tmp_path / "pipe").as_uri()
    include = f'<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="{pipe}" parse="text"/>'
    text = f'<?xml-stylesheet href="{pipe}"?><!DOCTYPE {kind} SYSTEM "{pipe}">{file.format(unit.format(include + "a", "A"))}'
    assert [pair[:2] for pair in read_pairs(corpus(tmp_path, kind, text))] == [("a", "A")]


@pytest.mark.parametrize(("kind", "file", "unit"), KINDS)
def test_no_connection_is_made(tmp_path: Path, kind: str, file: str, unit: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        url = f"http://127.0.0.1:{server.getsockname()[1]}/x.dtd"
        good = corpus(tmp_path, kind, f'<!DOCTYPE {kind} SYSTEM "{url}">{file.format(unit.format("a", "A"))}')
        assert [pair[:2] for pair in read_pairs(good)] == [("a", "A")]
        only_error(corpus(tmp_path, kind, f'<!DOCTYPE {kind} [<!ENTITY % x SYSTEM "{url}"> %x;]>{file.format(unit.format("a", "A"))}'))
        with pytest.raises(BlockingIOError):
            server.accept()


# ── size ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Endless:
    """A file of so many units that is made as it is read."""

    def __init__(self, file: str, unit: str, count: int) -> None:
        self.head, self.tail = file.split("{}")
        self.unit, self.count = unit.format("a" * 200, "A" * 200), count

    def write(self, path: Path) -> None:
        with open(path, "w", encoding="utf-8", newline="\n") as sink:
            sink.write(self.head)
            for _ in range(self.count):
                sink.write(self.unit)
            sink.write(self.tail)


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize(("kind", "file", "unit"), KINDS)
@pytest.mark.parametrize(("begun", "more"), [("<!-- ", "a"), ("<note>", "<b></b>"), ("<note x='", "a")])
def test_what_never_ends_is_not_waited_for(tmp_path: Path, kind: str, file: str, unit: str, begun: str, more: str) -> None:
    path = tmp_path / f"x.{kind}"
    with gzip.open(path, "wb", compresslevel=1) as sink:
        sink.write((file.split("{}")[0] + unit.format("a", "A") + begun).encode())
        for _ in range(40):
            sink.write(more.encode() * (2**20 // len(more)))
    pairs = read_pairs(TmxFile(tmx=path) if kind == "tmx" else XliffFile(xliff=path), langs=Langs(src="en", tgt="de"))
    assert next(pairs)[:2] == ("a", "A")
    with pytest.raises(DataError) as caught:
        next(pairs)
    last = "tu" if kind == "tmx" else "trans-unit"
    assert str(caught.value) == f"{path}:2: no <{last}> ends in the 16 MiB after this line; is the file whole?"


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="asks the system for the memory of this process")
@pytest.mark.parametrize(("kind", "file", "unit"), [*KINDS, ("xliff", XLIFF, f"<group>{'<note>n</note>' * 5}{TRANS_UNIT}</group>")])
def test_memory_does_not_grow_with_the_file(tmp_path: Path, kind: str, file: str, unit: str) -> None:
    path = tmp_path / f"x.{kind}"
    Endless(file, unit, 25_000).write(path)
    assert path.stat().st_size > 11_000_000
    pairs: Iterator[Pair] = read_pairs(TmxFile(tmx=path) if kind == "tmx" else XliffFile(xliff=path))
    assert sum(1 for _ in islice(pairs, 5000)) == 5000
    before = resident()
    assert sum(1 for _ in pairs) == 20_000
    assert resident() - before < 8_000_000
    assert next(read_pairs(TmxFile(tmx=path) if kind == "tmx" else XliffFile(xliff=path))).src == "a" * 200
