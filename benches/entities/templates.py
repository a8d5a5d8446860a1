"""Sentences with slots for names, and the relations that each states, in ten domains and two splits.

A slot is a letter and a number: p and f a person by full and by given name, o an organisation, l a place, j a project,
r a product, e an event. A relation is ``source link target`` of slots; ``I`` is the speaker. Rules
were changed by errors of the development split; the verbs of the test split were known to their author.
"""

from __future__ import annotations

DEV: dict[str, tuple[str, ...]] = {
    "work": (
        "{p1} works at {o1} in {l1}. | p1 works_at o1; o1 located_in l1",
        "My manager {p1} asked me to finish {j1} before Friday. | p1 manages I",
        "{p1} reports to {p2}, who leads {j1}. | p1 reports_to p2; p2 leads j1",
        "After six years {f1} left {o1} and joined {o2}. | f1 worked_at o1; f1 works_at o2",
        "Yesterday {p1}, an engineer at {o1}, showed me {j1}. | p1 works_at o1",
    ),
    "family": (
        "{f1} is {f2}'s sister. | f1 sister_of f2",
        "My brother {f1} married {p1} in {l1} last May. | f1 brother_of I; f1 married_to p1",
        "{p1} and {p2} are cousins. | p1 cousin_of p2",
        "{f1}'s daughter {f2} was born in {l1}. | f2 daughter_of f1; f2 born_in l1",
        "Does {f1} still live in {l1}? Her mother {f2} asked me. | f2 mother_of f1",
    ),
    "travel": (
        "{f1} flew to {l1} on Monday. | f1 visited l1",
        "We visited {l1} and {l2} in October. | I visited l1; I visited l2",
        "{p1} moved from {l1} to {l2} in 2019. | p1 lives_in l2",
        "The train to {l1} was late, so we stayed in {l2}. | I lives_in l2",
        "Packing took hours. {p1} grew up in {l1}, near {l2}. | p1 comes_from l1",
    ),
    "health": (
        "Dr. {p1} prescribed {r1} for my back. | ",
        "{f1} had an appointment with Dr. {p1} at {o1}. | ",
        "{p1} is a nurse at {o1}. | p1 works_at o1",
        "Walking helps. {f1} takes {r1} every morning. | f1 uses r1",
        "{f1} never worked at {o1}, but her aunt {f2} did. | f2 aunt_of f1",
    ),
    "software": (
        "{p1} rewrote {j1} in {r1}. | p1 created j1",
        "We migrated from {r1} to {r2} because {r1} was slow. | ",
        "{j1} depends on {r1}. | j1 uses r1",
        "The outage at {o1} was caused by {r1}. | o1 caused_by r1",
        "{p1} maintains {r1}, a library written in {r2}. | p1 works_on r1; r1 uses r2",
    ),
    "school": (
        "{p1} studied physics at {o1}. | p1 studies_at o1",
        "{f1} graduated from {o1} in June. | f1 studies_at o1",
        "Professor {p1} teaches at {o1} in {l1}. | p1 works_at o1; o1 located_in l1",
        "{p1} mentors {p2}, a student at {o1}. | p1 mentors p2; p2 studies_at o1",
        "Homework is due on Tuesday. Ask {f1} about it. | ",
    ),
    "arts": (
        "The novel by {p1} won an award at {e1}. | ",
        "{p1} plays the violin in {o1}. | p1 member_of o1",
        "{p1} (formerly {p2}) sang at {e1}. | p2 alias_of p1; p1 attended e1",
        "{p1}, also known as {f1}, painted it in {l1}. | f1 alias_of p1",
        "Painting calms me. {f1} met {p1} at {e1}. | f1 knows p1",
    ),
    "sports": (
        "{p1} ran {e1} in under four hours. | p1 attended e1",
        "{p1} signed with {o1} last summer. | p1 works_at o1",
        "{o1} hired {p1} as coach. | o1 hired p1",
        "{e1} takes place in {l1} this year. | e1 located_in l1",
        "Training starts at six. {f1} and {f2} are teammates. | f1 colleague_of f2",
    ),
    "food": (
        "{p1} founded {o1}, a bakery in {l1}. | p1 founded o1; o1 located_in l1",
        "Grandma {f1} makes the best dumplings in {l1}. | ",
        "{f1} and {f2} had dinner with {p1} at {o1}. | f1 knows p1; f2 knows p1",
        "Coffee keeps me awake. {f1} comes from {l1}. | f1 comes_from l1",
        "{o1} was founded by {p1} and {p2}. | p1 founded o1; p2 founded o1",
    ),
    "business": (
        "{o1} acquired {o2} for two billion dollars. | o1 acquired o2",
        "{p1}, CEO of {o1}, lives in {l1}. | p1 leads o1; p1 lives_in l1",
        "{o1} is based in {l1}. | o1 located_in l1",
        "Sales fell in March because {o1} raised its prices. | ",
        "According to {p1}, {o1} competes with {o2}. | o1 competes_with o2",
    ),
}
TEST: dict[str, tuple[str, ...]] = {
    "work": (
        "{p1} has worked for {o1} since 2018. | p1 works_at o1",
        "I had lunch with {f1} from {o1} and we talked about {j1}. | I knows f1; f1 works_at o1",
        "{f1} is the new head of {j1}. | f1 leads j1",
        "Our colleague {p1} resigned from {o1} on Thursday. | p1 colleague_of I; p1 worked_at o1",
        "Everyone at {o1} knows that {p1} manages {p2}. | p1 manages p2",
    ),
    "family": (
        "{p1} is the mother of {f1}. | p1 mother_of f1",
        "My wife {f1} and I live in {l1}. | f1 married_to I; f1 lives_in l1; I lives_in l1",
        "{f1} has a twin brother, {f2}, in {l1}. | f2 brother_of f1",
        "On Sunday {f1} introduced me to her husband {p1}. | p1 married_to f1",
        "{f1} and {f2} are married. | f1 married_to f2",
    ),
    "travel": (
        "Last week {p1} drove to {l1} with {f1}. | p1 visited l1",
        "{f1} lives near {l1} now. | f1 lives_in l1",
        "Have you been to {l1}? {f1} explored {l2} in spring. | f1 visited l2",
        "{p1} was born in {l1} but lives in {l2}. | p1 born_in l1; p1 lives_in l2",
        "Rain fell all day in {l1}. | ",
    ),
    "health": (
        "{f1} recovered thanks to Dr. {p1} of {o1}. | f1 caused_by p1; p1 works_at o1",
        "Sleeping badly again. {f1} recommended {r1}. | ",
        "{p1} works as a therapist at {o1}. | p1 works_at o1",
        "{f1} might move to {l1} for the treatment. | ",
        "Her dentist, {p1}, studied in {l1}. | p1 studies_at l1",
    ),
    "software": (
        "{p1} built {r1} with {r2}. | p1 created r1",
        "{o1} uses {r1} for logging. | o1 uses r1",
        "{p1} contributes to {r1} and lives in {l1}. | p1 works_on r1; p1 lives_in l1",
        "The delay of {j1} was due to {r1}. | j1 caused_by r1",
        "I switched to {r1} after {f1} showed it to me. | I uses r1",
    ),
    "school": (
        "{f1} got her degree at {o1}. | f1 studies_at o1",
        "{p1}, a PhD student at {o1}, spoke at {e1}. | p1 studies_at o1; p1 attended e1",
        "Mrs. {p1} taught me chemistry. | ",
        "Exams begin in May. {f1} is {p1}'s roommate. | f1 roommate_of p1",
        "{p1} teaches history at {o1}. | p1 works_at o1",
    ),
    "arts": (
        "{p1} wrote {r1}. | p1 created r1",
        "{r1} was directed by {p1}. | p1 created r1",
        "{p1}, née {p2}, lives in {l1}. | p2 alias_of p1; p1 lives_in l1",
        "Tickets for {e1} sold out, said {p1}. | ",
        "{p1} performed at {e1} in {l1}. | p1 attended e1; e1 located_in l1",
    ),
    "sports": (
        "{p1} plays for {o1}. | p1 works_at o1",
        "{f1} won a medal at {e1}. | f1 attended e1",
        "Swimming is hard. {f1} coaches {f2} in {l1}. | f1 mentors f2",
        "{p1} replaced {p2} as captain of {o1}. | p1 succeeded p2",
        "Nobody from {l1} finished {e1}. | ",
    ),
    "food": (
        "{f1} opened a restaurant in {l1} called {o1}. | ",
        "{f1}'s grandmother {f2} cooks for {o1}. | f2 grandmother_of f1",
        "{p1} owns {o1}. | p1 owns o1",
        "Breakfast was great. {f1} and I met {p1} there. | f1 knows p1; I knows p1",
        "{o1} moved its kitchen to {l1}. | o1 located_in l1",
    ),
    "business": (
        "{o1} was bought by {o2} in 2021. | o2 acquired o1",
        "{p1} co-founded {o1} with {p2}. | p1 founded o1",
        "{o1} is a subsidiary of {o2}. | o1 part_of o2",
        "{o1} partnered with {o2} on {j1}. | o1 works_with o2",
        "The strike led to losses, and {p1} invested in {o1}. | p1 invested_in o1",
    ),
}
