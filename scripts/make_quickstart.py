"""Generate the quickstart corpus: English-German sentence pairs made from tables of words and of sentence patterns.

    python scripts/make_quickstart.py [--out DIR] [--check]

The output depends on this file and on data/quickstart/patterns.txt (which explains its notation), and on nothing else: of
`random.Random` only `random()` is used, whose sequence Python promises to keep.

Every pattern names a pair of its slots. A hash of the pattern and of the two words that fill the pair decides between train,
dev and test: two words that meet in this pattern in one of the sets never meet in it in another.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

SEED = 2026
DRAWS = 400  # random fillings tried per pattern
KEPT = {"train": 66, "dev": 12, "test": 12}  # of these, at most, per pattern; dev and test are then cut to SET_SIZE
SET_SIZE = 200
HELD_OUT = 7  # per cent of the pairs, for dev and for test each
MIN_SEEN = 4  # occurrences in train that every word of dev and test has at least
HOME = Path(__file__).resolve().parent.parent / "data" / "quickstart"
PATTERN_FILE = HOME / "patterns.txt"

# ---------------------------------------------------------------------------------------------------------- grammar

GENDERS = "mfnp"  # masculine, feminine, neuter, plural: the order of the columns
DER = {"nom": "der die das die", "akk": "den die das die", "dat": "dem der dem den"}
DIESER = {"nom": "dieser diese dieses diese"}
EIN = {"nom": "- e - e", "akk": "en e - e", "dat": "em er em en"}  # endings of ein, kein, mein ...
ADJECTIVE_AFTER_DER = {"nom": "e e e en", "akk": "en e e en", "dat": "en en en en"}
ADJECTIVE_AFTER_EIN = {"nom": "er e es en", "akk": "en e es en", "dat": "en en en en"}
MERGED = {"zu dem": "zum", "zu der": "zur", "in dem": "im", "in das": "ins", "an dem": "am", "von dem": "vom"}
HABEN, SEIN = ("habe", "hat", "haben"), ("bin", "ist", "sind")


@dataclass(frozen=True)
class Word:
    """A word or phrase; adjectives are words whose German form takes endings."""

    en: str
    de: str


@dataclass(frozen=True)
class Noun(Word):
    """A noun; weak masculines (den Nachbarn) end in accusative and dative as in the plural; `to` and `at` are for places."""

    gender: str
    en_plural: str = ""
    de_plural: str = ""
    weak: bool = False
    to: str = "zu"
    at: str = "in"

    def form(self, case: str) -> str:
        """The noun without article; the dative plural has -n."""
        if self.gender == "p":
            return self.de + ("n" if case == "dat" and not self.de.endswith("n") else "")
        return self.de_plural if self.weak and case != "nom" else self.de


@dataclass(frozen=True)
class Subject(Word):
    """Who does it: `number` picks the verb form (0 ich, 1 er, 2 wir); pronouns also have possessives and a reflexive."""

    number: int
    en_own: str = ""
    de_own: str = ""
    reflexive: str = ""


@dataclass(frozen=True)
class Pronoun(Word):
    """A pronoun as object; `de` is the accusative."""

    dat: str


@dataclass(frozen=True)
class Verb:
    """A verb with what belongs to it: `tail` in English; in German `mid` (object, place) and the separable `prefix`."""

    en_forms: str  # base, third person, past
    de_forms: str  # ich, er, wir; the last is the infinitive too
    participle: str = ""
    tail: str = ""
    mid: str = ""
    prefix: str = ""
    perfect: tuple[str, str, str] = HABEN
    case: str = "akk"

    def english(self, form: int) -> str:
        """One of the English forms with the tail."""
        return f"{self.en_forms.split()[form]} {self.tail}".strip()

    def finite(self, who: Subject) -> str:
        """The German present without prefix."""
        return self.de_forms.split()[who.number]

    @property
    def en(self) -> str:
        """The name of the verb."""
        return self.english(0)

    @property
    def de(self) -> str:
        """The German infinitive phrase."""
        return f"{self.mid} {self.prefix}{self.de_forms.split()[2]}"

    @property
    def zu(self) -> str:
        """The infinitive phrase with zu, which stands between a separable prefix and the verb."""
        return f"{self.mid} {self.prefix}{'zu' if self.prefix else 'zu '}{self.de_forms.split()[2]}"


Filler = Word | Verb


def cell(table: Mapping[str, str], case: str, gender: str) -> str:
    """The entry for a case and gender; "-" stands for no ending."""
    return table[case].split()[GENDERS.index(gender)].replace("-", "")


def phrase(article: str, case: str, *words: Word) -> str:
    """Article, adjectives and noun, all agreeing; `article` is der, dieser or the stem of a word that goes like ein."""
    *adjectives, noun = words
    assert isinstance(noun, Noun)
    definite = {"der": DER, "dieser": DIESER}.get(article)
    first = cell(definite, case, noun.gender) if definite else article + cell(EIN, case, noun.gender)
    ending = cell(ADJECTIVE_AFTER_DER if definite else ADJECTIVE_AFTER_EIN, case, noun.gender)
    return " ".join([first, *(stem(word) + ending for word in adjectives), noun.form(case)])


def stem(adjective: Word) -> str:
    """What takes the endings: teuer becomes teur-."""
    return adjective.de.replace("teuer", "teur")


def after(preposition: str, case: str, *words: Word) -> str:
    """Preposition and definite noun phrase, contracted where German does it (zum, ins, am)."""
    article, rest = phrase("der", case, *words).split(" ", 1)
    head = f"{preposition} {article}"
    return f"{MERGED.get(head, head)} {rest}"


def object_of(verb: Verb, whom: Noun | Pronoun) -> str:
    """Noun or pronoun in the case that the verb governs."""
    if isinstance(whom, Noun):
        return phrase("der", verb.case, whom)
    return whom.dat if verb.case == "dat" else whom.de


def present(verb: Verb, who: Subject) -> str:
    """The English present, agreeing with the subject."""
    return ("am", "is", "are")[who.number] if verb.en == "be" else verb.english(who.number % 2)


def with_a(*words: Word) -> str:
    """The English indefinite article and what follows."""
    text = " ".join(word.en for word in words)
    return f"{'an' if text[0] in 'aeiou' else 'a'} {text}"


Forms = Mapping[str, Callable[..., str]]
ENGLISH: Forms = {
    "a": with_a,
    "own": lambda who: who.en_own,
    "plural": lambda noun: noun.en_plural,
    "do": lambda who: "does" if who.number == 1 else "do",
    "base": lambda verb: verb.english(0),
    "present": present,
    "past": lambda verb: verb.english(2),
}
GERMAN: Forms = {
    # noun phrases
    "der": lambda *words: phrase("der", "nom", *words),
    "den": lambda *words: phrase("der", "akk", *words),
    "dem": lambda *words: phrase("der", "dat", *words),
    "dieser": lambda *words: phrase("dieser", "nom", *words),
    "ein": lambda *words: phrase("ein", "nom", *words),
    "einen": lambda *words: phrase("ein", "akk", *words),
    "keinen": lambda *words: phrase("kein", "akk", *words),
    "Ihr": lambda *words: phrase("Ihr", "nom", *words),
    "sein": lambda who, *words: phrase(who.de_own, "nom", *words),
    "seinem": lambda who, *words: phrase(who.de_own, "dat", *words),
    "own": lambda verb, who, *words: phrase(who.de_own, verb.case, *words),
    "object": object_of,
    "plural": lambda noun: noun.de_plural,
    "many": lambda adjective, noun: f"{stem(adjective)}e {noun.de_plural}",
    "which": lambda noun: cell(DER, "akk", noun.gender),
    "sich": lambda who: who.reflexive,
    # places
    "to": lambda place: after(place.to, "dat" if place.to == "zu" else "akk", place),
    "at": lambda place: after(place.at, "dat", place),
    "zum": lambda *words: after("zu", "dat", *words),
    "vom": lambda *words: after("von", "dat", *words),
    "am": lambda *words: after("an", "dat", *words),
    # verbs: finite form and the rest of the predicate, infinitives, perfect, and the verb-last form of subordinate clauses
    "fin": lambda verb, who: verb.finite(who),
    "rest": lambda verb: f"{verb.mid} {verb.prefix}",
    "Sie": lambda verb: f"{verb.de_forms.split()[2]} Sie",
    "inf": lambda verb: verb.de,
    "zu": lambda verb: verb.zu,
    "aux": lambda verb, who: verb.perfect[who.number],
    "part": lambda verb: f"{verb.mid} {verb.participle}",
    "last": lambda verb, who: f"{verb.mid} {verb.prefix}{verb.finite(who)}",
}

# ---------------------------------------------------------------------------------------------------------- numbers

ONES = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
EINER = "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn"
TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
ZEHNER = "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig"
ORDINALS = {1: "first", 2: "second", 3: "third", 5: "fifth", 8: "eighth", 9: "ninth", 12: "twelfth", 20: "twentieth"}
ORDNUNGSZAHLEN = {1: "erste", 3: "dritte", 7: "siebte", 8: "achte"}


def number(n: int) -> Word:
    """A number below one hundred in words: German says the ones before the tens (einundzwanzig)."""
    if n < 20:
        return Word(ONES.split()[n], EINER.split()[n])
    tens, zehner = TENS.split()[n // 10 - 2], ZEHNER.split()[n // 10 - 2]
    if n % 10 == 0:
        return Word(tens, zehner)
    one = number(n % 10)
    return Word(f"{tens}-{one.en}", f"{one.de.removesuffix('s') if n % 10 == 1 else one.de}und{zehner}")


def ordinal(n: int) -> Word:
    """An ordinal up to twenty-nine; the German one as after der."""
    en = f"twenty-{ordinal(n - 20).en}" if n > 20 else ORDINALS.get(n, f"{number(n).en}th")
    return Word(en, ORDNUNGSZAHLEN.get(n, number(n).de + ("te" if n < 20 else "ste")))


def times(hours: range, *offsets: str) -> list[Word]:
    """Times as people say them. German counts half hours towards the hour to come: half past three is halb vier."""
    found = []
    for hour in hours:
        this, to_come = number(hour), number(hour % 12 + 1)
        spoken = {
            "full": Word(f"{this.en} o'clock", f"{'ein' if hour == 1 else this.de} Uhr"),
            "half": Word(f"half past {this.en}", f"halb {to_come.de}"),
            "quarter past": Word(f"quarter past {this.en}", f"Viertel nach {this.de}"),
            "quarter to": Word(f"quarter to {to_come.en}", f"Viertel vor {to_come.de}"),
            "ten past": Word(f"ten past {this.en}", f"zehn nach {this.de}"),
            "twenty past": Word(f"twenty past {this.en}", f"zwanzig nach {this.de}"),
            "five to": Word(f"five to {to_come.en}", f"fünf vor {to_come.de}"),
        }
        found += [spoken[offset] for offset in offsets or spoken]
    return found


def digits(*values: int | float, unit: tuple[str, str] = ("", "")) -> list[Word]:
    """Numbers in digits, with the decimal comma in German."""
    return [Word(f"{value}{unit[0]}", f"{value}".replace(".", ",") + unit[1]) for value in values]


# ---------------------------------------------------------------------------------------------------------- lexicon


def rows(table: str) -> list[list[str]]:
    """The lines of a table split at "|", without comments; an indented line continues the one before it."""
    lines = re.sub(r"\n +", " ", table).strip().splitlines()
    return [[field.strip() for field in line.split("|")] for line in lines if line and not line.startswith("#")]


def words(table: str) -> dict[str, list[Word]]:
    """Slots from lines "slot | english = deutsch; ..."; German that is the same is left out."""
    entries = {slot: [entry.strip().partition(" = ") for entry in line.split(";")] for slot, line in rows(table)}
    return {slot: [Word(en, de or en) for en, _, de in found] for slot, found in entries.items()}


def noun(entry: Word) -> Noun:
    """A noun from "english[/plural] = Deutsch[/Plural] gender[*: weak] [prepositions of going to it and of being at it]"."""
    (en, _, en_plural), (german, gender, *prepositions) = entry.en.partition("/"), entry.de.split()
    de, _, de_plural = german.partition("/")
    return Noun(en, de, gender[0], en_plural, de_plural, gender.endswith("*"), *prepositions)


PRONOUNS = [
    Subject("I", "ich", 0, "my", "mein", "mich"),
    Subject("he", "er", 1, "his", "sein", "sich"),
    Subject("she", "sie", 1, "her", "ihr", "sich"),
    Subject("we", "wir", 2, "our", "unser", "uns"),
    Subject("they", "sie", 2, "their", "ihr", "sich"),
]
OBJECTS = [("me", "mich", "mir"), ("him", "ihn", "ihm"), ("her", "sie", "ihr"), ("us", "uns", "uns"), ("you", "Sie", "Ihnen")]
ACTIVITIES = [
    Verb("get gets got", "stehe steht stehen", "aufgestanden", "up early", "früh", "auf", SEIN),
    Verb("go goes went", "kaufe kauft kaufen", "eingekauft", "shopping", prefix="ein"),
    Verb("tidy tidies tidied", "räume räumt räumen", "aufgeräumt", "the kitchen", "die Küche", "auf"),
    Verb("open opens opened", "mache macht machen", "aufgemacht", "the window", "das Fenster", "auf"),
    Verb("close closes closed", "mache macht machen", "zugemacht", "the door", "die Tür", "zu"),
    Verb("switch switches switched", "schalte schaltet schalten", "eingeschaltet", "on the heating", "die Heizung", "ein"),
    Verb("watch watches watched", "sehe sieht sehen", "ferngesehen", "television", prefix="fern"),
    Verb("cook cooks cooked", "koche kocht kochen", "gekocht", "dinner", "das Abendessen"),
    Verb("work works worked", "arbeite arbeitet arbeiten", "gearbeitet", "in the garden", "im Garten"),
    Verb("play plays played", "spiele spielt spielen", "gespielt", "football", "Fußball"),
    Verb("read reads read", "lese liest lesen", "gelesen", "the newspaper", "die Zeitung"),
    Verb("write writes wrote", "schreibe schreibt schreiben", "geschrieben", "a letter", "einen Brief"),
    Verb("collect collects collected", "hole holt holen", "abgeholt", "the parcel", "das Paket", "ab"),
    Verb("wash washes washed", "wasche wäscht waschen", "gewaschen", "the car", "das Auto"),
    Verb("go goes went", "gehe geht gehen", "gegangen", "to the cinema", "ins Kino", perfect=SEIN),
    Verb("come comes came", "komme kommt kommen", "gekommen", "home early", "früh nach Hause", perfect=SEIN),
    Verb("repair repairs repaired", "repariere repariert reparieren", "repariert", "the bicycle", "das Fahrrad"),
    Verb("help helps helped", "helfe hilft helfen", "geholfen", "the student", "dem Studenten"),
    Verb("call calls called", "rufe ruft rufen", "angerufen", "the doctor", "den Arzt", "an"),
    Verb("wait waits waited", "warte wartet warten", "gewartet", "for the bus", "auf den Bus"),
]
TRANSITIVES = [
    Verb("buy buys bought", "kaufe kauft kaufen", "gekauft"),
    Verb("sell sells sold", "verkaufe verkauft verkaufen", "verkauft"),
    Verb("look looks looked", "suche sucht suchen", "gesucht", "for"),
    Verb("find finds found", "finde findet finden", "gefunden"),
    Verb("order orders ordered", "bestelle bestellt bestellen", "bestellt"),
    Verb("bring brings brought", "bringe bringt bringen", "mitgebracht", prefix="mit"),
    Verb("return returns returned", "gebe gibt geben", "zurückgegeben", prefix="zurück"),
]
DEALINGS = [
    Verb("visit visits visited", "besuche besucht besuchen", "besucht"),
    Verb("ask asks asked", "frage fragt fragen", "gefragt"),
    Verb("meet meets met", "treffe trifft treffen", "getroffen"),
    Verb("call calls called", "rufe ruft rufen", "angerufen", prefix="an"),
    Verb("invite invites invited", "lade lädt laden", "eingeladen", prefix="ein"),
    Verb("help helps helped", "helfe hilft helfen", "geholfen", case="dat"),
    Verb("thank thanks thanked", "danke dankt danken", "gedankt", case="dat"),
    Verb("answer answers answered", "antworte antwortet antworten", "geantwortet", case="dat"),
]
MODALS = [
    Verb("can can could", "kann kann können"),
    Verb("must must must", "muss muss müssen"),
    Verb("should should should", "sollte sollte sollten"),
    Verb("want wants wanted", "will will wollen", tail="to"),
    Verb("would would would", "möchte möchte möchten", tail="like to"),
]
VERBS = {  # named in patterns; a verb that is spelt out in English has no English forms here
    "sein": Verb("be is was", " ".join(SEIN)),
    "haben": Verb("have has had", " ".join(HABEN)),
    "aufstehen": Verb("get gets got", "stehe steht stehen", tail="up", prefix="auf"),
    "wohnen": Verb("live lives lived", "wohne wohnt wohnen"),
    "arbeiten": Verb("work works worked", "arbeite arbeitet arbeiten"),
    "brauchen": Verb("need needs needed", "brauche braucht brauchen"),
    "legen": Verb("put puts put", "lege legt legen"),
    "helfen": Verb("help helps helped", "helfe hilft helfen"),
    "essen": Verb("eat eats ate", "esse isst essen"),
    "mögen": Verb("like likes liked", "mag mag mögen"),
    "möchten": MODALS[4],
    "fahren": Verb("", "fahre fährt fahren"),
    "gehen": Verb("", "gehe geht gehen"),
    "nehmen": Verb("", "nehme nimmt nehmen"),
    "bleiben": Verb("", "bleibe bleibt bleiben"),
    "geben": Verb("", "gebe gibt geben"),
    "freuen": Verb("", "freue freut freuen"),
    "trinken": Verb("", "trinke trinkt trinken"),
    "war": Verb("", "war war waren"),
}
WORDS = words("""
single | my brother = mein Bruder; my sister = meine Schwester; our neighbour = unser Nachbar; the teacher = der Lehrer;
    Mrs Klein = Frau Klein; Anna
