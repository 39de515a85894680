"""Every config in configs/ loads without a doubt, is short, and says how it is run; the names and defaults of the manual hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from mt.config.directions import tag_of, tags
from mt.config.load import load
from mt.config.schema import Noam

FILES = sorted((Path(__file__).parents[2] / "configs").glob("*.yaml"))


def test_the_set_is_complete() -> None:
    assert {path.stem for path in FILES} >= {"quickstart", "multi30k_en_de", "small", "base", "big"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_it_loads_without_a_doubt(path: Path, folder: Path) -> None:
    config, warnings = load(path)
    assert warnings == ()
    assert (config.langs.src, config.langs.tgt) == ("en", "de")
    assert config.data.test
    assert config.run_dir == folder / "runs" / path.stem


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_it_is_short_and_begins_with_its_command(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").split("\n")
    assert lines[0] == f"# mt train --config configs/{path.name}"
    assert len(lines) <= 41
    assert max(map(len, lines)) <= 140


def test_base_and_big_are_those_of_the_paper() -> None:
    """Vaswani et al. 2017, table 3 and sections 5.3, 5.4, 6.1."""
    base, big = (load(path).config for path in FILES if path.stem in ("base", "big"))
    assert [(c.model.dim, c.model.ffn, c.model.heads, c.model.encoder_layers, c.model.decoder_layers) for c in (base, big)] == [
        (512, 2048, 8, 6, 6),
        (1024, 4096, 16, 6, 6),
    ]
    assert [(c.model.dropout, c.train.max_updates, c.train.average.last) for c in (base, big)] == [(0.1, 100000, 5), (0.3, 300000, 20)]
    for config in (base, big):
        assert config.train.schedule == Noam(kind="noam", warmup=4000)
        assert (config.train.optimizer.betas, config.train.optimizer.eps) == ((0.9, 0.98), 1e-9)
        assert (config.model.norm, config.train.label_smoothing) == ("post", 0.1)
        assert (config.decode.beam, config.decode.length_penalty) == (4, 0.6)


def test_the_config_of_the_page_on_several_languages_loads(folder: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "multilingual.md").read_text(encoding="utf-8")
    path = folder / "many.yaml"
    path.write_text(page.partition("```yaml\n")[2].partition("```")[0], encoding="utf-8", newline="\n")
    config, warnings = load(path)
    assert warnings == ()
    assert tags(config) == ("de", "fr", "en")
    assert [tag_of(config, corpus) for corpus in (*config.data.dev_sets().values(), *config.data.test.values())] == [
        "de",
        "fr",
        "de",
        "fr",
        "en",
    ]
