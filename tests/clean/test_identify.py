"""Language identification, with the library where it is installed."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator

import pytest

from mt.clean import identify
from mt.clean.filters import TextFilters
from mt.clean.identify import Identifier
from mt.config.cleaning import FilterConfig
from mt.config.schema import Langs
from mt.errors import ConfigError
from mt.extras import install
from mt.formats.pairs import Pair

SENTENCES = {
    "en": "The train to Hamburg leaves at half past nine.",
    "de": "Der Zug nach Hamburg fährt um halb zehn ab.",
    "nl": "De trein naar Hamburg vertrekt om half tien.",
    "ru": "Поезд на Гамбург отправляется в половине десятого.",
    "uk": "Потяг до Гамбурга вирушає о пів на десяту.",
    "zh": "开往汉堡的火车九点半发车。",
    "ja": "ハンブルク行きの列車は九時半に出発します。",
    "ar": "يغادر القطار المتجه إلى هامبورغ في الساعة التاسعة والنصف.",
    "fa": "قطار هامبورگ ساعت نه و نیم حرکت می‌کند.",
    "hi": "हैम्बर्ग के लिए ट्रेन साढ़े नौ बजे निकलती है।",
    "sr": "Воз за Хамбург полази у пола десет увече.",
}
# Japanese may be all in Han, Serbian in Latin letters.
NOT_TOLD = [("ja", "zh"), ("sr", "en"), ("sr", "de"), ("sr", "nl")]


class TestWithTheLibrary:
    @pytest.fixture(autouse=True)
    def _installed(self) -> None:
        pytest.importorskip("py3langid")

    @pytest.mark.parametrize("language", SENTENCES)
    def test_a_sentence_is_in_its_language_and_in_no_other(self, language: str) -> None:
        identifier = Identifier(language, *SENTENCES)
        assert identifier.elsewhere(SENTENCES[language], language) < 0.5
        for other, text in SENTENCES.items():
            if other != language and (language, other) not in NOT_TOLD:
                assert identifier.elsewhere(text, language) > 0.6

    @pytest.mark.parametrize(
        ("language", "text"),
        [
            ("de", "Good morning."),  # short
            ("de", "123 456 !!! https"),
            ("hr", "Ovo je rečenica na bosanskom ili srpskom jeziku."),  # relatives
            ("sr-Latn", "Ovo je rečenica na srpskom jeziku, pisana latinicom."),
            ("no", "Jeg forstår ikke hva du sier til meg i dag."),
            ("zh-TW", "開往漢堡的火車九點半發車。"),
            ("eng_Latn", SENTENCES["en"]),
            ("deu", SENTENCES["de"]),
            ("sr", "Ovo je rečenica na srpskom jeziku, pisana latinicom."),  # not its usual script
            ("tlh", SENTENCES["en"]),  # unknown
        ],
    )
    def test_what_is_not_claimed(self, language: str, text: str) -> None:
        assert Identifier(language, "fr").elsewhere(text, language) < 0.5

    def test_the_filter(self) -> None:
        filters = pickle.loads(pickle.dumps(TextFilters(FilterConfig(languages=0.9), Langs(src="en", tgt="de"))))
        english, german, dutch = (SENTENCES[language] for language in ("en", "de", "nl"))
        assert filters(Pair(english, german, "x:1")) is None
        assert filters(Pair(english, dutch, "x:1")) == "target in another language than de (over 90%)"
        assert filters(Pair(german, german, "x:1")) == "source in another language than en (over 90%)"


@pytest.fixture
def _not_installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    identify._library.cache_clear()
    monkeypatch.setitem(sys.modules, "py3langid.langid", None)
    yield
    identify._library.cache_clear()


@pytest.mark.usefixtures("_not_installed")
def test_without_the_library_one_line_with_the_cure() -> None:
    with pytest.raises(ConfigError) as caught:
        TextFilters(FilterConfig(languages=0.9), Langs(src="en", tgt="de"))
    assert str(caught.value).startswith(f"data.filters.languages needs an extra: {install('languages')}")
    TextFilters(FilterConfig(), Langs(src="en", tgt="de"))