several | my parents = meine Eltern; the children = die Kinder
adj | new = neu; old = alt; small = klein; big = groß; red = rot; blue = blau; green = grün; black = schwarz; white = weiß; cheap = billig;
    expensive = teuer; beautiful = schön
site | new = neu; old = alt; big = groß; small = klein; nearest = nächst
city | Berlin; Hamburg; Munich = München; Cologne = Köln; Vienna = Wien; Dresden; Leipzig; Zurich = Zürich; Bremen; Frankfurt;
    Nuremberg = Nürnberg; Hanover = Hannover
near | next to = neben; behind = hinter; in front of = vor; opposite = gegenüber
prep | on = auf; under = unter; next to = neben; behind = hinter; in front of = vor
turn | left = links; right = rechts
step | get off = aussteigen; get on = einsteigen; change = umsteigen
store | in the shop = im Geschäft; at the market = auf dem Markt; in the window = im Schaufenster; in the cellar = im Keller
often | often = oft; always = immer; never = nie; sometimes = manchmal; usually = meistens
sky | cold = kalt; warm; hot = heiß; cool = kühl; sunny = sonnig; cloudy = bewölkt; windy = windig; foggy = neblig
done | sold = verkauft; repaired = repariert; delivered = geliefert; cleaned = gereinigt; collected = abgeholt
more | cheaper = billiger; more expensive = teurer; better = besser; fresher = frischer
weekday | Monday = Montag; Tuesday = Dienstag; Wednesday = Mittwoch; Thursday = Donnerstag; Friday = Freitag; Saturday = Samstag;
    Sunday = Sonntag
