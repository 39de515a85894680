"""Trouble with input text: one test a row of the list of trouble cases, each with its own input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mt.clean.filters import Tally, length_reason
from mt.config.schema import TextFiles, TsvFile
from mt.data.build import Source, build_store
from mt.data.loader import TrainingData
from mt.data.plan import Cursor
from mt.data.store import Store
from mt.errors import DataError
from mt.evaluate.metrics import score
from mt.files import read_lines
from mt.formats.readers import read_pairs
from mt.launch.inputs import open_store
from mt.rundir import RunDir
from mt.tokenizer.of_run import load_tokenizers
from tests import toy
from tests.cases.conftest import tiny_run
from tests.preparing import sets
from tests.runs import contents, differences, journal
from tests.translating import Ended, mt


def corpus(folder: Path, src: bytes, tgt: bytes) -> TextFiles:
    (folder / "train.src").write_bytes(src)
    (folder / "train.trg").write_bytes(tgt)
    return TextFiles(src=folder / "train.src", tgt=folder / "train.trg")


def texts(pairs: TextFiles | TsvFile) -> list[tuple[str, str]]:
    return [(pair.src, pair.tgt) for pair in read_pairs(pairs)]


def trained(folder: Path, data: str = "dev: none", *, train: str = "{src: train.src, tgt: train.trg}") -> Ended:
    """What comes of `mt train` on the corpus in a folder: one update of a tiny model; a failure has to leave nothing behind."""
    settings = f"data: {{train: [{train}], cache: cache, {data}}}\ntrain: {{max_updates: 1}}\ntokenizer: {{vocab_size: 60}}\n"
    (folder / "x.yaml").write_text(settings, encoding="utf-8")
    done = mt("train", "--config", folder / "x.yaml", "--run-dir", folder / "run", "--device", "cpu", *sets(toy.TINY))
    assert (folder / "run").exists() == (done.code == 0)
    return done


def learnt(folder: Path, src: bytes, tgt: bytes) -> tuple[tuple[str, ...], list[tuple[str, str, list[int], list[int]]]]:
    """What `mt train` makes of a corpus: the fingerprints of its tokenizers, and the pairs with their ids."""
    folder.mkdir()
    corpus(folder, src, tgt)
    assert trained(folder).code == 0
    run = RunDir(folder / "run")
    store = open_store(run)
    examples = [(one.pair.src, one.pair.tgt, one.src_ids, one.tgt_ids) for one in store.take(range(len(store)))]
    return tuple(side.fingerprint for side in load_tokenizers(run, joint=True)), examples


def test_01_unicode_line_seps(tmp_path: Path) -> None:
    src = ["ruso hulo .", "bako\u2028limu .", "seda\x85toru\vkelo\fmipo\x1drasu\x1edena\u2029fogi\x1c.", "fogi rasu ."]
    tgt = ["quorn lumest .", "ardin belto .", "crast dowin gorst heldin .", "kerpin ibrun ."]
    pairs = corpus(tmp_path, "".join(f"{line}\n" for line in src).encode(), "".join(f"{line}\n" for line in tgt).encode())
    assert texts(pairs) == list(zip(src, tgt, strict=True))
    toy.write_lines(tmp_path / "valid.src", src)
    toy.write_lines(tmp_path / "valid.trg", tgt)
    done = trained(tmp_path, "dev: {src: valid.src, tgt: valid.trg}")
    assert done.code == 0
    assert {"train.src: kept 4 of 4 pairs", "valid.src: 4 of 4 pairs"} <= set(done.err)
    toy.write_lines(tmp_path / "hyp", [src[0], "bako limu .", "seda toru .", src[3]])
    done = mt("eval", "--hyp", tmp_path / "hyp", "--ref", tmp_path / "train.src", "--metrics", "chrf", "--json", tmp_path / "scores.json")
    assert done.code == 0
    (found,) = json.loads((tmp_path / "scores.json").read_text(encoding="utf-8"))["metrics"]
    assert found["score"] == score([src[0], "bako limu .", "seda toru .", src[3]], [src], metrics=["chrf"], lang=None)["chrf"].score


def test_03_06_11_12_what_cannot_be_seen_of_a_file_is_not_learnt(tmp_path: Path) -> None:
    """Line ends of another system, a byte order mark, a missing last line end and TABs: the same tokenizer and the same ids."""
    src, tgt = b"ruso hulo vani .\nbako limu .\nseda toru kelo .\n", b"quorn lumest erfal .\nardin belto .\ncrast dowin gorst .\n"
    plain = learnt(tmp_path / "plain", src, tgt)
    assert len(plain[1]) == 3
    assert learnt(tmp_path / "crlf", src.replace(b"\n", b"\r\n"), tgt) == plain
    assert learnt(tmp_path / "bom", b"\xef\xbb\xbf" + src, b"\xef\xbb\xbf" + tgt) == plain
    assert learnt(tmp_path / "open", src[:-1], tgt) == plain
    assert learnt(tmp_path / "tab", src.replace(b" ", b"\t"), tgt) == plain


def test_05_invalid_utf8(tmp_path: Path) -> None:
    pairs = corpus(tmp_path, b"ruso .\nvani .\ncaf\xe9 bako .\n", b"quorn .\nerfal .\nbelto .\n")
    with pytest.raises(DataError) as caught:
        texts(pairs)
    assert str(caught.value).startswith(f"{pairs.src}:3: byte 0xE9 is not UTF-8 (at byte 4 of the line)")
    pairs = corpus(tmp_path, "ruso .\nvani .\n".encode("utf-16"), b"quorn .\nerfal .\n")
    with pytest.raises(DataError, match=r"train.src:1: byte 0xFF is not UTF-8 .* looks like UTF-16"):
        texts(pairs)


def test_06_bom(tmp_path: Path) -> None:
    marked = corpus(tmp_path, "\ufeffbako limu .\nbako\ufeff limu .\n\ufeffbako\n".encode(), "\ufeffardin .\nbelto .\ngorst .\n".encode())
    assert texts(marked) == [("bako limu .", "ardin ."), ("bako\ufeff limu .", "belto ."), ("\ufeffbako", "gorst .")]


def test_09_empty_target(tmp_path: Path) -> None:
    pairs = corpus(tmp_path, b"ruso\nvani\nlimu\nfogi\njape\n", b"quorn\n\nbelto\n  \nmorgat\n")
    tally = Tally()
    assert [pair.src for pair in tally.keep(read_pairs(pairs))] == ["ruso", "limu", "jape"]
    assert tally.line("train.src") == "train.src: kept 3 of 5 pairs (2 empty side)"
    assert [example.origin for example in tally.examples["empty side"]] == ["train.src:2", "train.src:4"]


def test_09_pairs_with_an_empty_side_do_not_change_the_loss_of_a_dev_set(tmp_path: Path) -> None:
    whole = [("ruso vani .", "quorn erfal ."), ("limu .", "belto .")]
    first, last = whole
    losses = []
    for name, pairs in {"holes": [first, ("fogi .", ""), ("\u3000", "belto ."), last], "whole": whole}.items():
        folder = tmp_path / name
        folder.mkdir()
        corpus(folder, b"ruso vani\nlimu\nfogi jape\n" * 3, b"quorn erfal\nbelto\nkerpin morgat\n" * 3)
        for side, lines in zip(("src", "trg"), zip(*pairs, strict=True), strict=True):
            toy.write_lines(folder / f"valid.{side}", lines)
        done = trained(folder, "dev: {src: valid.src, tgt: valid.trg}")
        assert done.code == 0
        assert ("valid.src: 4 of 4 pairs, the loss without 2 that have an empty side" in done.err) == (name == "holes")
        (validated,) = [event for event in journal(RunDir(folder / "run")) if event["event"] == "validated"]
        losses.append((validated["loss"], validated["tokens"]))
    assert losses[0] == losses[1]


def test_09_a_dev_set_of_nothing_else_is_refused(tmp_path: Path) -> None:
    corpus(tmp_path, b"ruso vani\nlimu\n", b"quorn erfal\nbelto\n")
    toy.write_lines(tmp_path / "valid.src", ["ruso", "limu"])
    toy.write_lines(tmp_path / "valid.trg", ["", " \t"])
    done = trained(tmp_path, "dev: {src: valid.src, tgt: valid.trg}")
    assert done.code == 2
    assert done.err[-1] == "valid.src: every pair has an empty side; give another dev set, or `dev: none`"


def test_10_count_mismatch(tmp_path: Path) -> None:
    pairs = corpus(tmp_path, b"a\nb\nc\nd\ne\n", b"A\nB\n\nC\nD\nE\n")
    with pytest.raises(DataError) as caught:
        texts(pairs)
    assert str(caught.value).startswith(f"{pairs.src} has 5 lines, {pairs.tgt} has 6: ")


def test_10_count_mismatch_ends_the_command_for_training_and_dev_set(tmp_path: Path) -> None:
    good, five, six = b"a b\nc d\n", b"a\nb\nc\nd\ne\n", b"A\nB\n\nC\nD\nE\n"
    (tmp_path / "valid.src").write_bytes(five)
    (tmp_path / "valid.trg").write_bytes(six)
    for (src, tgt), data, name in (((five, six), "dev: none", "train"), ((good, good), "dev: {src: valid.src, tgt: valid.trg}", "valid")):
        corpus(tmp_path, src, tgt)
        done = trained(tmp_path, data)
        assert done.code == 2
        assert done.err[-1].startswith(f"{tmp_path}/{name}.src has 5 lines, {tmp_path}/{name}.trg has 6: ")


def test_10_count_mismatch_ends_scoring(tmp_path: Path) -> None:
    (tmp_path / "hyp").write_bytes(b"a\nb\nc\nd\ne\n")
    (tmp_path / "ref").write_bytes(b"a\nb\n\nc\nd\ne\n")
    for words in ((), ("--json", tmp_path / "scores.json")):
        done = mt("eval", "--hyp", tmp_path / "hyp", "--ref", tmp_path / "ref", *words)
        assert (done.code, done.out, len(done.err)) == (2, b"", 1)
        assert done.err[0].startswith(f"{tmp_path}/hyp has 5 lines, {tmp_path}/ref has 6: ")
    assert not (tmp_path / "scores.json").exists()


def test_11_final_newline(tmp_path: Path) -> None:
    pairs = corpus(tmp_path, b"ruso .\nvani .\nlimu .", b"quorn .\nerfal .\nbelto .\n")
    assert texts(pairs) == [("ruso .", "quorn ."), ("vani .", "erfal ."), ("limu .", "belto .")]
    (tmp_path / "whole").write_bytes(b"bako limu .\nseda toru .\n")
    (tmp_path / "open").write_bytes(b"bako limu .\nseda toru .")
    assert list(read_lines(tmp_path / "whole")) == list(read_lines(tmp_path / "open"))


def test_12_tab_in_text(tmp_path: Path) -> None:
    assert texts(corpus(tmp_path, b"bako\tlimu .\n", b"ardin\tbelto .\n")) == [("bako limu .", "ardin belto .")]
    table = tmp_path / "pairs.tsv"
    table.write_bytes(b"bako limu .\tardin belto .\nseda\ttoru .\tcrast dowin .\nvani .\terfal .\n")
    with pytest.raises(DataError) as caught:
        texts(TsvFile(tsv=table))
    assert str(caught.value).startswith(f"{table}:2: 3 columns, expected 2")
    done = trained(tmp_path, train="{tsv: pairs.tsv}")
    assert done.code == 2
    assert done.err[-1].startswith(f"{table}:2: 3 columns, expected 2")


def test_13_tsv_quotes(tmp_path: Path) -> None:
    loud = [
        ("bako .", "Ardin ."),
        ('"limu .', "belto ."),
        ('seda "toru" .', 'crast "dowin" .'),
        ("vani .", '"erfal .'),
        ('mipo ".', 'heldin ".'),
    ]
    silent = [("bako .", "ardin ."), ('"limu .', "belto ."), ('seda "toru"', "crast"), ("NA", "null")]
    for rows in (loud, silent):
        table = tmp_path / "pairs.tsv"
        table.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in rows), encoding="utf-8")
        assert texts(TsvFile(tsv=table)) == rows
        folder = tmp_path / f"{len(rows)}"
        folder.mkdir()
        table.rename(folder / "pairs.tsv")
        done = trained(folder, train="{tsv: pairs.tsv}")
        assert done.code == 0
        assert f"pairs.tsv: kept {len(rows)} of {len(rows)} pairs" in done.err
        store, sides = open_store(RunDir(folder / "run")), load_tokenizers(RunDir(folder / "run"), joint=True)
        examples = store.take(range(len(store)))
        assert [tuple(one.pair[:2]) for one in examples] == rows
        assert [(sides.src.decode(one.src_ids), sides.tgt.decode(one.tgt_ids)) for one in examples] == rows


def test_16_length_filter() -> None:
    lengths = [71] * 8
    for limit, line in [(50, "train.src: kept 0 of 8 pairs (8 longer than 50 pieces)"), (71, "train.src: kept 8 of 8 pairs")]:
        tally = Tally()
        for number, length in enumerate(lengths, 1):
            tally.add(length_reason(range(length), range(length), max_pieces=limit), f"train.src:{number}")
        assert tally.line("train.src") == line
    tally = Tally()
    tally.add(length_reason(range(71), range(3), max_pieces=50), "train.src:1")
    with pytest.raises(DataError, match=r"kept 0 of 1 pair .*raise data.max_pieces"):
        tally.require_pairs("train.src")


def test_16_nothing_left_ends_the_command(tmp_path: Path) -> None:
    lines = "".join(f"{' '.join(['bako', 'limu', 'seda'] * 23)} vani {number}\n" for number in range(8)).encode()
    corpus(tmp_path, lines, lines)
    done = trained(tmp_path, "dev: none, max_pieces: 50")
    assert done.code == 2
    assert done.err[-1].startswith("train.src: kept 0 of 8 pairs (8 longer than 50 pieces); raise data.max_pieces")


def test_63_worker_duplicates(tmp_path: Path) -> None:
    """Of 103 numbered pairs each comes once an epoch, in as many updates, whatever the number of processes."""
    pairs = corpus(tmp_path, *("".join(f"bage {n} .\n" for n in range(103)).encode() for _ in range(2)))
    build_store(tmp_path / "store", [Source("train", read_pairs(pairs))], toy.tokenizers(), max_pieces=None)
    updates = set()
    for workers in (0, 1, 3, 4):
        data = TrainingData(Store(tmp_path / "store"), toy.tokenizers(), budget=150, seed=1, workers=workers)
        seen, count = [], 0
        groups = data.groups(Cursor(), size=1)
        for micro, after in groups:
            seen += [origin for batch in micro for origin in batch.origins]
            count += 1
            if after.epoch:
                break
        groups.close()
        assert sorted(seen) == sorted(f"train.src:{n}" for n in range(1, 104))
        updates.add(count)
    assert len(updates) == 1


def test_63_worker_duplicates_of_a_run(tmp_path: Path) -> None:
    """An epoch through `mt train` has as many updates, as many tokens and the same weights with any number of processes."""
    for side in ("src", "trg"):
        toy.write_lines(tmp_path / f"train.{side}", [f"bage {n} ." for n in range(103)])
    expected: dict[str, Any] = {}
    for workers in (0, 1, 3, 4):
        changes = (f"data.workers={workers}", "train.max_epochs=1", "train.max_updates=1000", "train.batch_tokens=100", "model.dropout=0.2")
        assert tiny_run(tmp_path, *changes, name=f"run-{workers}").code == 0
        run = RunDir(tmp_path / f"run-{workers}")
        updates = [event for event in journal(run) if event["event"] == "update"]
        store = open_store(run)
        assert sum(event["tokens"] for event in updates) == sum(len(one.tgt_ids) + 1 for one in store.take(range(103)))
        assert len(updates) > 3
        found = contents(run.find("last")) | {"updates": updates}
        expected = expected or found
        assert differences(found, expected) == []
