"""Legend: B sentences, S source, T target positions, D width, V vocabulary."""

from __future__ import annotations

import math
from collections.abc import Iterator
from copy import deepcopy
from itertools import product

import pytest
import torch
from torch import Tensor, nn

from mt.config.schema import ModelConfig
from mt.model.loss import LossOfBatch
from mt.model.positions import sinusoids
from mt.model.transformer import Transformer, attention_mask
from tests.model.untrained import DIM, FFN, PAD, VOCAB, Ids, batch, gradients, sentences, small_transformer

NORMS = pytest.mark.parametrize("pre_norm", [True, False], ids=["pre", "post"])
SOURCES, TARGETS = sentences(2, 6, 4, seed=1), sentences(5, 1, 3, seed=2)


def states(model: Transformer, ids: Ids) -> Tensor:
    allowed_BS = ids.src_BS != PAD
    return model.decode(model.encode(ids.src_BS, allowed_BS), allowed_BS, ids.inputs_BT)


@pytest.fixture
def wide() -> Transformer:
    """Its own initial weights, enough of them for statistics."""
    torch.manual_seed(1)
    return Transformer(src_vocab=200, tgt_vocab=300, dim=64, ffn=96, heads=4, encoder_layers=1, decoder_layers=1, joint=False, tied=False)


def test_embeddings_are_scaled_by_the_root_of_the_width_and_moved_by_positions() -> None:
    model = small_transformer(joint=False, tied=False)
    ids_BT = batch(SOURCES, TARGETS).inputs_BT
    for embedding in (model.src_embedding, model.tgt_embedding):
        expected = embedding.weight[ids_BT] * math.sqrt(DIM) + sinusoids(ids_BT.size(1), DIM).double()
        torch.testing.assert_close(model.embed(embedding, ids_BT), expected)
        torch.testing.assert_close(model.embed(embedding, ids_BT[:, 2:4], start=2), expected[:, 2:4])


def test_the_table_of_positions_grows_with_what_is_asked_for() -> None:
    """Also while translating, and what is left then can be trained with, copied and overwritten."""
    model = small_transformer()
    ids_BT = torch.full((1, 1300), 5)
    expected = model.tgt_embedding.weight[ids_BT] * math.sqrt(DIM) + sinusoids(1300, DIM).double()
    with torch.inference_mode():
        torch.testing.assert_close(model.embed(model.tgt_embedding, ids_BT[:, :1], start=600), expected[:, 600:601])
        torch.testing.assert_close(model.embed(model.tgt_embedding, ids_BT), expected)
    assert not model.positions.rows.is_inference()
    assert not any("positions" in name for name in model.state_dict())


@NORMS
def test_padded_is_bare(pre_norm: bool) -> None:
    model = small_transformer(pre_norm=pre_norm)
    together = states(model, batch(SOURCES, TARGETS))
    for b, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        torch.testing.assert_close(together[b, : len(target) + 1], states(model, batch([source], [target]))[0])


@NORMS
def test_what_stands_in_padding_changes_nothing(pre_norm: bool) -> None:
    model, ids = small_transformer(pre_norm=pre_norm), batch(SOURCES, TARGETS)
    allowed_BS, real_BT = ids.src_BS != PAD, ids.gold_BT != PAD
    memory_BSD = model.encode(ids.src_BS, allowed_BS)
    expected = model.decode(memory_BSD, allowed_BS, ids.inputs_BT)[real_BT]
    with torch.no_grad():
        model.src_embedding.weight[PAD] = 1e3
    changed_BSD = model.encode(ids.src_BS, allowed_BS)
    assert torch.equal(changed_BSD[allowed_BS], memory_BSD[allowed_BS])
    assert not torch.equal(changed_BSD[~allowed_BS], memory_BSD[~allowed_BS])
    assert torch.equal(model.decode(changed_BSD, allowed_BS, ids.inputs_BT)[real_BT], expected)
    filled_BSD = memory_BSD.masked_fill(~allowed_BS[:, :, None], 1e3)
    assert torch.equal(model.decode(filled_BSD, allowed_BS, ids.inputs_BT)[real_BT], expected)