month | January = Januar; February = Februar; March = März; April; May = Mai; June = Juni; July = Juli; August; September;
    October = Oktober; November; December = Dezember
day | today = heute; tomorrow = morgen; the day after tomorrow = übermorgen
soon | today = heute; tomorrow = morgen; next week = nächste Woche; at the weekend = am Wochenende
habit | every day = jeden Tag; every week = jede Woche; every weekend = jedes Wochenende
past | yesterday = gestern; last week = letzte Woche; two days ago = vor zwei Tagen; a week ago = vor einer Woche
portion | a kilo of apples = ein Kilo Äpfel; a kilo of tomatoes = ein Kilo Tomaten; a kilo of potatoes = ein Kilo Kartoffeln;
    a bottle of water = eine Flasche Wasser; a bottle of juice = eine Flasche Saft; a bottle of beer = eine Flasche Bier;
    a glass of milk = ein Glas Milch; a glass of water = ein Glas Wasser; a glass of juice = ein Glas Saft; a glass of beer = ein Glas Bier;
    a cup of coffee = eine Tasse Kaffee; a cup of tea = eine Tasse Tee; a piece of cake = ein Stück Kuchen;
    a piece of cheese = ein Stück Käse; a piece of bread = ein Stück Brot; a piece of meat = ein Stück Fleisch
