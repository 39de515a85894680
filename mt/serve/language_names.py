"""English names of languages, for people who choose one: those of the Unicode CLDR."""

from __future__ import annotations

import re

from mt.clean.identify import short_code

_NAMES = """
aa:Afar · ab:Abkhazian · ae:Avestan · af:Afrikaans · ak:Akan · am:Amharic · an:Aragonese · ar:Arabic · as:Assamese · av:Avaric · ay:Aymara
az:Azerbaijani · ba:Bashkir · be:Belarusian · bg:Bulgarian · bi:Bislama · bm:Bambara · bn:Bangla · bo:Tibetan · br:Breton · bs:Bosnian
ca:Catalan · ce:Chechen · ch:Chamorro · co:Corsican · cr:Cree · cs:Czech · cu:Church Slavic · cv:Chuvash · cy:Welsh · da:Danish
de:German · dv:Divehi · dz:Dzongkha · ee:Ewe · el:Greek · en:English · eo:Esperanto · es:Spanish · et:Estonian · eu:Basque · fa:Persian
ff:Fula · fi:Finnish · fj:Fijian · fo:Faroese · fr:French · fy:Western Frisian · ga:Irish · gd:Scottish Gaelic · gl:Galician · gn:Guarani
gu:Gujarati · gv:Manx · ha:Hausa · he:Hebrew · hi:Hindi · ho:Hiri Motu · hr:Croatian · ht:Haitian Creole · hu:Hungarian · hy:Armenian
hz:Herero · ia:Interlingua · id:Indonesian · ie:Interlingue · ig:Igbo · ii:Sichuan Yi · ik:Inupiaq · io:Ido · is:Icelandic · it:Italian
iu:Inuktitut · ja:Japanese · jv:Javanese · ka:Georgian · kg:Kongo · ki:Kikuyu · kj:Kuanyama · kk:Kazakh · kl:Kalaallisut · km:Khmer
kn:Kannada · ko:Korean · kr:Kanuri · ks:Kashmiri · ku:Kurdish · kv:Komi · kw:Cornish · ky:Kyrgyz · la:Latin · lb:Luxembourgish · lg:Ganda
li:Limburgish · ln:Lingala · lo:Lao · lt:Lithuanian · lu:Luba-Katanga · lv:Latvian · mg:Malagasy · mh:Marshallese · mi:Māori
mk:Macedonian · ml:Malayalam · mn:Mongolian · mr:Marathi · ms:Malay · mt:Maltese · my:Burmese · na:Nauru · nb:Norwegian Bokmål
nd:North Ndebele · ne:Nepali · ng:Ndonga · nl:Dutch · nn:Norwegian Nynorsk · no:Norwegian · nr:South Ndebele · nv:Navajo · ny:Nyanja
oc:Occitan · oj:Ojibwa · om:Oromo · or:Odia · os:Ossetic · pa:Punjabi · pi:Pali · pl:Polish · ps:Pashto · pt:Portuguese · qu:Quechua
rm:Romansh · rn:Rundi · ro:Romanian · ru:Russian · rw:Kinyarwanda · sa:Sanskrit · sc:Sardinian · sd:Sindhi · se:Northern Sami · sg:Sango
si:Sinhala · sk:Slovak · sl:Slovenian · sm:Samoan · sn:Shona · so:Somali · sq:Albanian · sr:Serbian · ss:Swati · st:Southern Sotho
su:Sundanese · sv:Swedish · sw:Swahili · ta:Tamil · te:Telugu · tg:Tajik · th:Thai · ti:Tigrinya · tk:Turkmen · tl:Tagalog · tn:Tswana
to:Tongan · tr:Turkish · ts:Tsonga · tt:Tatar · tw:Twi · ty:Tahitian · ug:Uyghur · uk:Ukrainian · ur:Urdu · uz:Uzbek · ve:Venda
vi:Vietnamese · vo:Volapük · wa:Walloon · wo:Wolof · xh:Xhosa · yi:Yiddish · yo:Yoruba · za:Zhuang · zh:Chinese · zu:Zulu · ace:Acehnese
aeb:Tunisian Arabic · arn:Mapuche · ars:Najdi Arabic · ary:Moroccan Arabic · arz:Egyptian Arabic · ast:Asturian · awa:Awadhi
ban:Balinese · bem:Bemba · bho:Bhojpuri · bjn:Banjar · bug:Buginese · ceb:Cebuano · chm:Mari · chr:Cherokee · ckb:Central Kurdish
cop:Coptic · crh:Crimean Tatar · csb:Kashubian · dsb:Lower Sorbian · dyu:Dyula · fil:Filipino · fon:Fon · frp:Arpitan · fur:Friulian
grc:Ancient Greek · gsw:Swiss German · haw:Hawaiian · hil:Hiligaynon · hmn:Hmong · hsb:Upper Sorbian · ilo:Iloko · kab:Kabyle · kac:Kachin
kam:Kamba · kea:Kabuverdianu · kmb:Kimbundu · lad:Ladino · lfn:Lingua Franca Nova · lij:Ligurian · lmo:Lombard · ltg:Latgalian
lua:Luba-Lulua · luo:Luo · lus:Mizo · mag:Magahi · mai:Maithili · min:Minangkabau · mni:Manipuri · mos:Mossi · mrj:Western Mari
nap:Neapolitan · nds:Low German · nso:Northern Sotho · nus:Nuer · pag:Pangasinan · pap:Papiamento · pcm:Nigerian Pidgin · pms:Piedmontese
quc:Kʼicheʼ · rom:Romany · sat:Santali · scn:Sicilian · sco:Scots · shn:Shan · sma:Southern Sami · smj:Lule Sami · szl:Silesian
tet:Tetum · tpi:Tok Pisin · tum:Tumbuka · tzm:Central Atlas Tamazight · udm:Udmurt · umb:Umbundu · vec:Venetian · war:Waray
yue:Cantonese · zgh:Standard Moroccan Tamazight
"""
NAMES = dict(entry.strip().split(":", 1) for entry in re.split(r"[·\n]", _NAMES) if entry.strip())


def named(code: str) -> str:
    """The name of a language, with the country or script if the code has one; a code that nobody knows is its own name."""
    language, *rest = re.split("[-_]", code)
    name = NAMES.get(language.lower()) or NAMES.get(short_code(language))
    if name is None:
        return code
    return f"{name} ({'-'.join(rest)})" if rest else name