def test_a_row_without_a_real_position_may_look_at_its_padding_others_never() -> None:
    """Kernels differ in what they make of a row that may look nowhere: NaN, or zeros."""
    allowed_BS = torch.tensor([[True, False, False], [False, False, False], [True, True, True]])
    expected = torch.tensor([[True, False, False], [True, True, True], [True, True, True]])
    assert torch.equal(attention_mask(allowed_BS), expected[:, None, None])


@NORMS
def test_no_gradient_comes_from_padding(pre_norm: bool) -> None:
    """Untied: in a tied model padding is a class of the output layer, whose loss pushes it away."""
    model, ids = small_transformer(pre_norm=pre_norm, joint=False, tied=False), batch(SOURCES, TARGETS)
    states(model, ids)[ids.gold_BT != PAD].square().sum().backward()
    for embedding in (model.src_embedding, model.tgt_embedding):
        assert embedding.weight.grad is not None
        assert (embedding.weight.grad[PAD] == 0).all()
        assert (embedding.weight.grad[ids.src_BS[0, 0]] != 0).any()


@NORMS
def test_a_position_depends_on_no_later_one(pre_norm: bool) -> None:
    """By gradient: exact zeros."""
    model, ids = small_transformer(pre_norm=pre_norm), batch(SOURCES[:1], TARGETS[:1])
    allowed_BS = ids.src_BS != PAD
    with torch.no_grad():
        memory_BSD = model.encode(ids.src_BS, allowed_BS)
    embedded: list[Tensor] = []
    model.tgt_embedding.register_forward_hook(lambda _module, _inputs, output: embedded.append(output))
    out_TD = model.decode(memory_BSD, allowed_BS, ids.inputs_BT)[0]
    for t in range(out_TD.size(0)):
        # The weights keep a post-norm sum from being constant.
        grad_BTD = torch.autograd.grad((out_TD[t] * torch.arange(DIM)).sum(), embedded[0], retain_graph=True)[0]
        depends_T = (grad_BTD[0] != 0).any(dim=-1)
        assert depends_T.tolist() == [position <= t for position in range(out_TD.size(0))]


def test_a_source_position_depends_on_all_of_its_sentence_and_nothing_else() -> None:
    model, ids = small_transformer(), batch(SOURCES, TARGETS)
    allowed_BS = ids.src_BS != PAD
    embedded: list[Tensor] = []
    model.src_embedding.register_forward_hook(lambda _module, _inputs, output: embedded.append(output))
    memory_BSD = model.encode(ids.src_BS, allowed_BS)
    for b in range(len(SOURCES)):
        grad_BSD = torch.autograd.grad((memory_BSD[b, 0] * torch.arange(DIM)).sum(), embedded[0], retain_graph=True)[0]
        expected = torch.zeros_like(allowed_BS)
        expected[b] = allowed_BS[b]
        assert torch.equal((grad_BSD != 0).any(dim=-1), expected)


def test_dropout_acts_on_embeddings_and_layers_while_training_only() -> None:
    model, ids = small_transformer(dropout=0.4), batch(SOURCES, TARGETS)
    expected = states(small_transformer(), ids)
    assert torch.equal(states(model, ids), expected)
    torch.manual_seed(1)
    assert (model.train().embed(model.src_embedding, ids.src_BS) == 0).any()
    first = states(model, ids)
    assert not torch.equal(first, expected)
    assert not torch.equal(first, states(model, ids))


@pytest.mark.parametrize("attention_dropout", [0.0, 0.2])
def test_gradient_checkpointing_gives_the_same_loss_and_gradients(attention_dropout: float) -> None:
    """To the last bit and with dropout: the second forward pass draws what the first one drew."""
    ids, found = batch(SOURCES, TARGETS), []
    for checkpointing in (False, True):
        model = small_transformer(dropout=0.3, attention_dropout=attention_dropout, gradient_checkpointing=checkpointing).train()
        calls: list[None] = []
        for layer in (*model.encoder, *model.decoder):
            layer.register_forward_pre_hook(lambda _module, _inputs, calls=calls: calls.append(None))
        torch.manual_seed(1)
        total, _ = LossOfBatch(model, smoothing=0.1, pad=PAD)(*ids)
        total.backward()
        assert len(calls) == (6 if checkpointing else 3)
        found.append((total, gradients(model), torch.get_rng_state()))
    (loss, grads, rng), (loss_again, grads_again, rng_again) = found
    assert torch.equal(loss, loss_again)
    assert torch.equal(rng, rng_again)
    assert all(torch.equal(grads[name], grads_again[name]) for name in grads)


