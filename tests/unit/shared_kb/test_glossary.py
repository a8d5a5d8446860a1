"""Terms of a glossary in Markdown."""

import pytest

from astrocyte.shared_kb.front_matter import FrontMatterError
from astrocyte.shared_kb.glossary import GlossaryEntry, entries_of

TEXT = """---
type: glossary
---
# Glossary

| Word | Meaning | Aliases |
|---|---|---|
| **deploy window** | Hours in which we [deploy](x.md). | release window; rollout time |
| `bank` | Set of memories. | |
| | No term. | |

- **Outage**: an hour without service.
- **Runbook:** steps of an operator.
* __On-call__ \u2014 the engineer who answers.
- **bank**: a second definition, which does not count.
- an entry without a term

| name | description |
|---|---|
| other | table |

```
- **example**: in a code block
```
"""


def test_terms_are_in_tables_and_lists() -> None:
    assert entries_of(TEXT) == (
        GlossaryEntry("deploy window", "Hours in which we deploy.", ("release window", "rollout time")),
        GlossaryEntry("bank", "Set of memories."),
        GlossaryEntry("Outage", "an hour without service."),
        GlossaryEntry("Runbook", "steps of an operator."),
        GlossaryEntry("On-call", "the engineer who answers."),
    )


def test_a_text_without_terms_has_none() -> None:
    assert entries_of("# Glossary\n\nNo terms yet.") == ()


def test_wrong_front_matter_is_told() -> None:
    with pytest.raises(FrontMatterError):
        entries_of("---\na: [\n---\n- **a**: b\n")


def test_values_are_bounded() -> None:
    many = ", ".join(f"a{number}" for number in range(100))
    (entry,) = entries_of(f"| term | definition | aliases |\n|---|---|---|\n| {'t' * 300} | {'d' * 2_000} | {many} |\n")
    assert (len(entry.name), len(entry.definition), len(entry.aliases)) == (256, 1_024, 64)
