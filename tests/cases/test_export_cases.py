"""Trouble cases of exports: one test for each row, named after it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from mt.data.batches import collate
from mt.data.store import Example
from mt.decode.ct2_engine import Ct2Engine
from mt.export.ct2 import export as export_ct2
from mt.export.hf import export as export_hf
from mt.export.hf import quietly
from mt.export.proof import first_step
from mt.formats.pairs import Pair
from mt.model.loss import LossOfBatch
from mt.model.packed import unpack
from mt.model.transformer import Transformer
from mt.translator import Translator
from tests import toy
from tests.cases.conftest import ToyRun, right
from tests.translating import mt

pytest.importorskip("ctranslate2", reason="the extra `export` is not installed")

BOS = 2


def test_104_converted_model_translates_differently(trained: ToyRun, tmp_path: Path) -> None:
    """41 lines, greedily and with a beam of 4, in fp32: the same, and what may come first is as probable."""
    folder, source = tmp_path / "exported", tmp_path / "test.src"
    toy.write_lines(source, trained.test)
    done = mt("export", "ct2", trained.run.path, folder, "--proof-src", source, "--tolerance", "0")
    assert done.code == 0, done.err
    assert "tokenizer.model" in {path.name for path in folder.iterdir()}
    for beam in "1", "4":
        ours, theirs = (mt("translate", "--model", model, "--input", source, "--beam", beam) for model in (trained.run.path, folder))
        assert ours.code == theirs.code == 0
        assert len(theirs.lines) == 41
        assert theirs.lines == ours.lines
    exported = Translator.load(folder, device="cpu")
    assert isinstance(exported.engine, Ct2Engine)
    found = exported.engine.first_step([parts[0] for parts in exported.encoded(trained.test)])
    assert np.abs(found - first_step(trained.translator, trained.test)).max() < 1e-4


@pytest.fixture(scope="module")
def exported(trained: ToyRun, tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("transformers", reason="the extra `export` is not installed")
    folder = tmp_path_factory.mktemp("exported") / "hf"
    export_hf(trained.run.path, folder)
    return folder


def loaded(folder: Path) -> tuple[Any, Any]:
    """Model and tokenizer, by the library alone."""
    import transformers

    with quietly(transformers):
        return transformers.AutoModelForSeq2SeqLM.from_pretrained(folder), transformers.AutoTokenizer.from_pretrained(folder)


def test_105_the_decoder_is_started_with_the_same_id_everywhere(
    trained: ToyRun, exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In training, in a search, in the settings of the exports, and in a search of theirs."""
    src, tgt = trained.translator.tokenizers
    pair = Pair(trained.test[0], right(trained.test[0]), "test:1")
    batch = collate([Example(pair, src.encode(pair.src), tgt.encode(pair.tgt))], trained.translator.tokenizers)
    starts = [batch.inputs_BT[0, 0].item()]

    steps: list[Tensor] = []
    step = Transformer.step
    monkeypatch.setattr(Transformer, "step", lambda model, last_R, cache: steps.append(last_R) or step(model, last_R, cache))
    trained.translator.translate(trained.test[:1])
    starts += steps[0].tolist()

    model, tokenizer = loaded(exported)
    starts += [model.config.decoder_start_token_id, model.generation_config.decoder_start_token_id]
    starts += [tokenizer.bos_token_id, tokenizer.convert_tokens_to_ids(tokenizer.bos_token)]
    given: list[Tensor] = []
    model.model.decoder.register_forward_pre_hook(lambda _, __, named: given.append(named["input_ids"]), with_kwargs=True)
    model.generate(**tokenizer(trained.test[:1], return_tensors="pt"), num_beams=1, early_stopping=None, length_penalty=None)
    starts += given[0].flatten().tolist()

    export_ct2(trained.run.path, tmp_path / "ct2")
    config = json.loads((tmp_path / "ct2" / "config.json").read_text(encoding="utf-8"))
    starts.append(tgt.pieces(range(tgt.size)).index(config["decoder_start_token"]))
    assert starts == [BOS] * 8


def test_105_given_translations_cost_the_same(trained: ToyRun, exported: Path) -> None:
    """Ten pairs, their loss as it is trained on and as the library computes it from labels."""
    pairs = [Pair(line, right(line), f"test:{number}") for number, line in enumerate(trained.test[:10], start=1)]
    translator = Translator.load(trained.run.path, device="cpu")
    src, tgt = translator.tokenizers
    batch = collate([Example(pair, src.encode(pair.src), tgt.encode(pair.tgt)) for pair in pairs], translator.tokenizers)
    model, tokenizer = loaded(exported)
    sources = tokenizer([pair.src for pair in pairs], return_tensors="pt", padding=True)
    labels_BT = tokenizer([pair.tgt for pair in pairs], return_tensors="pt", padding=True).input_ids
    assert torch.equal(sources.input_ids, batch.src_BS)
    assert torch.equal(labels_BT, batch.gold_BT)
    with torch.inference_mode():
        total, count = LossOfBatch(unpack(translator.model), smoothing=0.0, pad=tgt.pad)(batch.src_BS, batch.inputs_BT, batch.gold_BT)
        theirs = model(**sources, labels=labels_BT.masked_fill(labels_BT == tgt.pad, -100)).loss
        wrong = model(**sources, decoder_input_ids=torch.where(batch.inputs_BT == BOS, tgt.eos, batch.inputs_BT)).logits
    assert float(total) / int(count) == pytest.approx(float(theirs), abs=1e-4)
    spoilt = torch.nn.functional.cross_entropy(wrong.flatten(0, 1), labels_BT.flatten(), ignore_index=tgt.pad)
    assert abs(float(spoilt) - float(theirs)) > 1e-2  # another id at the start would be seen