""")
for _slot, _en, _de in [("day", "on", "am"), ("soon", "on", "am"), ("habit", "every", "jeden"), ("past", "last", "letzten")]:
    WORDS[_slot] += [Word(f"{_en} {day.en}", f"{_de} {day.de}") for day in WORDS["weekday"]]
OTHERS = [Subject(word.en, word.de, 1) for word in WORDS["single"]] + [Subject(word.en, word.de, 2) for word in WORDS["several"]]
NOUNS = words("""
thing | table/tables = Tisch/Tische m; chair/chairs = Stuhl/Stühle m; lamp/lamps = Lampe/Lampen f; clock/clocks = Uhr/Uhren f;
    book/books = Buch/Bücher n; bag/bags = Tasche/Taschen f; coat/coats = Mantel/Mäntel m; shirt/shirts = Hemd/Hemden n;
    jacket/jackets = Jacke/Jacken f; umbrella/umbrellas = Regenschirm/Regenschirme m; bed/beds = Bett/Betten n;
    cup/cups = Tasse/Tassen f; suitcase/suitcases = Koffer/Koffer m; hat/hats = Hut/Hüte m; dress/dresses = Kleid/Kleider n;
    carpet/carpets = Teppich/Teppiche m; picture/pictures = Bild/Bilder n; guitar/guitars = Gitarre/Gitarren f;
    radio/radios = Radio/Radios n; camera/cameras = Kamera/Kameras f
