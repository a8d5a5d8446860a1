"""Words around a date that say whether it is one: "may" is a month in "in may", and a verb in "you may"."""

from __future__ import annotations

from astrocyte.pipelines.query.calendar import MONTHS

LONGEST_ABBREVIATION = 4


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# These are verbs, names or other words too, and months only where the words around say so.
UNSURE_MONTHS = frozenset({"march", *(name for name in MONTHS if len(name) < LONGEST_ABBREVIATION), "sept"})
NAMES = _words("april june august jan may")
MONTH_CONTEXT = _words(
    "in of by since during from until till through last next this between before after around late early mid and to"
    " for on start beginning end middle except excluding without minus either"
)
# Between these, "may" and "march" in small letters are verbs after all.
WEAK_MONTH_CONTEXT = _words("and to this for on")
PERSON_CONTEXT = _words("with did does do has named called dear hi hello is was aunt miss mrs")
# Behind "may" and "march" these make a verb of it.
VERB_CONTEXT = _words("be have not i we you he she it they also or well need want never help cause on for against the")
SEASON_CONTEXT = _words(
    "the in during of by since over before after until till early late mid this last next past from between to through"
    " except excluding than"
)
HOLIDAY_CONTEXT = SEASON_CONTEXT | {"at", "on"}
# Behind a season these make another word of it.
NO_SEASON = _words(
    "festival break down roll rolls cleaning apart asleep into off out behind short water onion onions loaded board"
)
# A number before one of these measures something.
MEASURES = _words(
    "word words dollars euros yuan steps meters metres feet km miles units points rows times calories pages kg g ml mg"
    " tokens lines"
)
# A number before one of these counts them; behind a preposition of time it is a year: "in 2024 users complained".
COUNTED = MEASURES | _words(
    "people items users requests files persons employees votes copies followers students men women children mice sheep"
)
TIME_PREPOSITIONS = _words("in during since until till before after year")
# Before a year that qualifies what follows: "our 2024 tickets".
QUALIFYING = _words(
    "the our my your his her their its whose this that these those which what all any each every early mid late"
)
# Of a year rather than counted: "2024 results".
OF_A_YEAR = _words(
    "results plans goals taxes elections budgets reports figures sales events photos pictures notes memories trips"
    " holidays vacations projects resolutions numbers earnings revenues financials targets priorities models editions"
    " awards seasons festivals conferences wages prices rates statistics forecasts expenses accounts minutes meetings"
    " games championships finals reviews"
)
# These end as plurals do.
NO_PLURAL = _words(
    "does goes says gets makes takes comes looks seems starts begins ends brings means always perhaps besides versus"
    " plus across onwards towards afterwards sometimes"
)
# A number behind one of these is its name.
NUMBERED = _words(
    "flight room page chapter route bus train tram gate platform suite apartment unit building hall locker port order"
    " ticket case invoice number no section article row seat pin code extension ext box block lot track version"
    " windows office iso din rfc id ref account phone tel serial"
)
# "The 2010/11 season" is no November.
OF_TWO_YEARS = _words("season seasons school academic fiscal financial tax")
# Before a year without its own word ("in 1850"): years of earlier centuries are numbers elsewhere.
YEAR_CONTEXT = _words("in since until till before after by from to year during between and through of around")
# Of these words, "Sat" is an abbreviation and "sat" a verb.
CAPITAL_WEEKDAYS = _words("sun sat wed mon fri")
WEEKDAY_CONTEXT = _words(
    "on last next this since until till by before after coming and to from between except excluding"
)
# Before a weekday these make a name of it, or a day that repeats.
NO_WEEKDAY = _words("black good ash cyber palm super bowl casual ruby man a an every each any most holy easter")
