"""Phrases for the time on one side of a date, and for ranges between two."""

from __future__ import annotations

from datetime import date

from date_grammars.worlds import (
    DAYS,
    MONTHS,
    ONE,
    POINTS,
    Template,
    Window,
    World,
    going,
    midnight,
    month_of,
    spell,
    suffix,
    whole,
)
from date_grammars.written import a_date, a_month, a_numbered_week, a_slashed_date, a_year


def one_side(world: World) -> tuple[str, list[Window]]:
    """A direction before a point."""
    text, ((start, end),) = world.random.choice(POINTS)(world)
    direction, window = world.random.choice(
        [
            ("before", (None, start)),
            ("prior to", (None, start)),
            ("after", (end, None)),
            ("later than", (end, None)),
            ("since", (start, None)),
            ("until", (None, end)),
            ("till", (None, end)),
            ("by", (None, end)),
            ("up to", (None, end)),
            ("no later than", (None, end)),
        ]
    )
    return f"{direction} {text}", [window]


def one_side_of_an_edge(world: World) -> tuple[str, list[Window]]:
    """A direction before the start or the end of a point."""
    text, ((start, end),) = world.random.choice([a_month, a_year])(world)
    edge, name = world.random.choice([(start, "start"), (end, "end")])
    direction, window = world.random.choice(
        [("before", (None, edge)), ("after", (edge, None)), ("since", (edge, None)), ("until", (None, edge))]
    )
    return f"{direction} the {name} of {text}", [window]


def one_side_of_a_near_day(world: World) -> tuple[str, list[Window]]:
    """A direction before a day that counts from now."""
    name, ahead = world.random.choice(
        [("yesterday", -1), ("today", 0), ("tomorrow", 1), ("the day before yesterday", -2)]
    )
    start = midnight(world.today) + ahead * ONE
    end = start + ONE
    direction, window = world.random.choice(
        [("before", (None, start)), ("after", (end, None)), ("since", (start, None)), ("until", (None, end))]
    )
    return f"{direction} {name}", [window]


def one_side_of_a_weekday(world: World) -> tuple[str, list[Window]]:
    """A direction before a weekday: the latest before today, or the next one where something is due."""
    weekday, ahead = world.random.randrange(7), world.random.random() < 0.5
    start = midnight(going(world.today, weekday, 1 if ahead else -1))
    direction, window = world.random.choice(
        [
            ("before", (None, start)),
            ("until", (None, start + ONE)),
            ("by", (None, start + ONE)),
            ("no later than", (None, start + ONE)),
            ("since", (start, None)),
            ("after", (start + ONE, None)),
        ]
    )
    return f"{'due ' * ahead}{direction} {DAYS[weekday]}", [window]


def one_side_of_so_long_ago(world: World) -> tuple[str, list[Window]]:
    """A direction before "N weeks ago", which is the exact day then."""
    count = world.random.randint(2, 12)
    start = midnight(world.today) - 7 * count * ONE
    direction, window = world.random.choice(
        [("before", (None, start)), ("after", (start + ONE, None)), ("since", (start, None))]
    )
    return f"{direction} {spell(world, count)} weeks ago", [window]


def one_side_of_a_month_without_a_year(world: World) -> tuple[str, list[Window]]:
    """A direction before a month: the latest one that has begun."""
    month, day = world.random.randint(1, 12), world.today
    while day.month != month:
        day -= ONE
    first, last = month_of(day)
    direction, window = world.random.choice(
        [
            ("since", (midnight(first), None)),
            ("before", (None, midnight(first))),
            ("until", (None, midnight(last + ONE))),
            ("after", (midnight(last + ONE), None)),
        ]
    )
    return f"{direction} {MONTHS[month - 1]}", [window]


def from_a_point_on(world: World) -> tuple[str, list[Window]]:
    """An open range."""
    text, ((start, _),) = world.random.choice([a_date, a_month, a_year])(world)
    return f"from {text} {world.random.choice(['on', 'onwards'])}", [(start, None)]


def until_now(world: World) -> tuple[str, list[Window]]:
    """Everything so far."""
    return "until now", [(None, world.now)]