place | station = Bahnhof m zu an; airport = Flughafen m zu an; park = Park m in in; market = Markt m auf auf; school = Schule f zu in;
    church = Kirche f in in; library = Bibliothek f in in; bakery = Bäckerei f zu in; pharmacy = Apotheke f zu in; bank = Bank f zu in;
    museum = Museum n in in; cinema = Kino n in in; hotel = Hotel n in in; theatre = Theater n in in; town hall = Rathaus n zu in;
    supermarket = Supermarkt m in in
elder | brother = Bruder m; father = Vater m; uncle = Onkel m; neighbour = Nachbar/Nachbarn m*; colleague = Kollege/Kollegen m*;
    sister = Schwester f; mother = Mutter f; aunt = Tante f
child | son = Sohn m; daughter = Tochter f; parents = Eltern p; children = Kinder p
person | doctor = Arzt m; boss = Chef m; colleague = Kollege/Kollegen m*; customer = Kunde/Kunden m*; student = Student/Studenten m*;
    nurse = Krankenschwester f; family = Familie f; girl = Mädchen n
event | meeting = Besprechung f; concert = Konzert n; film = Film m; course = Kurs m; party = Feier f; game = Spiel n; lecture = Vortrag m;
    exhibition = Ausstellung f
food | bread = Brot n; cheese = Käse m; butter = Butter f; cake = Kuchen m; soup = Suppe f; salad = Salat m; fish = Fisch m; rice = Reis m;
    meat = Fleisch n
