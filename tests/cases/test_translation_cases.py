"""Trouble with translating: one test a row of the list of trouble cases, each with its own input, through the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from mt.data.batches import collate
from mt.data.store import Example
from mt.evaluate.metrics import score
from mt.files import read_lines
from mt.formats.pairs import Pair
from mt.tokenizer.spm import UNKNOWN
from mt.translator import Translator
from tests import toy
from tests.cases.conftest import ToyRun, right
from tests.translating import Ended, in_float64, lively_run, mt

SEVENTEEN = toy.sentences(17, seed=76, shortest=1, longest=6)


def translated(trained: ToyRun, text: bytes | Iterable[str], *words: str) -> Ended:
    """What `mt translate` makes of a text on stdin; it ends well."""
    stdin = text if isinstance(text, bytes) else "".join(f"{line}\n" for line in text).encode()
    done = mt("translate", "--model", trained.run.path, *words, stdin=stdin)
    assert done.code == 0
    return done


def hypotheses(trained: ToyRun, text: Iterable[str], *words: str) -> list[list[dict[str, Any]]]:
    """Of each line, best first."""
    return [json.loads(line)["hypotheses"] for line in translated(trained, text, "--format", "jsonl", *words).lines]


def test_01_unicode_line_seps(trained: ToyRun, tmp_path: Path) -> None:
    lines = ["bage depe .", "fide\u2028gome .", "kute\x85laki\vmeri\fnifi\x1cponi\x1drubi\x1esalo\u2029teso .", "bigo dopo fudo ."]
    source = tmp_path / "train.src"
    source.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    done = mt("translate", "--model", trained.run.path, "--input", source)
    assert done.code == 0
    assert done.out.count(b"\n") == 4
    assert done.lines[0] == right(lines[0])
    assert [done.lines[3]] == translated(trained, lines[3:]).lines == [right(lines[3])]


def test_03_crlf(trained: ToyRun, tmp_path: Path) -> None:
    text = b"bage depe .\n\nfide gome .\n"
    crlf, lf = tmp_path / "in.crlf.src", tmp_path / "in.lf.src"
    lf.write_bytes(text)
    crlf.write_bytes(text.replace(b"\n", b"\r\n"))
    assert trained.translator.encoded(list(read_lines(crlf))) == trained.translator.encoded(list(read_lines(lf)))
    outputs = [mt("translate", "--model", trained.run.path, "--input", path).out for path in (crlf, lf)]
    assert outputs[0] == outputs[1] == f"{right('bage depe .')}\n\n{right('fide gome .')}\n".encode()


@pytest.mark.parametrize(
    ("text", "line", "byte"),
    [(b"bage .\ndepe .\ncaf\xe9 fide .\ngome .\n", 3, "0xE9"), ("bage .\ndepe .\n".encode("utf-16"), 1, "0xFF")],
    ids=["latin-1", "utf-16"],
)
def test_05_invalid_utf8(trained: ToyRun, tmp_path: Path, text: bytes, line: int, byte: str) -> None:
    source, output = tmp_path / "train.src", tmp_path / "out"
    source.write_bytes(text)
    for words, stdin, name in (
        (["--input", source], b"", str(source)),
        ([], text, "<stdin>"),
        (["--input", source, "--output", output], b"", ""),
    ):
        done = mt("translate", "--model", trained.run.path, *words, stdin=stdin)
        assert (done.code, done.out, len(done.err)) == (2, b"", 1)
        assert done.err[0].startswith(f"{name or source}:{line}: byte {byte} is not UTF-8")
    assert [path.name for path in tmp_path.iterdir()] == ["train.src"]


def test_06_bom(trained: ToyRun) -> None:
    first, second, inner = translated(trained, "\ufeffbage depe .\nbage depe .\nbage \ufeffdepe .\n".encode()).lines
    assert first == second == right("bage depe .")
    assert "\ufeff" not in first + inner
    vocabulary = trained.translator.tokenizers.src
    assert not any("\ufeff" in vocabulary.decode([i]) for i in range(vocabulary.size))


def test_07_blank_lines(trained: ToyRun, tmp_path: Path) -> None:
    lines = ["bage depe .", "", "fide gome .", "   ", "\u00a0\u3000", "\t", "kute laki .", ""]
    source = tmp_path / "in.src"
    source.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    expected = [right(line) if line.strip() else "" for line in lines]
    for batch_tokens in ("1", "64", "4096"):
        assert mt("translate", "--model", trained.run.path, "--input", source, "--batch-tokens", batch_tokens).lines == expected
        assert translated(trained, lines, "--batch-tokens", batch_tokens).lines == expected
    assert [translated(trained, [line]).lines for line in lines] == [[line] for line in expected]


def test_11_final_newline(trained: ToyRun, tmp_path: Path) -> None:
    outputs = []
    for name, text in {"in.nl.src": b"bage depe .\nfide gome .\n", "in.nonl.src": b"bage depe .\nfide gome ."}.items():
        (tmp_path / name).write_bytes(text)
        outputs.append(mt("translate", "--model", trained.run.path, "--input", tmp_path / name).out)
        outputs.append(translated(trained, text).out)
    assert set(outputs) == {f"{right('bage depe .')}\n{right('fide gome .')}\n".encode()}


def test_12_tab_in_text(trained: ToyRun) -> None:
    lines = ["bage\tdepe .", "bage depe .", "\tfide\t\tgome .\t"]
    assert trained.translator.encoded(lines[:1]) == trained.translator.encoded(lines[1:2])
    done = translated(trained, lines)
    assert done.lines == [right("bage depe ."), right("bage depe ."), right("fide gome .")]
    assert b"\t" not in done.out
    assert {line.count("\t") for line in translated(trained, lines, "--format", "tsv", "--beam", "4", "--n-best", "4").lines} == {2}


def test_21_emoji_then_text(trained: ToyRun) -> None:
    lines = ["bage depe \U0001f600 fide gome .", "\U0001f680", "bage \u2764\ufe0f ."]
    done = translated(trained, lines)
    assert len(done.lines) == 3
    assert {right("fide"), right("gome")} & set(done.lines[0].split())
    src = trained.translator.tokenizers.src
    ((ids,),) = trained.translator.encoded(lines[:1])
    assert ids[-3:] == src.encode("fide gome .")
    batch = collate([Example(Pair(lines[0], "", ""), ids, [])], trained.translator.tokenizers)
    assert batch.src_BS.tolist() == [[*ids, src.eos]]
    assert src.eos not in ids


def test_25_literal_specials(trained: ToyRun) -> None:
    lines = ["bage </s> depe fide .", "<s> bage", "bage <unk> depe", "bage <pad> depe", "<0x41>", "bage <2xx> depe"]
    done = translated(trained, lines)
    assert len(done.lines) == 6
    src = trained.translator.tokenizers.src
    after = ["depe fide .", "bage", "depe", "depe", "", "depe"]  # the name, which is read as well
    for end, parts in zip(after, trained.translator.encoded(lines), strict=True):
        assert not {src.pad, src.bos, src.eos} & {i for ids in parts for i in ids}
        assert src.decode([i for ids in parts for i in ids]).endswith(end)


def test_35_unknown(trained: ToyRun, tmp_path: Path) -> None:
    lines = ["bage € depe .", "fide .", "§ gome € ."]
    done = translated(trained, lines)
    assert done.err == ["warning: 3 unknown in 2 lines: characters that the tokenizer has no piece for (lines 1, 3)"]
    tgt = trained.translator.tokenizers.tgt
    assert tgt.decode([*tgt.encode("dirkan"), tgt.unk, *tgt.encode("pallen")]) == f"dirkan{UNKNOWN} pallen"
    assert UNKNOWN not in done.out.decode()
    # References are the raw text: the tokenizer would make one unknown of their last word.
    references = [f"{line} €§€§€§" for line in done.lines]
    toy.write_lines(tmp_path / "in.src", lines)
    toy.write_lines(tmp_path / "ref.trg", references)
    files = ("--src", tmp_path / "in.src", "--ref", tmp_path / "ref.trg", "--json", tmp_path / "scores.json")
    assert mt("eval", "--model", trained.run.path, *files, "--metrics", "chrf").code == 0
    (found,) = json.loads((tmp_path / "scores.json").read_text(encoding="utf-8"))["metrics"]
    round_trip = [tgt.decode(tgt.encode(line)) for line in references]
    raw, changed = (score(done.lines, [lines], metrics=["chrf"], lang=None)["chrf"].score for lines in (references, round_trip))
    assert found["score"] == raw != changed


@pytest.mark.parametrize("beam", [1, 4])
def test_66_batches_do_not_matter(trained: ToyRun, tmp_path: Path, beam: int) -> None:
    untrained = in_float64(lively_run(tmp_path, "decode.max_length_factor=1", "decode.max_length_extra=4"))
    of_untrained = untrained.translate(SEVENTEEN, beam=beam)
    assert len({one.text for one in of_untrained}) == 17
    whole = hypotheses(trained, SEVENTEEN, "--beam", str(beam))
    text = translated(trained, SEVENTEEN, "--beam", str(beam)).out
    for batch_tokens in (1, 14, 40, 56, 100):  # 7 and 8 rows of seven pieces among them
        words = ("--beam", str(beam), "--batch-tokens", str(batch_tokens))
        assert translated(trained, SEVENTEEN, *words).out == text
        for one, other in zip(hypotheses(trained, SEVENTEEN, *words), whole, strict=True):
            assert one[0]["ids"] == other[0]["ids"]
            assert one[0]["score"] == pytest.approx(other[0]["score"], abs=1e-4)
        found = untrained.translate(SEVENTEEN, beam=beam, batch_tokens=batch_tokens)
        assert [one.hypotheses[0][1].ids for one in found] == [one.hypotheses[0][1].ids for one in of_untrained]


@pytest.mark.parametrize("length_penalty", ["0", "1"])
def test_67_first_of_n_best(trained: ToyRun, length_penalty: str) -> None:
    one, two, five = (
        hypotheses(trained, trained.test, "--beam", "5", "--length-penalty", length_penalty, "--n-best", n) for n in ("1", "2", "5")
    )
    assert [found[:1] for found in five] == one
    assert [found[:2] for found in five] == two
    for found in five:
        assert [h["score"] for h in found] == sorted((h["score"] for h in found), reverse=True)
        assert len({tuple(h["ids"]) for h in found}) == len(found) == 5


def test_68_n_best_larger_than_beam(trained: ToyRun, tmp_path: Path) -> None:
    toy.write_lines(tmp_path / "in.src", SEVENTEEN)
    for words in (["--format", "jsonl"], []):
        files = ("--input", tmp_path / "in.src", "--output", tmp_path / "out")
        done = mt("translate", "--model", trained.run.path, *files, "--beam", "4", "--n-best", "10", *words)
        assert (done.code, done.out) == (2, b"")
        assert done.err == ["n-best 10 is larger than beam 4: ask for fewer, or widen the beam"]
        assert [path.name for path in tmp_path.iterdir()] == ["in.src"]


def test_72_too_long_line(trained: ToyRun) -> None:
    """At 10 pieces a line the sentences of the second, of six each, are translated one by one."""
    long = toy.sentences(100, seed=72, shortest=5, longest=5)
    lines = ["bage depe .", " ".join(long), "fide gome .", "kute ."]
    done = translated(trained, lines)
    assert [done.lines[0], *done.lines[2:]] == [right(line) for line in (lines[0], *lines[2:])]
    assert done.err == ["warning: line 2: longer than 10 pieces (data.max_pieces), translated in parts"]
    assert done.lines[1] == " ".join(translated(trained, long).lines)
    correct = sum(one == right(sentence) for one, sentence in zip(translated(trained, long).lines, long, strict=True))
    assert correct >= 95


def test_75_order(trained: ToyRun) -> None:
    lines = ["fide .", "bage depe fide gome kute laki .", "meri nifi .", "bage .", "mäka søto poni rubi ."]
    assert translated(trained, lines, "--batch-tokens", "14").lines == [right(line) for line in lines]


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 17])
def test_76_odd_counts(trained: ToyRun, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = translated(trained, SEVENTEEN).lines
    assert translated(trained, SEVENTEEN[:count], "--batch-tokens", "64").lines == whole[:count]
    monkeypatch.setattr("mt.translator.WINDOW", 2)
    assert translated(trained, SEVENTEEN[:count]).lines == whole[:count]


def test_77_repetition(trained: ToyRun) -> None:
    lines = ["bage", "!", " ".join("-" * 20), "bage bage bage bage bage bage"]
    found = hypotheses(trained, lines)
    decode = trained.translator.config.decode
    for line, (best, *_) in zip(lines, found, strict=True):
        parts = trained.translator.encoded([line])[0]
        assert len(best["ids"]) < sum(decode.max_length_factor * len(ids) + decode.max_length_extra for ids in parts)
    # No sentence in training lacks its full stop, so where this one ends is anybody's guess; a repeated word is not held back, though.
    assert found[3][0]["text"].split()[:4] == [right("bage")] * 4


def test_79_temperature_zero(trained: ToyRun) -> None:
    greedy = translated(trained, trained.test, "--greedy").out
    for temperature in ("0", "1e-8"):
        assert translated(trained, trained.test, "--sample", "--temperature", temperature).out == greedy
    done = mt("translate", "--model", trained.run.path, "--sample", "--temperature", "-1", stdin=b"bage .\n")
    assert (done.code, done.out, done.err) == (2, b"", ["temperature -1: give a number from 0 (greedy) to 1000000 (all tokens alike)"])


def process(*words: str | Path, stdin: bytes = b"", **environment: str) -> subprocess.CompletedProcess[bytes]:
    """`mt` and these words in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "mt", *words], input=stdin, capture_output=True, env={**os.environ, **environment}, check=False
    )