def from_one_to_another(world: World) -> tuple[str, list[Window]]:
    """A range between two points of one kind."""
    template = world.random.choice([a_date, a_month, a_year, a_numbered_week, a_slashed_date])
    ends = sorted([template(world), template(world)], key=lambda found: found[1])
    (one, ((start, _),)), (two, ((_, end),)) = ends
    form = world.random.choice(["between {} and {}", "from {} to {}", "from {} until {}", "{} to {}", "{} \u2013 {}"])
    return form.format(one, two), [(start, end)]


def years_joined(world: World) -> tuple[str, list[Window]]:
    first = world.random.randint(1950, 2030)
    last = first + world.random.randint(1, 15)
    short = f"{first}\u2013{last % 100:02}" if last // 100 == first // 100 and last % 100 > 12 else f"{first}-{last}"
    return world.random.choice([f"{first}-{last}", short]), whole(date(first, 1, 1), date(last, 12, 31))


def months_of_one_year(world: World) -> tuple[str, list[Window]]:
    year, first = world.random.randint(2005, 2035), world.random.randint(1, 11)
    last = world.random.randint(first + 1, 12)
    form = world.random.choice(["from {} to {} {}", "between {} and {} {}"])
    text = form.format(MONTHS[first - 1], MONTHS[last - 1], year)
    return text, whole(date(year, first, 1), month_of(date(year, last, 1))[1])


def a_date_that_never_was(world: World) -> tuple[str, list[Window]]:
    year, month = world.random.randint(2005, 2035), world.random.choice([2, 4, 6, 9, 11])
    number = 31 if month != 2 else world.random.choice([30, 31])
    form = world.random.choice(["on {d} {m} {y}", "on {m} {d}, {y}", "on {y}-{n:02}-{d}", "on {d}.{n}.{y}", "{m} {s}"])
    return form.format(d=number, m=MONTHS[month - 1], y=year, n=month, s=suffix(number)), []


def one_side_turned_around(world: World) -> tuple[str, list[Window]]:
    """A negation before a direction, or what includes the date itself."""
    text, ((start, end),) = world.random.choice(POINTS)(world)
    direction, window = world.random.choice(
        [
            ("not before", (start, None)),
            ("no earlier than", (start, None)),
            ("not earlier than", (start, None)),
            ("no sooner than", (start, None)),
            ("on or after", (start, None)),
            ("not until", (start, None)),
            ("not after", (None, end)),
            ("no later than", (None, end)),
            ("not later than", (None, end)),
            ("on or before", (None, end)),
            ("not by", (end, None)),
        ]
    )
    return f"{direction} {text}", [window]


def one_side_behind_a_date(world: World) -> tuple[str, list[Window]]:
    """A direction behind its date."""
    text, ((start, end),) = world.random.choice([a_date, a_month, a_year])(world)
    direction, window = world.random.choice(
        [
            ("or later", (start, None)),
            ("onwards", (start, None)),
            ("at the earliest", (start, None)),
            ("or earlier", (None, end)),
            ("at the latest", (None, end)),
        ]
    )
    return f"{text} {direction}", [window]


LOWER = ["after", "later than", "since", "not before", "no earlier than"]
UPPER = ["before", "prior to", "until", "by", "not after", "no later than"]


def both_sides(world: World) -> tuple[str, list[Window]]:
    """Two directions: the time that is on both sides, in whichever order; without any, or with "or", each alone."""
    template = world.random.choice([a_date, a_month, a_year, a_numbered_week])
    (one, ((one_start, one_end),)), (two, ((two_start, two_end),)) = template(world), template(world)
    lower, upper = world.random.choice(LOWER), world.random.choice(UPPER)
    start = one_end if lower in {"after", "later than"} else one_start
    end = two_start if upper in {"before", "prior to"} else two_end
    joiner = world.random.choice([" but ", " and ", ", ", " ", ", but ", " or "])
    parts = [f"{lower} {one}", f"{upper} {two}"]
    if world.random.random() < 0.3 and joiner != " or ":
        parts.reverse()
    assert start is not None
    assert end is not None
    windows: list[Window] = [(start, end)] if start < end and joiner != " or " else [(start, None), (None, end)]
    # A negation before the first of two that "or" joins is one of both.
    negated = joiner == " or " and lower in {"not before", "no earlier than"}
    if negated and upper in {"before", "prior to"}:
        windows = [(max(moment for moment in (one_start, two_start) if moment is not None), None)]
    return joiner.join(parts), windows