drink | milk = Milch f; coffee = Kaffee m; tea = Tee m; juice = Saft m; water = Wasser n; lemonade = Limonade f; beer = Bier n
room | kitchen = Küche f; bathroom = Bad n; bedroom = Schlafzimmer n; living room = Wohnzimmer n; office = Büro n; cellar = Keller m;
    garage = Garage f; hall = Flur m
item | book = Buch n; hat = Hut m; key = Schlüssel m; letter = Brief m; newspaper = Zeitung f; knife = Messer n; camera = Kamera f;
    shirt = Hemd n; jacket = Jacke f; ball = Ball m
spot | table = Tisch m; chair = Stuhl m; bed = Bett n; cupboard = Schrank m; sofa = Sofa n; shelf = Regal n; box = Kiste f; bag = Tasche f
line | train = Zug m; bus = Bus m; ferry = Fähre f; ship = Schiff n
by | train = Zug m; bus = Bus m; tram = Straßenbahn f; car = Auto n; bicycle = Fahrrad n
birthday | birthday = Geburtstag m
""")
SLOTS: dict[str, Sequence[Filler]] = {
    **WORDS,
    **{slot: [noun(entry) for entry in entries] for slot, entries in NOUNS.items()},
    "kin": [noun(entry) for entry in NOUNS["elder"] + NOUNS["child"]],
    **{name: [verb] for name, verb in VERBS.items()},
    "who": 2 * PRONOUNS + OTHERS,  # pronouns twice as often
    "pro": PRONOUNS,
    "one": PRONOUNS[:3],
    "third": [*(pronoun for pronoun in PRONOUNS if pronoun.en not in ("I", "we")), *OTHERS],
    "whom": [Pronoun(*forms) for forms in OBJECTS],
    "act": ACTIVITIES,
    "tv": TRANSITIVES,
    "deal": DEALINGS,
    "modal": MODALS,
    "nth": [ordinal(n) for n in range(1, 6)],
    "ord": [ordinal(n) for n in range(1, 29)],
    "date": digits(*range(1, 29)),
    "time": times(range(1, 13)),
    "early": times(range(6, 11), "full", "half", "quarter past"),
    "late": times(range(4, 10), "full", "half", "quarter to"),
    "stamp": [Word(f"{hour}:{minute}", f"{hour}:{minute} Uhr") for hour in range(8, 20) for minute in (20, 45)],
    "num": [number(n) for n in range(2, 50)],
    "age": [number(n) for n in range(20, 50)],
    "few": [number(n) for n in range(2, 13)],
    "minutes": [number(n) for n in range(5, 60, 5)],
    "track": digits(*range(1, 17)),
    "price": [Word(f"{euros}.{cents}", f"{euros},{cents}") for euros in range(1, 10) for cents in (20, 50, 95)],
    "euros": digits(*range(15, 100, 15), 20, 40, 80, 120),
    "dist": digits(50, 100, 150, 200, 300, 400, 500, 600, 800, unit=(" metres", " Meter"))
    + digits(1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, unit=(" kilometres", " Kilometer")),
    "km": digits(*range(20, 420, 40)),
    "deg": digits(*range(1, 33)) + [Word(f"minus {n}", f"minus {n}") for n in range(1, 10, 2)],
    "range": [Word(f"{n} and {n + 5}", f"{n} und {n + 5}") for n in range(1, 28)],
}

# --------------------------------------------------------------------------------------------------------- patterns


class Pattern(NamedTuple):
    """An English and a German sentence with slots, and the pair of slots whose combinations are kept apart."""

    pair: str
    en: str
    de: str


PATTERNS = [Pattern(*row) for row in rows(PATTERN_FILE.read_text(encoding="utf-8"))]

# -------------------------------------------------------------------------------------------------------- generation

PLACEHOLDER = re.compile(r"\{([^{}]+)\}")


class Example(NamedTuple):
    """A sentence pair, the English text of its pattern, and the two words that fill the pattern's pair."""

    en: str
    de: str
    pattern: str
    pair: tuple[str, str]


