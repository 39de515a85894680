"""What is refused and what is doubted, always with the key, its line and the cure; and the names proposed for unknown keys."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from mt.config.names import nearest, settings
from mt.config.schema import DecodeConfig, ModelConfig


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("model: {dim: 100, heads: 8}", "model.heads: 8 does not divide model.dim 100; use 10"),
        ("model: {dim: 9, heads: 3}", "model.dim: 9 is odd, and sinusoidal positions need an even width; use 10"),
        (
            "train: {r_drop: 5}\nmodel: {dropout: 0}",
            "train.r_drop: two passes through a model without dropout are one and the same; set model.dropout, or leave r_drop out",
        ),
        (
            "model: {dim: 12, heads: 4, positions: rope}",
            "model.heads: heads 3 wide are odd, and rope turns pairs of numbers; use model.dim 16",
        ),
        (
            "decode: {n_best: 6}",
            "decode.n_best: 6 translations a line, but a search with beam 5 and patience 1 ends at 5; raise decode.beam to 6",
        ),
        (
            "decode: {protect: [urls, number]}",
            "decode.protect: 'number' is no kind; give tags, placeholders, numbers, urls, emails, or a regular expression",
        ),
        ("decode: {beam: 1, patience: 2}", "decode.patience: patience needs a beam; set decode.beam to 2 or more, or leave patience out"),
        (
            "decode: {beam: 1, coverage_penalty: 0.2}",
            "decode.coverage_penalty: it ranks what a beam finished; set decode.beam to 2 or more, or leave it out",
        ),
        (
            "train: {schedule: {kind: cosine}}",
            "train.schedule.kind: cosine falls until the end, so the end must be known; set train.max_updates or train.max_epochs",
        ),
        (
            "train: {max_minutes: 5, schedule: {kind: linear}}",
            "train.schedule.kind: linear falls until the end, so the end must be known; set train.max_updates or train.max_epochs "
            "(max_minutes is not enough)",
        ),
        (
            "train: {optimizer: {lr: 0.5}, schedule: {kind: noam}}",
            "train.optimizer.lr: the noam schedule ignores it; leave it out and scale with train.schedule.factor, or choose inverse_sqrt",
        ),
        (
            "train: {average: {last: 8}}",
            "train.keep: 5 kept checkpoints are fewer than the 8 of train.average.last; set train.keep to 8 or more",
        ),
        (
            "train: {average: {last: 3, best: 2}}",
            "train.average.best: the 3 last, or the 2 best? leave one of the two out",
        ),
        (
            "tokenizer: {sample: {unigram: {}}}",
            "tokenizer.sample: unigram sampling needs kind: unigram (for bpe use sample: {bpe_dropout: 0.1})",
        ),
        (
            "tokenizer: {kind: unigram, sample: {bpe_dropout: 0.1}}",
            "tokenizer.sample: bpe_dropout needs kind: bpe (for unigram use sample: {unigram: {alpha: 0.1, nbest: 64}})",
        ),
    ],
)
def test_contradictions_are_refused(problems, text: str, problem: str) -> None:
    assert problems(text) == [f"x.yaml:2: {problem}"]


@pytest.mark.parametrize(
    "text",
    [
        "model: {dim: 96, heads: 8}",
        "decode: {beam: 4, patience: 1.5, n_best: 6}",
        "decode: {beam: 1, patience: 1}",
        "train: {schedule: {kind: cosine}, max_epochs: 3}",
        "train: {schedule: {kind: linear}, max_updates: 300}",
        "train: {schedule: {kind: noam, factor: 2}}",
        "train: {average: {last: 5}}",
        "train: {average: {best: 9}, save_every: 400, validation: {every: 200}}",
        "tokenizer: {kind: unigram, sample: {unigram: {}}}",
        "tokenizer: {sample: {bpe_dropout: 0.1}}",
    ],
)
def test_what_fits_together_passes_without_a_word(read, text: str) -> None:
    assert read(text).warnings == ()


def test_without_a_dev_set_nothing_is_the_best(problems) -> None:
    what = "which checkpoints are the best is not known without a dev set; give data.dev, or average the last ones"
    text = "data: {train: [{tsv: a}], dev: none}\ntrain: {average: {best: 2}}"
    assert problems(text, data=False) == [f"x.yaml:2: train.average.best: {what}"]


def test_the_best_are_among_those_that_are_validated(read) -> None:
    (warning,) = read("train: {average: {best: 2}, save_every: 300, validation: {every: 200}}").warnings
    assert warning.startswith(
        "x.yaml:2: train.save_every: no multiple of train.validation.every: checkpoints that are not validated have no"
    )


def test_corpora_of_one_name_are_refused_at_the_later_one(problems) -> None:
    text = "data:\n  train:\n  - {tsv: a, name: news}\n  - {tsv: b}\n  - {tsv: c, name: news}\n  dev: none\n"
    assert problems(text, data=False) == ["x.yaml:5: data.train.2.name: 2 corpora are named 'news'; give each its own name"]


@pytest.mark.parametrize("name", ["a/b", "..", "", "a\\b"])
def test_test_sets_need_names_that_files_can_have(problems, name: str) -> None:
    text = f"data:\n  train: [{{tsv: a}}]\n  dev: none\n  test:\n    '{name}': {{tsv: b}}\n"
    (problem,) = problems(text, data=False)
    assert problem.startswith(f"x.yaml:5: data.test.{name}: the name")


def test_one_column_is_not_both_sides(problems) -> None:
    (problem,) = problems("data: {train: [{tsv: a, columns: [1, 1]}], dev: none}", data=False)
    assert problem.startswith("x.yaml:1: data.train.0.columns: column 1 is both source and target")


def test_contradictions_hold_in_python_too() -> None:
    with pytest.raises(ValidationError, match="7 does not divide model.dim 256"):
        ModelConfig(heads=7)
    with pytest.raises(ValidationError, match="raise decode.beam to 9"):
        DecodeConfig(n_best=9)


# ── messages ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("train: {seed: abc}", "train.seed: should be a whole number, not 'abc'"),
        ("train: {seed: 1.5}", "train.seed: should be a whole number, not 1.5"),
        ("train: {seed: -1}", "train.seed: should be at least 0, is -1"),
        ("train: {optimizer: {lr: 0}}", "train.optimizer.lr: should be greater than 0, is 0"),
        ("train: {optimizer: {lr: .inf}}", "train.optimizer.lr: should be a finite number, not inf"),
        ("model: {dropout: 1}", "model.dropout: should be less than 1, is 1"),
        ("model: {dropout: [0.1]}", "model.dropout: should be a number, not a list"),
        ("train: {precision: bf61}", "train.precision: should be one of auto, fp32, bf16, fp16, not 'bf61'; did you mean bf16?"),
        (
            "train: {schedule: {kind: cosin}}",
            "train.schedule.kind: should be one of inverse_sqrt, noam, cosine, linear, constant, not 'cosin'; did you mean cosine?",
        ),
        ("train: {schedule: cosine}", "train.schedule: should be a group of settings (name: value), not 'cosine'"),
        ("train: {schedule: {floor: 0}}", "train.schedule.floor: does not go with inverse_sqrt; remove one of the two"),
        ("train: {optimizer: {betas: [0.9]}}", "train.optimizer.betas.1: is missing; the list needs 2 items or more"),
        ("train: {optimizer: {betas: 0.9}}", "train.optimizer.betas: should be a list, not 0.9; write [a, b]"),
        ("train: {optimizer: {betas: [0, 0, 0]}}", "train.optimizer.betas: should have 2 items, has 3"),
        ("model:", "model: has no value; give one or leave the key out"),
        ("model: 3", "model: should be a group of settings (name: value), not 3"),
        ("langs: {src: 1, tgt: en}", "langs.src: should be text, not 1; put it in quotes"),
        ("langs: {src: '', tgt: en}", "langs.src: is empty; give a value or leave the key out"),
        ("langs: {src: en}", "langs.tgt: is missing; add it"),
        ("nonsense: 1", "nonsense: unknown key; possible here: langs, data, tokenizer, model, train, decode, run_dir"),
        ("tokenizer: {sample: {}, bpe: 1}", "tokenizer.bpe: unknown key; possible here: kind, vocab_size, joint, character_coverage, "
         "byte_fallback, normalization, symbols, max_line_bytes, sample"),
    ],
)  # fmt: skip
def test_messages_are_plain_words(problems, text: str, problem: str) -> None:
    assert problems(text) == [f"x.yaml:2: {problem}"]


@pytest.mark.parametrize(
    ("key", "inside", "outside"),
    [
        *((f"data.train.{n}.weight", [0.001, 1000], [0.0009, 1001]) for n in range(4)),
        ("decode.length_penalty", [0, 10], [-0.1, 10.1]),
        ("decode.max_length_factor", [0.1, 100], [0, 101]),
        ("decode.max_length_extra", [1, 10000], [0, 10001]),
        ("train.optimizer.lr", [1e-9, 1000], [0, 1001]),
        ("train.optimizer.eps", [1e-12], [0, 1e-13]),
        ("train.optimizer.weight_decay", [0, 10], [-0.1, 10.1]),
    ],
)
def test_numbers_have_bounds(read, problems, key: str, inside: list[float], outside: list[float]) -> None:
    data = "data: {train: [{src: a, tgt: b}, {tsv: c}, {jsonl: d}, {hub: e}], dev: none}\n"
    for value in inside:
        read(data, f"{key}={value}", data=False)
    for value in outside:
        (problem,) = problems(data, f"{key}={value}", data=False)
        assert problem.startswith(f"--set {key}: should be ")


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ("{dev: none}", "data.train: is missing; give a list of corpora such as [{src: train.en, tgt: train.de}]"),
        ("{train: [], dev: none}", "data.train: should have 1 items or more, has 0"),
        (
            "{train: {tsv: a}, dev: none}",
            "data.train: should be a list, not a group of settings; write [{src: train.en, tgt: train.de}], or begin each item with `- `",
        ),
        ("{train: [t.en], dev: none}", "data.train.0: should be a group of settings (name: value), not 't.en'"),
        ("{train: [{src: a}], dev: none}", "data.train.0.tgt: is missing; add it"),
        ("{train: [{tsv: a, weight: 0}], dev: none}", "data.train.0.weight: should be at least 0.001, is 0"),
        ("{train: [{tsv: a}], dev: None}", "data.dev: should be a dev set such as {src: dev.en, tgt: dev.de}, or none, not 'None'"),
    ],
)
def test_messages_about_data(problems, data: str, problem: str) -> None:
    assert problems(f"data: {data}", data=False) == [f"x.yaml:1: {problem}"]


def test_no_data_at_all(problems) -> None:
    (problem,) = problems("model: {dim: 64}", data=False)
    assert problem.startswith("x.yaml:1: data: is missing; give at least data.train")


def test_every_problem_is_reported_at_once_in_the_order_of_the_file(problems) -> None:
    text = """