def neither_side(world: World) -> tuple[str, list[Window]]:
    """A negation of two directions."""
    first = world.random.randint(1950, 2030)
    last = first + world.random.randint(0, 15)
    text = world.random.choice(
        [
            f"neither before {first} nor after {last}",
            f"not before {first} or after {last}",
            f"no earlier than {first} or later than {last}",
        ]
    )
    return text, whole(date(first, 1, 1), date(last, 12, 31))


def a_date_with_one_side(world: World) -> tuple[str, list[Window]]:
    """A year, and a direction of a month of it."""
    year, month = world.random.randint(2005, 2035), world.random.randint(2, 11)
    first, last = month_of(date(year, month, 1))
    side, window = world.random.choice(
        [
            ("before", (midnight(date(year, 1, 1)), midnight(first))),
            ("after", (midnight(last + ONE), midnight(date(year + 1, 1, 1)))),
            ("since", (midnight(first), midnight(date(year + 1, 1, 1)))),
        ]
    )
    form = world.random.choice(["in {y} {s} {m}", "in {y}, but {s} {m}", "in {y}, {s} {m}", "in {y} {s} {m} {y}"])
    return form.format(y=year, s=side, m=MONTHS[month - 1]), [window]


def both_sides_of_one_year(world: World) -> tuple[str, list[Window]]:
    """Two months, of which one has a year: that of the other is the nearest to it."""
    year, first = world.random.randint(2005, 2035), world.random.randint(1, 12)
    last = world.random.choice([month for month in range(1, 13) if month != first])
    form = world.random.choice(["after {a} {y} and before {b}", "after {a} and before {b} {y}"])
    second = "{a} {y}" not in form
    begin = year - (second and last <= first)
    until = year + (not second and last <= first)
    start, end = month_of(date(begin, first, 1))[1] + ONE, date(until, last, 1)
    text = form.format(a=MONTHS[first - 1], b=MONTHS[last - 1], y=year)
    if start < end:
        return text, [(midnight(start), midnight(end))]
    # Two months of which one follows the other have no time between them but that of the next year.
    return both_sides_of_one_year(world)


def a_range_without_one_end(world: World) -> tuple[str, list[Window]]:
    """A range of which one end is no date is open there."""
    text, ((start, end),) = world.random.choice([a_date, a_month, a_year])(world)
    event = world.random.choice(["the wedding", "our wedding in Rome", "Ramadan"])
    phrase, window = world.random.choice(
        [
            ("between {event} and {text}", (None, end)),
            ("from {event} to {text}", (None, end)),
            ("between {text} and {event}", (start, None)),
        ]
    )
    return phrase.format(event=event, text=text), [window]


def a_year_without_a_part(world: World) -> tuple[str, list[Window]]:
    """A year, or from one year on, and a month of it that is left out."""
    year, month = world.random.randint(2005, 2035), world.random.randint(1, 12)
    first, last = month_of(date(year, month, 1))
    lead, start, end = world.random.choice(
        [("in", date(year, 1, 1), midnight(date(year + 1, 1, 1))), ("since", date(year, 1, 1), None)]
    )
    name = world.random.choice([f"{MONTHS[month - 1]} {year}", f"{first.isoformat()[:7]}"])
    form = world.random.choice(
        [
            "{lead} {year} but not in {name}",
            "{lead} {year}, not in {name}",
            "{lead} {year} except {name}",
            "{lead} {year}, excluding {name}",
            "{lead} {year} apart from {name}",
            "except in {name}, {lead} {year}",
        ]
    )
    parts: list[Window] = [(midnight(start), midnight(first)), (midnight(last + ONE), end)]
    return form.format(lead=lead, year=year, name=name), [(one, other) for one, other in parts if one != other]


# How often each is chosen is by how often it is here.
DIRECTED: list[Template] = [
    *[one_side] * 8,
    one_side_of_an_edge,
    a_year_without_a_part,
    *[from_one_to_another] * 4,
    one_side_of_a_near_day,
    one_side_of_so_long_ago,
    one_side_of_a_month_without_a_year,
    from_a_point_on,
    until_now,
    years_joined,
    months_of_one_year,
    a_date_that_never_was,
    *[one_side_turned_around] * 3,
    one_side_behind_a_date,
    one_side_of_a_weekday,
    *[both_sides] * 4,
    neither_side,
    a_date_with_one_side,
    both_sides_of_one_year,
    a_range_without_one_end,
]