def realise(sentence: str, fillers: Mapping[str, Filler], forms: Forms) -> str:
    """The sentence with its slots filled, spaces tidied and the first letter in upper case."""

    def fill(match: re.Match[str]) -> str:
        name, *slots = match[1].split()
        if slots:
            return forms[name](*(fillers[slot] for slot in slots))
        return fillers[name].en if forms is ENGLISH else fillers[name].de

    text = re.sub(r" +([ .,?])", r"\1", PLACEHOLDER.sub(fill, sentence)).strip()
    return text[0].upper() + text[1:]


def draw(pattern: Pattern, rng: random.Random) -> dict[str, Filler]:
    """A random filling of the pattern's slots; slots of one kind get different words."""
    fillers: dict[str, Filler] = {}
    bodies = [body.split() for body in PLACEHOLDER.findall(pattern.en + pattern.de)]
    for slot in dict.fromkeys(name for body in bodies for name in body[1:] or body):
        kind = slot.rstrip("0123456789")
        choices = SLOTS[kind] if slot == kind else [filler for filler in SLOTS[kind] if filler != fillers[kind]]
        fillers[slot] = choices[int(rng.random() * len(choices))]
    return fillers


def set_of(pattern: str, pair: Sequence[str]) -> str:
    """Train, dev or test: a hash of the pattern's English text and of the words that fill its pair decides, and nothing else."""
    key = "|".join([str(SEED), pattern, *pair])
    percent = int.from_bytes(hashlib.sha256(key.encode("utf-8")).digest()[:8], "big") % 100
    return "test" if percent < HELD_OUT else "dev" if percent < 2 * HELD_OUT else "train"


