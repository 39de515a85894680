"""Trouble with what is in a text, through the commands: a model has learnt to give these lines back, so each has to come out as it is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from mt.rundir import RunDir
from mt.tokenizer.of_run import load_tokenizers
from mt.tokenizer.spm import UNKNOWN
from tests import toy
from tests.preparing import sets
from tests.translating import mt

LINES = {
    "19 soft hyphen": ["ba\u00adge de\u00adpe .", "bage depe ."],
    "22 virama": ["नमस्ते", "വസ്തു", "மக்கள்", "বন্ধু"],
    "23 full width": ["今天下雨，你带伞了吗？", "我在图书馆看书。", "请坐；别客气！", "他说：“好（真的）。”"],
    "25 specials": ["bage </s> fide depe .", "<s> bage", "bage <unk> depe", "bage <pad> depe", "<0x41>", "bage <2xx> depe"],
    "28 symbols": ["gome <ph1> laki .", "gome<ph1>laki .", "<ph1> gome .", "gome <ph1>.", "<ph1><ph2>"],
    "29 bytes": ["kute \U0001f680 meri .", "爿 kute ."],
    "31 spaces": ["nifi 25. poni 2003 .", "nifi, poni.(1)", "nifi (poni) «rubi»", "3 % , 50 €"],
    "38 placeholders": [
        "{date} : %s , %(n)d , {{x}} , ${y} , $1",
        '<b>salo</b> <a href="{url}">teso</a> &amp; &lt;',
        "https://example.org/?a=1&b=2#c salo@example.org",
        "3.14 1,000.50 2024-02-29 10:30 -5°C +1-555-0100",
    ],
}
SYMBOLS = ["<ph1>", "<ph2>", "{date}", "%s", "%(n)d"]
RARE = "\U0001f680爿"
"""Characters that the tokenizer has no piece for, only bytes: all others are in the corpus three times."""
CORPUS = [line for group in LINES.values() for line in group] + [
    line for group in LINES.values() for line in group if RARE[0] not in group[0]
] * 2
COVERAGE = 1 - 7 / (2 * sum(map(len, CORPUS)))
"""Both sides hold each rare character once."""
SETTINGS = (
    f"tokenizer={{vocab_size: 600, byte_fallback: true, character_coverage: {COVERAGE:.4f}, symbols: {SYMBOLS}}}",
    "model={dim: 64, ffn: 128, heads: 4, encoder_layers: 1, decoder_layers: 1, dropout: 0}",
    "train.max_updates=300",
    "train.schedule={kind: cosine, warmup: 30}",
    "train.optimizer.lr=4e-3",
    "train.label_smoothing=0",
)


@pytest.fixture(scope="module")
def copier(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    """A run that `mt train` has trained to copy."""
    folder = tmp_path_factory.mktemp("copier")
    for side in ("src", "trg"):
        toy.write_lines(folder / f"train.{side}", CORPUS)
    config = toy.config_file(folder)
    words = sets((*SETTINGS, "data.dev=none", f"data.cache={folder / 'cache'}"))
    assert mt("train", "--config", config, "--run-dir", folder / "run", "--device", "cpu", *words).code == 0
    return RunDir(folder / "run")


def translated(copier: RunDir, lines: Sequence[str], *words: str) -> list[str]:
    """What `mt translate` makes of the lines: as many, and nothing that stands for what could not be told."""
    done = mt("translate", "--model", copier.path, *words, stdin="".join(f"{line}\n" for line in lines).encode())
    assert (done.code, done.err) == (0, [])
    assert len(done.lines) == len(lines)
    for mark in ("\ufffd", UNKNOWN, "\u2581", "<0xF0>", "<0xE7>"):
        assert mark not in done.out.decode()
    return done.lines


def pieces(copier: RunDir, line: str) -> list[str]:
    """The source pieces of a line, as `mt data show` prints them."""
    folder = copier.path.parent
    words = sets((*SETTINGS, "data.dev=none", f"data.cache={folder / 'cache'}"))
    done = mt("data", "show", "--config", folder / "toy.yaml", "--n", str(len(CORPUS)), *words)
    assert done.code == 0
    place = next(i for i, shown in enumerate(done.lines) if shown.startswith(f"train.src:{CORPUS.index(line) + 1} "))
    return done.lines[place + 1].split("  ")[-1].split(" ")


@pytest.mark.parametrize("beam", ["1", "4"])
@pytest.mark.parametrize("row", LINES)
def test_19_22_23_25_28_29_31_38_what_goes_in_comes_out(copier: RunDir, row: str, beam: str) -> None:
    assert translated(copier, LINES[row], "--beam", beam) == LINES[row]


def test_22_virama_is_not_set_apart(copier: RunDir) -> None:
    (spaced,) = translated(copier, ["  " + LINES["22 virama"][0] + " "])
    assert spaced == LINES["22 virama"][0]


def test_25_literal_specials_are_pieces_of_text(copier: RunDir) -> None:
    for line in LINES["25 specials"]:
        found = pieces(copier, line)
        assert found[-1] == "</s>"
        assert not {"<s>", "</s>", "<unk>", "<pad>", "<0x41>", "<2xx>"} & set(found[:-1])


def test_28_38_a_symbol_is_one_piece(copier: RunDir) -> None:
    for line in (*LINES["28 symbols"], LINES["38 placeholders"][0]):
        found = pieces(copier, line)
        assert [found.count(symbol) for symbol in SYMBOLS] == [line.count(symbol) for symbol in SYMBOLS]


def test_29_what_has_no_piece_is_bytes_that_are_put_together_again(copier: RunDir) -> None:
    for line, character in zip(LINES["29 bytes"], RARE, strict=True):
        assert [piece for piece in pieces(copier, line) if piece.startswith("<0x")] == [f"<0x{byte:02X}>" for byte in character.encode()]
    tgt = load_tokenizers(copier, joint=True).tgt
    assert set(tgt.decode(tgt.encode(RARE[0])[-4:-2])) == {"\ufffd"}


def test_31_spaces_outside_and_in_a_row_are_one_space_or_none(copier: RunDir, tmp_path: Path) -> None:
    line = LINES["31 spaces"][0]
    source = tmp_path / "in.src"
    toy.write_lines(source, [f"  {line.replace(' ', '   ')} ", line])
    done = mt("translate", "--model", copier.path, "--input", source, "--output", tmp_path / "out")
    assert done.code == 0
    assert (tmp_path / "out").read_text(encoding="utf-8").splitlines() == [line, line]