def test_82_seed(trained: ToyRun) -> None:
    words = ("--sample", "--temperature", "1.5", "--seed")
    first = translated(trained, trained.test, *words, "7")
    text = "".join(f"{line}\n" for line in trained.test).encode()
    assert process("translate", "--model", trained.run.path, *words, "7", stdin=text).stdout == first.out
    assert translated(trained, trained.test, *words, "8").out != first.out
    for batch_tokens in ("1", "64"):
        assert translated(trained, trained.test, *words, "7", "--batch-tokens", batch_tokens).out == first.out


def test_83_specials_are_never_printed(tmp_path: Path) -> None:
    """Not by an untrained model, nor by one that would say nothing else."""
    translator = Translator.load(lively_run(tmp_path, "decode.max_length_factor=1").path)
    tgt = translator.tokenizers.tgt
    for said in ([], [tgt.pad, tgt.unk, tgt.bos]):
        with torch.no_grad():
            translator.model.decoder_norm.bias.fill_(1.0 if said else 0.0)
            translator.model.output.weight[said] += 3
        found = translator.translate(toy.sentences(41, seed=83), settings=None, beam=4)
        assert len(found) == 41
        for one in found:
            ((text, best),) = one.hypotheses
            assert not any(special in text for special in ("<pad>", "<s>", "</s>", "<unk>", UNKNOWN))
            assert text == tgt.decode(best.ids)
            assert not {tgt.pad, tgt.bos, tgt.eos, tgt.unk} & set(best.ids)
            assert np.isfinite(best.log_prob)


