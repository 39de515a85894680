"""The `transformers` library computes from an export what the model computes: the same logits, the same searches, whatever the options.

Legend: B sentences, S source, T target positions, V vocabulary, W beam width.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

from mt.checkpoint import read_state, read_weights, save_checkpoint
from mt.data.batches import padded
from mt.decode.engine import Beam
from mt.export.hf import export, quietly
from mt.rundir import RunDir
from mt.search.step import Hypothesis
from mt.translator import Translator
from tests import toy
from tests.translating import in_float64, lively_run

transformers = pytest.importorskip("transformers", reason="the extra `export` is not installed")

TIED = "model.tied_embeddings=true"
DEEP = "model.encoder_layers=4", "model.decoder_layers=1"
OPTIONS = {
    "pre": (TIED,),
    "pre, gelu, deep and shallow": (TIED, "model.activation=gelu", *DEEP),
    "post": (TIED, "model.norm=post", "model.decoder_layers=2"),
    "post, untied, gelu": ("model.norm=post", "model.activation=gelu"),
    "post, two vocabularies": ("model.norm=post", "tokenizer.joint=false", "tokenizer.kind=unigram"),
    "post, two vocabularies, tied": (TIED, "model.norm=post", "tokenizer.joint=false", "model.encoder_layers=2"),
}
LIMIT = 30
LINES = toy.sentences(50, seed=5, shortest=1, longest=16)


class Twins(NamedTuple):
    """One model in two programs, in float64: weights as lively as these magnify the rounding of float32."""

    ours: Translator
    theirs: Any
    tokenizers: tuple[Any, Any]

    @property
    def sources(self) -> list[list[int]]:
        """As the other program cuts them, ends included."""
        return self.tokenizers[0](LINES).input_ids


def twins(run: RunDir, folder: Path, *, joint: bool) -> Twins:
    export(run.path, folder)
    with quietly(transformers):
        theirs = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder, dtype=torch.float64)
    places = [{}, {}] if joint else [{"subfolder": "source"}, {"subfolder": "target"}]
    source, target = (transformers.AutoTokenizer.from_pretrained(folder, **place) for place in places)
    return Twins(in_float64(run), theirs, (source, target))


def let_it_end(run: RunDir, *, by: float = 9.0) -> None:
    """A new best checkpoint, of a model that finds the end likelier: outputs end by themselves, at lengths of their own."""
    weights = read_weights(run.find("best"), None)
    model = Translator.load(run.path, device="cpu").model
    end_D = model.output.weight[3].detach()
    norm = "decoder_norm" if "decoder_norm.bias" in weights else f"decoder.{len(model.decoder) - 1}.feed_forward_residual.norm"
    weights[f"{norm}.bias"] = by * end_D / end_D.square().sum()
    save_checkpoint(run.step(2), weights=weights, state=read_state(run.find("best")))
    run.set_names(best=run.step(2))


@pytest.fixture(scope="module", params=OPTIONS.values(), ids=OPTIONS)
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Twins:
    folder = tmp_path_factory.mktemp("lively")
    run = lively_run(folder, *request.param)
    let_it_end(run)
    return twins(run, folder / "exported", joint="tokenizer.joint=false" not in request.param)


def logits(
    both: Twins, sources: Sequence[Sequence[int]], inputs: Sequence[Sequence[int]], *, dtype: torch.dtype = torch.float64
) -> tuple[Tensor, Tensor]:
    """Of both, at real positions (N, V)."""
    ours, theirs = (deepcopy(model).to(dtype) for model in (both.ours.model, both.theirs))
    src_BS, inputs_BT = padded(sources, pad=0), padded(inputs, pad=0)
    allowed_BS, real_BT = src_BS != 0, inputs_BT != 0
    with torch.inference_mode():
        expected = ours.output(ours.decode(ours.encode(src_BS, allowed_BS), allowed_BS, inputs_BT))
        found = theirs(input_ids=src_BS, attention_mask=allowed_BS.long(), decoder_input_ids=inputs_BT).logits
    return expected[real_BT], found[real_BT]


def test_tokenizers_give_the_same_ids(both: Twins) -> None:
    src, tgt = both.ours.tokenizers
    assert both.sources == [[*ids, src.eos] for ids in src.encode_batch(LINES)]
    targets = list(map(toy.translation, LINES))
    assert both.tokenizers[1](targets, add_special_tokens=False).input_ids == tgt.encode_batch(targets)
    assert both.tokenizers[1].batch_decode(tgt.encode_batch(targets), skip_special_tokens=True) == targets
    one = both.tokenizers[0](["meri </s> ."]).input_ids[0]
    assert one == [*src.encode("meri </s> ."), src.eos]


def test_logits_are_the_same(both: Twins) -> None:
    inputs = [[2, *ids] for ids in both.ours.tokenizers.tgt.encode_batch(list(map(toy.translation, LINES)))]
    expected, found = logits(both, both.sources, inputs)
    assert float(expected.std()) > 1
    torch.testing.assert_close(found, expected, atol=1e-9, rtol=0)
    single, theirs = logits(both, both.sources, inputs, dtype=torch.float32)
    rounding = float((single - expected).abs().max())
    assert float((theirs - single).abs().max()) < 1e-4 + 2 * rounding


def test_the_first_step_is_as_probable(both: Twins) -> None:
    expected, found = (one.log_softmax(dim=-1) for one in logits(both, both.sources, [[2]] * len(LINES)))
    assert float((found - expected).abs().max()) < 1e-4
    assert both.theirs.generation_config.decoder_start_token_id == both.theirs.config.decoder_start_token_id == 2


def searched(both: Twins, *, width: int, alpha: float) -> tuple[list[list[Hypothesis]], list[list[list[int]]], list[list[float]]]:
    """All hypotheses of each line, ours and theirs, with their scores."""
    src, sources = both.ours.tokenizers.src, both.sources
    limits = [LIMIT] * len(sources)
    ours = both.ours.engine.search([ids[:-1] for ids in sources], Beam(width, length_penalty=alpha, n_best=width), limits=limits)
    options = {"early_stopping": True, "length_penalty": alpha} if width > 1 else {"early_stopping": None, "length_penalty": None}
    src_BS = padded(sources, pad=src.pad)
    with quietly(transformers):
        found = both.theirs.generate(
            input_ids=src_BS,
            attention_mask=(src_BS != src.pad).long(),
            num_beams=width,
            num_return_sequences=width,
            max_new_tokens=LIMIT,
            return_dict_in_generate=True,
            output_scores=True,
            **options,
        )
    ids = [row[1 : row.index(3, 1)] for row in found.sequences.tolist()]
    scores = found.sequences_scores.tolist() if width > 1 else [0.0] * len(ids)
    places = range(0, len(ids), width)
    return ours, [ids[place : place + width] for place in places], [scores[place : place + width] for place in places]


def test_greedy_search_finds_the_same(both: Twins) -> None:
    ours, theirs, _ = searched(both, width=1, alpha=1.0)
    same = [[one.ids for one in found] == others for found, others in zip(ours, theirs, strict=True)]
    assert len({tuple(found[0].ids) for found in ours}) > 5
    assert all(same)


@pytest.mark.parametrize("alpha", [1.0, 0.6, 0.0])
def test_beam_search_finds_the_same(both: Twins, alpha: float) -> None:
    """All hypotheses with their scores, but where the limit of length ended one: that is ranked there without its end."""
    whole = same = 0
    for found, ids, scores in zip(*searched(both, width=4, alpha=alpha), strict=True):
        if any(one.truncated for one in found):
            continue
        whole += 1
        assert scores == pytest.approx([one.score for one in found], abs=1e-4)
        same += [one.ids for one in found] == ids
    assert whole >= 10
    assert same >= whole - 1  # the library adds up in float32, where two may be equal


def test_what_is_suppressed_is_never_given(both: Twins) -> None:
    """Padding, unknown and the start, however probable they are."""
    model, never = deepcopy(both.theirs), both.theirs.generation_config.suppress_tokens
    assert never == [0, 1, 2]
    with torch.no_grad():
        model.final_logits_bias[0, never] = 1000.0
    src_BS = padded(both.sources[:8], pad=0)
    with quietly(transformers):
        outputs = model.generate(input_ids=src_BS, attention_mask=(src_BS != 0).long(), max_new_tokens=8)
    assert not {0, 1, 2} & {i for row in outputs.tolist() for i in row[1 : row.index(3)]}
