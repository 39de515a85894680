"""Loading: defaults, paths, places, overrides, YAML's traps, and the way back (`dump`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mt.config.load import dump, load
from mt.config.names import settings as all_settings
from mt.config.schema import Config, Cosine, InverseSqrt, Langs, TextFiles
from mt.errors import ConfigError

same_folder = settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])


def test_data_alone_is_a_config(read) -> None:
    config, warnings = read("")
    assert config.model == Config(data=config.data).model
    assert config.train.schedule == InverseSqrt()
    assert warnings == ()


def test_settings_of_the_file_are_taken(read) -> None:
    config = read("model: {dim: 64}\ntrain:\n  max_epochs: 3\n  schedule: {kind: cosine, floor: 0.1}\n").config
    assert config.model.dim == 64
    assert config.train.schedule == Cosine(kind="cosine", floor=0.1)


def test_a_schedule_without_kind_is_inverse_sqrt(read) -> None:
    assert read("train: {schedule: {warmup: 7}}").config.train.schedule == InverseSqrt(warmup=7)


# ── paths ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_paths_in_the_file_start_from_its_folder(folder: Path) -> None:
    (folder / "sub").mkdir()
    file = folder / "sub/my.config.yaml"
    file.write_text("data: {train: [{src: t.en, tgt: ../t.de}, {jsonl: /abs/x.jsonl}], dev: none}", encoding="utf-8")
    config = load(Path("sub/my.config.yaml")).config
    assert config.data.train[0] == TextFiles(src=folder / "sub/t.en", tgt=folder / "t.de")
    assert config.data.train[1].jsonl == Path("/abs/x.jsonl")
    assert config.data.dev == "none"
    assert config.run_dir == folder / "runs/my.config"


def test_run_dir_and_overrides_start_from_the_current_folder(folder: Path) -> None:
    (folder / "sub").mkdir()
    file = folder / "sub/x.yaml"
    file.write_text("data: {train: [{src: t.en, tgt: t.de}], dev: none}\nrun_dir: here\n", encoding="utf-8")
    config = load(file, ["data.train.0.src=other.en", "data.test={a: {tsv: a.tsv}}"]).config
    assert config.data.train[0] == TextFiles(src=folder / "other.en", tgt=folder / "sub/t.de")
    assert config.data.test["a"].tsv == folder / "a.tsv"
    assert config.run_dir == folder / "here"


def test_home_is_expanded(read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/somewhere")
    assert read("run_dir: ~/runs/a").config.run_dir == Path("/somewhere/runs/a")


def test_a_link_keeps_its_name(folder: Path, read) -> None:
    (folder / "blob").write_text("", encoding="utf-8")
    (folder / "t.en").symlink_to(folder / "blob")
    assert read("").config.data.train[0].src == folder / "t.en"


def test_a_hub_name_stays_a_name_and_a_folder_becomes_a_path(folder: Path, read) -> None:
    (folder / "saved").mkdir()
    text = "data: {train: [{hub: owner/name}, {hub: saved}, {hub: ./later, files: [a.json]}], dev: none}"
    train = read(text, data=False).config.data.train
    assert [corpus.hub for corpus in train] == ["owner/name", str(folder / "saved"), str(folder / "later")]
    assert train[2].files == [folder / "a.json"]


# ── languages ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("src", "tgt", "langs"),
    [
        ("a.en", "a.de", Langs(src="en", tgt="de")),
        ("a.en.gz", "b.de.xz", Langs(src="en", tgt="de")),
        ("a.tok.en", "a.zh-CN", Langs(src="en", tgt="zh-CN")),
        ("a.pt_BR", "a.eng_Latn", Langs(src="pt_BR", tgt="eng_Latn")),
        ("a.no", "a.haw", Langs(src="no", tgt="haw")),
        ("a.en", "a.txt", None),
        ("a.src", "a.tgt", None),
        ("en", "de", None),
        ("a.gz", "b.gz", None),
    ],
)
def test_languages_come_from_suffixes(read, src: str, tgt: str, langs: Langs | None) -> None:
    assert read(f"data: {{train: [{{src: {src}, tgt: {tgt}}}], dev: none}}", data=False).config.langs == langs


def test_languages_come_from_fields(read) -> None:
    text = "data: {train: [{hub: x, fields: {src: translation.en, tgt: translation.ja}}], dev: none}"
    assert read(text, data=False).config.langs == Langs(src="en", tgt="ja")


def test_given_languages_win(read) -> None:
    assert read("langs: {src: nl, tgt: fy}").config.langs == Langs(src="nl", tgt="fy")


# ── YAML ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_norwegian_is_a_language(read) -> None:
    assert read("langs: {src: no, tgt: en}").config.langs == Langs(src="no", tgt="en")


@pytest.mark.parametrize(("text", "number"), [("1e-4", 1e-4), ("1E-4", 1e-4), (".5", 0.5), ("+2", 2), ("3.", 3), ("1.5e+1", 15)])
def test_numbers(read, text: str, number: float) -> None:
    assert read(f"train: {{optimizer: {{lr: {text}}}}}").config.train.optimizer.lr == number


@pytest.mark.parametrize("text", ["2000", "2e3", "2.0e3", "2_000", "0x7D0", "0o3720"])
def test_whole_numbers(read, text: str) -> None:
    assert read(f"train: {{seed: {text}}}").config.train.seed == 2000


@pytest.mark.parametrize("text", ["yes", "Off", "n"])
def test_old_booleans_get_an_explanation(problems, text: str) -> None:
    for key in ("joint", "byte_fallback"):
        (problem,) = problems(f"tokenizer: {{{key}: {text}}}")
        assert f"x.yaml:2: tokenizer.{key}: should be" in problem
        assert problem.endswith(f"not '{text}' (which is plain text here); write {'true' if text == 'yes' else 'false'}")


@pytest.mark.parametrize("text", ["1", "0"])
def test_a_number_is_no_boolean_and_a_boolean_no_number(problems, text: str) -> None:
    assert problems(f"tokenizer: {{joint: {text}}}") == [f"x.yaml:2: tokenizer.joint: should be true or false, not {text}"]
    assert problems("train: {seed: true}") == ["x.yaml:2: train.seed: should be a whole number, not true"]


def test_aliases_and_merges_work(read) -> None:
    text = "data:\n  train: [&t {src: t.en, tgt: t.de, name: all}]\n  dev: {<<: *t, src: d.en, tgt: d.de}\n  test: {same: *t}\n"
    data = read(text, data=False).config.data
    assert data.test["same"] == data.train[0]
    assert (data.dev.name, data.dev.src.name) == ("all", "d.en")


def test_a_key_that_looks_like_a_number_is_a_name(read) -> None:
    config = read("data: {train: [{tsv: a}], dev: none, test: {2016: {tsv: b}, true: {tsv: c}}}", data=False).config
    assert list(config.data.test) == ["2016", "true"]


@pytest.mark.parametrize(
    ("text", "beginning"),
    [
        ("", "x.yaml:1: the file is empty"),
        ("# nothing\n", "x.yaml:1: the file is empty"),
        ("- a\n", "x.yaml:1: should be a group of settings (name: value), not a list"),
        ("hello\n", "x.yaml:1: should be a group of settings (name: value), not 'hello'"),
        ("data:\n\ttrain: 1\n", "x.yaml:2: a tab; YAML is indented with spaces only"),
        ("data: [\n", "x.yaml:2: not valid YAML"),
        ("run_dir: a: b\n", "x.yaml:1: a second `: `"),
        ("run_dir: *nobody\n", "x.yaml:1: not valid YAML: found undefined alias"),
        ("\n\nrun_dir: \a\n", "x.yaml:3: the character U+0007 is not allowed"),
        ("a: 1\n---\nb: 2\n", "x.yaml:2: not valid YAML"),
        ("a: &a [*a, *a]\n", "x.yaml:1: aliases unfold"),
        ("a: &a {<<: *a}\n", "x.yaml:1: aliases unfold"),
        ("a: " + "[" * 2000, "x.yaml:1: not valid YAML: nested more than"),
    ],
)
def test_what_is_no_config_gets_one_line(problems, text: str, beginning: str) -> None:
    (problem,) = problems(text, data=False)
    assert problem.startswith(beginning)


def test_an_alias_bomb_is_refused(problems) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    (problem,) = problems("\n".join(lines), data=False)
    assert "aliases unfold" in problem


@pytest.mark.parametrize(
    ("text", "tag"), [("!!python/object/apply:os.system [ls]", "!!python/object/apply:os.system"), ("!x y", "!x"), ("!!int z", "!!int")]
)
def test_tags_are_refused(problems, text: str, tag: str) -> None:
    assert any(line.startswith(f"x.yaml:2: run_dir: the tag {tag} is not allowed") for line in problems(f"run_dir: {text}"))


def test_bytes_that_are_not_utf8_are_located(folder: Path) -> None:
    (folder / "x.yaml").write_bytes(b"data:\n  train: caf\xe9\n")
    with pytest.raises(ConfigError, match=r"x\.yaml:2: byte 0xE9 is not UTF-8; save the file as UTF-8"):
        load(Path("x.yaml"))


def test_a_byte_order_mark_is_passed_over(read) -> None:
    assert read("\ufeff" + "data: {train: [{tsv: a}], dev: none}", data=False).config.data.dev == "none"


def test_missing_directory_and_huge_files(folder: Path) -> None:
    with pytest.raises(ConfigError, match="no.yaml: there is no such file"):
        load(Path("no.yaml"))
    with pytest.raises(ConfigError, match="is a directory"):
        load(folder)
    (folder / "x.yaml").write_bytes(b"#" * (2 << 20))
    with pytest.raises(ConfigError, match="is larger than 1048576 bytes"):
        load(Path("x.yaml"))


# ── overrides ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_overrides_are_yaml_and_win(read) -> None:
    config = read(
        "train: {seed: 1, schedule: {warmup: 5}}\n",
        "train.seed=2",
        "train.optimizer.lr=1e-4",
        "train.schedule={kind: constant}",
        "tokenizer.symbols=[<a>, no]",
        "langs.src=no",
        "langs.tgt=de",
        "train.seed=3",
    ).config
    assert config.train.seed == 3
    assert config.train.optimizer.lr == 1e-4
    assert config.train.schedule.model_dump() == {"kind": "constant", "warmup": None}
    assert config.tokenizer.symbols == ["<a>", "no"]
    assert config.langs == Langs(src="no", tgt="de")


def test_an_override_adds_to_a_list_and_to_an_empty_group(read, folder: Path) -> None:
    config = read("train:\n", "data.train.1.tsv=more.tsv", "data.test.new.tsv=t.tsv", "train.seed=4").config
    assert [len(config.data.train), config.data.train[1].tsv] == [2, folder / "more.tsv"]
    assert config.data.test["new"].tsv == folder / "t.tsv"
    assert config.train.seed == 4


def test_overrides_alone_can_make_a_config(read) -> None:
    assert read("", "data={train: [{tsv: a}], dev: none}", data=False).config.data.dev == "none"


@pytest.mark.parametrize(
    ("override", "problem"),
    [
        ("train.seed", "--set train.seed: write a key, =, and a value, such as --set train.seed=2"),
        ("=3", "--set =3: write a key, =, and a value, such as --set train.seed=2"),
        ("train.\udce9=3", "--set train.\\udce9=3: write a key, =, and a value, such as --set train.seed=2"),
        ("langs.src=\udce9", "--set langs.src: byte 0xE9 is not UTF-8; write it as UTF-8, or rename the file it names"),
        (f"data.train.{'9' * 5000}=x", f"--set data.train.{'9' * 5000}: data.train is a list of 1; give an index from 0, or 1 to add one, "
         f"not '{'9' * 39}…'"),
        ("train..seed=3", "--set train..seed=3: write a key, =, and a value, such as --set train.seed=2"),
        ("train.seed=x", "--set train.seed: should be a whole number, not 'x'"),
        ("train.warmup=3", "--set train.warmup: unknown key, did you mean `train.schedule.warmup`?"),
        ("trian={seed: 3}", "--set trian: unknown key, did you mean `train`?"),
        ("train.optimizer={lrr: 3}", "--set train.optimizer.lrr: unknown key, did you mean `train.optimizer.lr`?"),
        ("data.train.5.src=a", "--set data.train.5.src: data.train is a list of 1; give an index from 0, or 1 to add one, not '5'"),
        ("data.train.x=a", "--set data.train.x: data.train is a list of 1; give an index from 0, or 1 to add one, not 'x'"),
        ("data.dev.src.x=a", "--set data.dev.src.x: data.dev.src is 'd.en', which has nothing inside; set data.dev.src as a whole"),
        ("data.test.a.src=a.en", "--set data.test.a.tgt: is missing; add it"),
        ("run_dir=@x", "--set run_dir: not valid YAML: found character '@' that cannot start any token; put the value in quotes"),
        ("train={seed: 1, seed: 2}", "--set train.seed: given twice; keep one of them"),
    ],
)  # fmt: skip
def test_a_wrong_override_is_named(problems, override: str, problem: str) -> None:
    assert problems("", override) == [problem]


def test_wrong_overrides_are_all_named_after_the_file(problems) -> None:
    found = problems("train: {sed: 3}", "model.dim=0", "train.seed=y", "nonsense")
    assert [line.split(": ")[0] for line in found] == ["x.yaml:2", "--set model.dim", "--set train.seed", "--set nonsense"]


# ── there and back ──────────────────────────────────────────────────────────────────────────────────────────────────

names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
file_names = names.filter(lambda name: name.strip("./") and "/" not in name)
weights = st.floats(1e-3, 1e3)
fractions = st.floats(0, 0.99)
counts = st.integers(1, 10**9)
fields = st.fixed_dictionaries({"src": names, "tgt": names})


def group(required: dict[str, Any] | None = None, **optional: Any) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(required or {}, optional=optional)


corpora = st.one_of(
    group({"src": file_names, "tgt": file_names}, weight=weights),
    group({"tsv": file_names}, columns=st.lists(st.integers(0, 50), min_size=2, max_size=2, unique=True)),
    group({"jsonl": file_names}, fields=fields, weight=weights),
    group({"hub": file_names}, subset=names, split=names, files=st.lists(file_names, max_size=2), fields=fields),
)
sides = st.lists(st.sampled_from(["src", "tgt"]), min_size=1, max_size=2)
tokenizers = st.one_of(
    group({"kind": st.just("bpe")}, sample=group({"bpe_dropout": st.floats(0.01, 0.9)}, sides=sides), symbols=st.lists(names)),
    group({"kind": st.just("unigram")}, sample=group({"unigram": group(alpha=weights, nbest=st.integers(-1, 99))}, sides=sides)),
    group(joint=st.booleans(), byte_fallback=st.sampled_from(["auto", True, False]), vocab_size=st.integers(8, 10**6)),
)
schedules = st.one_of(
    group(warmup=counts),
    group({"kind": st.sampled_from(["cosine", "linear"])}, floor=fractions, warmup=counts),
    group({"kind": st.just("noam")}, factor=weights),
)
data_sections = group(
    {
        "train": st.lists(corpora, min_size=1, max_size=3),
        "dev": corpora | st.just("none") | st.dictionaries(st.sampled_from(["a", "2", "b c", "src"]), corpora, min_size=1),
    },
    test=st.dictionaries(file_names.filter(lambda name: "\\" not in name), corpora, max_size=2),
)
train_sections = group(
    {"max_epochs": counts},
    schedule=schedules,
    max_minutes=weights,
    clip_norm=weights,
    ema=fractions,
    seed=st.integers(0, 2**32 - 1),
)
configs = group(
    {"data": data_sections},
    langs=st.fixed_dictionaries({"src": names.filter(bool), "tgt": names.filter(bool)}),
    tokenizer=tokenizers,
    model=group(dim=st.sampled_from([64, 512]), dropout=fractions, norm=st.sampled_from(["pre", "post"])),
    train=train_sections,
    decode=group(beam=st.integers(1, 99), length_penalty=st.floats(0, 10)),
    run_dir=file_names,
)


@same_folder
@given(configs)
def test_dump_is_loaded_back(folder: Path, raw: dict[str, Any]) -> None:
    (folder / "x.yaml").write_text(json.dumps(raw), encoding="utf-8")
    config = load(folder / "x.yaml").config
    (folder / "sub").mkdir(exist_ok=True)
    (folder / "sub/effective.yaml").write_text(dump(config), encoding="utf-8", newline="\n")
    again = load(folder / "sub/effective.yaml").config
    assert again == config
    assert dump(again) == dump(config)


def test_dump_is_for_reading(read) -> None:
    text = dump(read("langs: {src: no, tgt: en}\ntrain: {optimizer: {eps: 1e-9}}\n").config)
    assert "langs: {src: 'no', tgt: en}\n" in text
    assert "null" not in text
    assert yaml.safe_load(text)["train"]["optimizer"]["eps"] == 1e-9  # also to readers with other rules


@same_folder
@given(configs, configs, st.data())
def test_an_override_is_as_good_as_the_file(folder: Path, raw: dict[str, Any], other: dict[str, Any], data: st.DataObject) -> None:
    key = data.draw(st.sampled_from(sorted(set(other) - {"data"}) or ["run_dir"]))
    (folder / "x.yaml").write_text(json.dumps(raw), encoding="utf-8")
    overridden = load(folder / "x.yaml", [f"{key}={json.dumps(other.get(key))}"]).config
    (folder / "x.yaml").write_text(json.dumps(raw | {key: other.get(key)}), encoding="utf-8")
    assert overridden == load(folder / "x.yaml").config


# ── anything at all ─────────────────────────────────────────────────────────────────────────────────────────────────

known = st.sampled_from(sorted({str(trail[-1]) for trail in all_settings()}))
values = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(["none", "cosine", "noam", "auto"])
nested = st.recursive(values, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(known | names, inner, max_size=4), max_leaves=20)
top_level = st.dictionaries(st.sampled_from(sorted(Config.model_fields)) | names, nested, max_size=6)


override_lists = st.lists(st.tuples(st.lists(known | st.sampled_from("019"), min_size=1, max_size=4), nested), max_size=2)


@same_folder
@given(top_level, override_lists)
def test_any_settings_give_a_config_or_lines_that_name_it(folder: Path, raw: dict[str, Any], overrides: list[Any]) -> None:
    (folder / "x.yaml").write_text(json.dumps(raw), encoding="utf-8")
    lines: list[str] = []
    try:
        load(Path("x.yaml"), [f"{'.'.join(key)}={json.dumps(value)}" for key, value in overrides])
    except ConfigError as err:
        lines = str(err).split("\n")
    assert all(line.startswith(("x.yaml:", "--set ")) and line.isprintable() for line in lines)
    assert not any(word in line for line in lines for word in ("pydantic", "https://errors", "Input should"))


@same_folder
@given(st.text(max_size=60) | st.text("a:-[]{}&*<!'\"#|>%@?, \n\t", max_size=30))
def test_any_text_gives_a_config_or_an_error(folder: Path, text: str) -> None:
    (folder / "x.yaml").write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(ConfigError):
        load(Path("x.yaml"))