@pytest.mark.parametrize("joint", [True, False], ids=["one vocabulary", "two"])
def test_84_shared_vocabulary(tmp_path: Path, joint: bool) -> None:
    run = lively_run(tmp_path, f"tokenizer.joint={str(joint).lower()}", "tokenizer.vocab_size=90", "decode.max_length_factor=1")
    translator = Translator.load(run.path)
    assert translator.tokenizers.joint == joint
    src, tgt = translator.tokenizers
    for side in (src, tgt):
        specials = {side.pad, side.unk, side.bos, side.eos}
        assert len(specials) == 4
        assert specials < set(range(side.size))
    sources = toy.sentences(41, seed=84)
    pairs = [Pair(source, toy.translation(source), "") for source in sources]
    batch = collate([Example(pair, src.encode(pair.src), tgt.encode(pair.tgt)) for pair in pairs], translator.tokenizers)
    for ids_BT, eos, pad in ((batch.gold_BT, tgt.eos, tgt.pad), (batch.src_BS, src.eos, src.pad)):
        for row in ids_BT.tolist():
            real = [i for i in row if i != pad]
            assert real[-1] == eos
            assert real.count(eos) == 1
    assert not any(one.text.endswith(UNKNOWN) for one in translator.translate(sources))


@pytest.mark.parametrize("update", [200, 400])
def test_91_validation_is_eval(trained: ToyRun, tmp_path: Path, update: int) -> None:
    events = [json.loads(line) for line in trained.run.journal.read_text(encoding="utf-8").splitlines()]
    (logged,) = [event for event in events if event["event"] == "validated" and event["update"] == update]
    corpus = trained.run.path.parent
    files = ("--src", corpus / "valid.src", "--ref", corpus / "valid.trg", "--json", tmp_path / "scores.json")
    same = ("--checkpoint", str(update), "--beam", str(logged["beam"]), "--weights", logged["weights"])
    assert mt("eval", "--model", trained.run.path, *files, *same).code == 0
    metrics = json.loads((tmp_path / "scores.json").read_text(encoding="utf-8"))["metrics"]
    found = {metric["name"]: metric["score"] for metric in metrics}
    assert logged["scores"]["bleu"] == pytest.approx(found["BLEU"], abs=1e-6)
    assert logged["scores"]["chrf"] == pytest.approx(found["chrF2"], abs=1e-6)
    assert update == 400 or found["BLEU"] < 99  # it could differ


def test_103_locale(trained: ToyRun, tmp_path: Path) -> None:
    """Two processes: from a file to stdout, and from stdin to a file."""
    lines = ["mäka bage søto .", "søto mäka ."]
    expected = "".join(f"{right(line)}\n" for line in lines).encode()
    assert "ä" in expected.decode()
    assert "漢字" in expected.decode()
    assert translated(trained, lines).out == expected
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    toy.write_lines(tmp_path / "in.src", lines)
    done = process("translate", "--model", trained.run.path, "--input", tmp_path / "in.src", **ascii_only)
    assert (done.returncode, done.stdout, done.stderr) == (0, expected, b"")
    text = (tmp_path / "in.src").read_bytes()
    done = process("translate", "--model", trained.run.path, "--output", tmp_path / "out", stdin=text, **ascii_only)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert (tmp_path / "out").read_bytes() == expected