@pytest.mark.parametrize(("joint", "tied", "pre_norm"), list(product([True, False], repeat=3)))
def test_parameters_are_stored_once_and_number_what_the_formula_says(joint: bool, tied: bool, pre_norm: bool) -> None:
    model = small_transformer(joint=joint, tied=tied, pre_norm=pre_norm)
    norm, attention, feed_forward = 2 * DIM, 4 * (DIM * DIM + DIM), 2 * DIM * FFN + FFN + DIM
    layers = (attention + feed_forward + 2 * norm) + 2 * (2 * attention + feed_forward + 3 * norm)
    src_rows = VOCAB if joint else VOCAB + 2
    rows = {(True, True): VOCAB, (True, False): src_rows + 2 * VOCAB, (False, True): src_rows + VOCAB, (False, False): src_rows + 2 * VOCAB}
    assert sum(p.numel() for p in model.parameters()) == rows[joint, tied] * DIM + layers + (2 * norm if pre_norm else 0)
    assert (model.src_embedding.weight is model.tgt_embedding.weight) == (joint and tied)
    assert (model.output.weight is model.tgt_embedding.weight) == tied


def test_tied_weights_stay_tied_on_the_way_to_another_precision() -> None:
    model = small_transformer().to(torch.bfloat16)
    assert model.output.weight is model.tgt_embedding.weight is model.src_embedding.weight


def test_a_model_in_bf16_computes_in_bf16() -> None:
    model, ids = small_transformer(), batch(SOURCES, TARGETS)
    expected = states(model, ids)
    found = states(model.to(torch.bfloat16), ids)
    assert found.dtype == torch.bfloat16
    assert (found.double() - expected).abs().mean() < 0.05 * expected.abs().mean()


def test_initial_embeddings_are_normal_with_unit_variance_once_scaled(wide: Transformer) -> None:
    for weight in (wide.src_embedding.weight, wide.tgt_embedding.weight, wide.output.weight):
        assert weight.std().tolist() * math.sqrt(64) == pytest.approx(1, abs=5 / (2 * weight.numel()) ** 0.5)
        assert weight.mean().tolist() == pytest.approx(0, abs=5 * 64**-0.5 / weight.numel() ** 0.5)


def test_initial_biases_are_zero_and_norm_weights_one(wide: Transformer) -> None:
    for name, parameter in wide.named_parameters():
        if name.endswith("bias"):
            assert (parameter == 0).all()
        elif "norm" in name:
            assert (parameter == 1).all()


def test_other_initial_matrices_are_xavier_uniform_each_fused_block_by_itself(wide: Transformer) -> None:
    def matrices() -> Iterator[Tensor]:
        for name, module in wide.named_modules():
            if isinstance(module, nn.Linear) and name != "output":
                yield from module.weight.split(64) if name.endswith(("qkv", "kv")) else [module.weight]

    found = list(matrices())
    assert len(found) == (4 + 2) + (4 + 4 + 2)
    for weight in found:
        bound = math.sqrt(6 / sum(weight.shape))
        assert 0.99 * bound < weight.abs().max() <= bound
        assert weight.std().tolist() == pytest.approx(bound / math.sqrt(3), rel=0.03)


def test_gate_and_value_are_initialised_each_by_itself() -> None:
    torch.manual_seed(1)
    model = Transformer(src_vocab=9, tgt_vocab=9, dim=64, ffn=96, heads=4, encoder_layers=1, decoder_layers=1, activation="swiglu")
    for weight in model.encoder[0].feed_forward.inner.weight.split(96):
        bound = math.sqrt(6 / (64 + 96))
        assert 0.99 * bound < weight.abs().max() <= bound