def words_of(line: str) -> list[str]:
    """The words of a line without the punctuation around them."""
    return [word.strip(".,?") for word in line.split()]


def shuffled(examples: Sequence[Example], rng: random.Random) -> list[Example]:
    """The examples in random order."""
    return [example for _, example in sorted((rng.random(), example) for example in examples)]


def candidates(rng: random.Random) -> dict[str, list[list[Example]]]:
    """For each set a list per pattern. No line, in lower case, occurs twice on its side, within or between sets."""
    found: dict[str, list[list[Example]]] = {name: [[] for _ in PATTERNS] for name in KEPT}
    taken_en, taken_de = set[str](), set[str]()
    for index, pattern in enumerate(PATTERNS):
        for fillers in (draw(pattern, rng) for _ in range(DRAWS)):
            first, second = (fillers[slot].en for slot in pattern.pair.split())
            name = set_of(pattern.en, (first, second))
            if len(found[name][index]) == KEPT[name]:
                continue
            en, de = realise(pattern.en, fillers, ENGLISH), realise(pattern.de, fillers, GERMAN)
            if en.lower() not in taken_en and de.lower() not in taken_de:
                taken_en.add(en.lower())
                taken_de.add(de.lower())
                found[name][index].append(Example(en, de, pattern.en, (first, second)))
    return found


def build() -> dict[str, list[Example]]:
    """The three sets. Dev and test draw evenly on the patterns and use only words that train has at least MIN_SEEN times."""
    rng = random.Random(SEED)
    found = candidates(rng)
    train = shuffled([example for examples in found["train"] for example in examples], rng)
    seen_en = Counter(word for example in train for word in words_of(example.en))
    seen_de = Counter(word for example in train for word in words_of(example.de))

    def known(example: Example) -> bool:
        return min(*(seen_en[word] for word in words_of(example.en)), *(seen_de[word] for word in words_of(example.de))) >= MIN_SEEN

    sets = {"train": train}
    for name in ("dev", "test"):
        usable = [list(filter(known, examples)) for examples in found[name]]
        rounds = ([examples[turn] for examples in usable if turn < len(examples)] for turn in range(KEPT[name]))
        sets[name] = [example for examples in rounds for example in shuffled(examples, rng)][:SET_SIZE]
    return sets


def contents() -> Iterator[tuple[str, bytes]]:
    """The name and the bytes of each file."""
    for name, examples in build().items():
        yield f"{name}.en", "".join(f"{example.en}\n" for example in examples).encode("utf-8")
        yield f"{name}.de", "".join(f"{example.de}\n" for example in examples).encode("utf-8")


def main(argv: Sequence[str] | None = None) -> int:
    """Write the corpus; with --check, say which files differ from it instead, and return 1 if any does."""
    parser = argparse.ArgumentParser(description="Generate the quickstart corpus: English-German pairs made from tables.")
    parser.add_argument("--out", type=Path, default=HOME, metavar="DIR", help="where the six files are (default: data/quickstart)")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a file is not as it would be written")
    args = parser.parse_args(argv)
    different = 0
    for name, data in contents():
        path = args.out / name
        if not args.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        elif not path.is_file() or path.read_bytes() != data:
            different += 1
            print(f"{path}: not what scripts/make_quickstart.py writes; run it without --check", file=sys.stderr)
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
