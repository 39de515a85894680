"""Presets: every size of corpus has one, larger ones never less, and the page about them is true."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.config.presets import DROPOUTS, ON_CPU, ON_GPU, VOCABULARIES, dropout_for, ema_for, preset_for, vocabulary_for, warmup_for

PAGE = Path(__file__).parents[2] / "docs" / "init.md"


@given(pairs=st.integers(1, 10**10), more=st.integers(0, 10**10), alphabet=st.integers(1, 20_000))
def test_more_pairs_never_get_a_smaller_model(pairs: int, more: int, alphabet: int) -> None:
    for gpu in (False, True):
        small, large = preset_for(pairs, gpu=gpu), preset_for(pairs + more, gpu=gpu)
        assert small.dim <= large.dim
        assert small.dim % small.heads == 0
    assert 2 * alphabet - 1000 < vocabulary_for(pairs, alphabet=alphabet) <= vocabulary_for(pairs + more, alphabet=alphabet)


@given(updates=st.integers(1, 10**7))
def test_the_average_and_the_warm_up_fit_into_the_run(updates: int) -> None:
    assert 1 <= warmup_for(updates) <= max(1, updates // 8)
    assert 1 / (1 - ema_for(updates)) <= max(updates, 20)


@given(passes=st.floats(0.01, 1000), more=st.floats(0, 1000))
def test_more_passes_never_get_less_dropout(passes: float, more: float) -> None:
    assert dropout_for(passes) <= dropout_for(passes + more)


@pytest.mark.parametrize("presets", [ON_CPU, ON_GPU])
def test_the_page_tells_what_is_chosen(presets: tuple) -> None:
    text = PAGE.read_text(encoding="utf-8")
    for preset in presets:
        row = next(line for line in text.splitlines() if line.startswith(f"| {preset.name} |"))
        tokens = f"{preset.tokens:,}" if preset.tokens >= 10_000 else str(preset.tokens)
        assert f"{preset.dim} wide, {preset.layers}+{preset.layers} layers" in row
        assert all(value in row for value in (tokens, str(preset.passes), f"{preset.lr:.0e}".replace("e-0", "e-")))
    for _, size in VOCABULARIES:
        assert (f"{size:,}" if size >= 10_000 else str(size)) in text
    for _, dropout in DROPOUTS:
        assert f"{dropout:g}" in text