def test_the_options_cost_the_parameters_they_say() -> None:
    def parameters(**options: str) -> int:
        return sum(p.numel() for p in small_transformer(**options).parameters())

    sublayers, layers = 2 + 2 * 3, 3
    assert parameters(norm_kind="rms") == parameters() - (sublayers + 2) * DIM
    assert parameters(activation="gelu") == parameters(positions="rope") == parameters()
    assert parameters(activation="swiglu") == parameters() + layers * (DIM + 1) * FFN


def test_a_dropped_word_leaves_its_position() -> None:
    model = small_transformer(word_dropout=0.999).train()
    ids_BT = batch(SOURCES, TARGETS).inputs_BT
    torch.manual_seed(1)
    found = model.embed(model.tgt_embedding, ids_BT, start=2)
    torch.testing.assert_close(found, sinusoids(2 + ids_BT.size(1), DIM).double()[2:].expand_as(found))


def test_a_config_decides_the_model() -> None:
    cfg = ModelConfig(dim=12, ffn=20, heads=3, encoder_layers=2, decoder_layers=1, dropout=0.25, attention_dropout=0.125, norm="post")
    model = Transformer.build(cfg, src_vocab=9, tgt_vocab=7, joint=False)
    assert (model.src_embedding.weight.shape, model.tgt_embedding.weight.shape) == ((9, 12), (7, 12))
    assert (len(model.encoder), len(model.decoder)) == (2, 1)
    layer = model.decoder[0]
    assert (layer.attention.heads, layer.cross.heads, layer.feed_forward.inner.out_features) == (3, 3, 20)
    assert {name: m.p for name, m in model.named_modules() if hasattr(m, "dropped")} == {
        name: 0.0 if name.endswith(("feed_forward.dropout", "word_dropout")) else 0.25
        for name, _ in model.named_modules()
        if name.endswith("dropout")
    }
    assert {m.dropout for m in (layer.attention, layer.cross, model.encoder[0].attention)} == {0.125}
    assert isinstance(model.encoder_norm, nn.Identity)
    assert not layer.cross_residual.pre_norm
    assert not model.gradient_checkpointing
    other = Transformer.build(ModelConfig(tied_embeddings=False, gradient_checkpointing=True), src_vocab=9, tgt_vocab=9, joint=True)
    assert other.output.weight is not other.tgt_embedding.weight
    assert other.gradient_checkpointing


def test_a_config_decides_the_options() -> None:
    dropouts = {"activation_dropout": 0.5, "word_dropout": 0.4}
    cfg = ModelConfig(dim=12, ffn=20, heads=3, norm_kind="rms", activation="swiglu", positions="rope", **dropouts)
    model = Transformer.build(cfg, src_vocab=9, tgt_vocab=9, joint=True)
    norms = [m for name, m in model.named_modules() if name.endswith("norm")]
    assert len(norms) == 3 * 2 + 3 * 3 + 2
    assert all(isinstance(norm, nn.RMSNorm) for norm in norms)
    assert model.word_dropout.p == 0.4
    for layer in (*model.encoder, *model.decoder):
        assert (layer.feed_forward.inner.out_features, layer.feed_forward.outer.in_features) == (40, 20)
        assert layer.feed_forward.dropout.p == 0.5
        assert layer.attention.turn is model.encoder[0].attention.turn  # one table for all
    assert (model.positions.rows == 0).all()


def test_a_narrowed_model_rounds_what_is_multiplied_and_nothing_else() -> None:
    """The sums of residuals, norms and positions stay in fp32: what comes out is nearer than with all of the model in bf16."""
    torch.manual_seed(1)
    model = Transformer(src_vocab=200, tgt_vocab=200, dim=64, ffn=96, heads=4, encoder_layers=4, decoder_layers=4).eval()
    ids = Ids(*(torch.randint(4, 200, (6, 20)) for _ in range(3)))
    with torch.no_grad():
        exact = states(model, ids)
        narrow = deepcopy(model).narrowed(torch.bfloat16)
        whole, narrowed = (states(other, ids) - exact for other in (deepcopy(model).bfloat16(), narrow))
        assert torch.equal(states(deepcopy(model).narrowed(torch.float32), ids), exact)
    assert 0 < narrowed.norm() < 0.8 * whole.norm()
    assert narrowed.dtype == torch.float32
    assert narrow.output.weight is narrow.tgt_embedding.weight
    assert narrow.output.weight.dtype == torch.bfloat16