train:
  seed: x
  warmup: -4
  schedule: {kind: cosine}
  optimizer: {lr: 0, betsa: [0.9, 2]}
  keep: 1
  average: {last: 2}
model: {dim: 255, heads: 2, gradient_checkpointing: no}
decode:
  n_best: 9
  n_best: 8
"""
    assert [line.split(": ")[:2] for line in problems(text)] == [
        ["x.yaml:4", "train.seed"],
        ["x.yaml:5", "train.warmup"],
        ["x.yaml:5", "train.warmup"],
        ["x.yaml:6", "train.schedule.kind"],
        ["x.yaml:7", "train.optimizer.betsa"],
        ["x.yaml:7", "train.optimizer.lr"],
        ["x.yaml:7", "train.optimizer.betsa.1"],
        ["x.yaml:8", "train.keep"],
        ["x.yaml:10", "model.gradient_checkpointing"],
        ["x.yaml:10", "model.heads"],
        ["x.yaml:10", "model.dim"],
        ["x.yaml:13", "decode.n_best"],
        ["x.yaml:13", "decode.n_best"],
    ]


def test_a_wrong_value_brings_no_contradictions_with_it(problems) -> None:
    assert problems("model: {dim: x, heads: 7}") == ["x.yaml:2: model.dim: should be a whole number, not 'x'"]


# ── names ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("training", "train"),
        ("optimizer", "train.optimizer"),
        ("train.warmup", "train.schedule.warmup"),
        ("train.learning_rate", "train.optimizer.lr"),
        ("train.batch_size", "train.batch_tokens"),
        ("train.max_update", "train.max_updates"),
        ("train.drop_out", "model.dropout"),
        ("train.shedule", "train.schedule"),
        ("model.d_model", "model.dim"),
        ("model.encoder_layer", "model.encoder_layers"),
        ("decode.beam_size", "decode.beam"),
        ("decode.alpha", "decode.length_penalty"),
        ("decode.lengthPenalty", "decode.length_penalty"),
        ("data.train.0.source", "data.train.0.src"),
        ("data.test.flickr.colums", "data.test.flickr.columns"),
        ("data.valid", "data.dev"),
        ("tokenizer.vocabsize", "tokenizer.vocab_size"),
        ("seed", "train.seed"),
        ("qqq", None),
    ],
)
def test_nearest_name(written: str, meant: str | None) -> None:
    trail = tuple(int(part) if part.isdigit() else part for part in written.split("."))
    found = nearest(trail)
    assert (found and ".".join(map(str, found))) == meant


def test_every_setting_is_its_own_nearest_name() -> None:
    assert all(nearest(setting) == setting for setting in settings())


def test_a_misspelt_group_is_still_looked_into(problems) -> None:
    assert problems("training: {shedule: {warm_up: 0}}") == [
        "x.yaml:2: training: unknown key, did you mean `train`?",
        "x.yaml:2: training.shedule: unknown key, did you mean `train.schedule`?",
        "x.yaml:2: training.shedule.warm_up: unknown key, did you mean `train.schedule.warmup`?",
        "x.yaml:2: training.shedule.warm_up: should be at least 1, is 0",
    ]


# ── doubts ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "doubt"),
    [
        (
            "train: {max_updates: 100, schedule: {warmup: 101}}",
            "train.schedule.warmup: longer than the run of 100 updates: the learning rate never reaches its peak",
        ),
        (
            "train: {max_updates: 100, validation: {every: 101}}",
            "train.validation.every: longer than the run of 100 updates: the only validation is at the end",
        ),
        (
            "train: {max_updates: 100, save_every: 101}",
            "train.save_every: longer than the run of 100 updates: nothing is saved before the end",
        ),
        (
            "train: {optimizer: {lr: 1}}",
            "train.optimizer.lr: 1 is far above what AdamW takes, 1e-4 to 5e-3: the loss will hardly come down, or go up again",
        ),
        ("train: {max_updates: 9}", "train.max_updates: 9 updates show that training runs, but teach a model next to nothing"),
        (
            "train: {batch_tokens: 256}",
            "train.batch_tokens: less than data.max_pieces 256 and an end mark: a longer sentence is a batch by itself",
        ),
        (
            "model: {attention_dropout: 0.1}",
            "model.attention_dropout: above 0 it disables the fused attention kernels on CPU, which slows training down",
        ),
    ],
)  # fmt: skip
def test_doubtful_settings_are_warned_of(read, text: str, doubt: str) -> None:
    assert read(text).warnings == (f"x.yaml:2: {doubt}",)


@pytest.mark.parametrize(
    "text",
    [
        "train: {max_updates: 100, schedule: {warmup: 100}, validation: {every: 100}, save_every: 100}",
        "train: {batch_tokens: 257}",
        "train: {optimizer: {lr: 0.1}}",
        "train: {device: cuda}\nmodel: {attention_dropout: 0.1}",
    ],
)
def test_what_just_fits_is_not_doubted(read, text: str) -> None:
    assert read(text).warnings == ()


def test_scores_on_training_text_are_doubted(read) -> None:
    text = "data:\n  train: [{src: t.en, tgt: t.de}]\n  dev: {src: ./t.en, tgt: d.de}\n  test: {a: {src: a.en, tgt: t.de}}\n"
    assert read(text, data=False).warnings == (
        "x.yaml:3: data.dev: t.en is trained on as well, so its scores say nothing about new text",
        "x.yaml:4: data.test.a: t.de is trained on as well, so its scores say nothing about new text",
    )


def test_scores_on_the_text_that_chooses_the_checkpoint_are_doubted(read) -> None:
    text = "data:\n  train: [{src: t.en, tgt: t.de}]\n  dev: {src: d.en, tgt: d.de}\n  test: {a: {tsv: a}, b: {src: ./d.en, tgt: b.de}}\n"
    (warning,) = read(text, data=False).warnings
    assert warning == "x.yaml:4: data.test.b: d.en is the dev set as well, by which the best checkpoint is chosen, so its scores flatter"


def test_swapped_sides_are_doubted(read) -> None:
    text = "data:\n  train: [{src: t.en, tgt: t.de}]\n  dev: {src: d.de, tgt: d.en}\n"
    (warning,) = read(text, data=False).warnings
    assert warning == "x.yaml:3: data.dev: goes from de to en, but the config from en to de; swap src and tgt?"
    (warning,) = read("langs: {src: de, tgt: en}", "data.dev=none").warnings
    assert warning.startswith("x.yaml:1: data.train.0: goes from en to de, but the config from de to en")


def test_one_file_as_both_sides_is_doubted(read) -> None:
    (warning,) = read("data: {train: [{src: t.en, tgt: t.en}], dev: none}", data=False).warnings
    assert warning.startswith("x.yaml:1: data.train.0: src and tgt are the same file")


def test_an_override_is_doubted_by_its_name(read) -> None:
    (warning,) = read("", "train.max_updates=3").warnings
    assert warning.startswith("--set train.max_updates: 3 updates")
