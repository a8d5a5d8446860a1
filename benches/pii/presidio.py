"""Presidio's recognisers under this project's names of types, without a model that would have to be downloaded.

Alone they find by patterns and checks. In its analyser the words around a finding count too, by their lemmas, which a
model of the language would tell; here a word's lemma is the word in small letters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import spacy
from presidio_analyzer import AnalyzerEngine, RecognizerRegistry, RecognizerResult
from presidio_analyzer.nlp_engine import SpacyNlpEngine
from presidio_analyzer.predefined_recognizers import (
    AbaRoutingRecognizer,
    AuMedicareRecognizer,
    AuTfnRecognizer,
    CaSinRecognizer,
    CreditCardRecognizer,
    CryptoRecognizer,
    DeTaxIdRecognizer,
    EmailRecognizer,
    EsNieRecognizer,
    EsNifRecognizer,
    IbanRecognizer,
    InAadhaarRecognizer,
    InPanRecognizer,
    IpRecognizer,
    ItFiscalCodeRecognizer,
    MacAddressRecognizer,
    NhsRecognizer,
    PhoneRecognizer,
    SgFinRecognizer,
    UkNinoRecognizer,
    UkPassportRecognizer,
    UsPassportRecognizer,
    UsSsnRecognizer,
)
from spacy.language import Language
from spacy.tokens import Doc

from benches.pii.documents import Found, Scan

NAMES = {
    "ABA_ROUTING_NUMBER": "bank_routing",
    "AU_MEDICARE": "medicare",
    "AU_TFN": "tfn",
    "CA_SIN": "sin",
    "CREDIT_CARD": "credit_card",
    "CRYPTO": "crypto_address",
    "DE_TAX_ID": "tax_id_de",
    "EMAIL_ADDRESS": "email",
    "ES_NIE": "nie",
    "ES_NIF": "dni",
    "IBAN_CODE": "iban",
    "IN_AADHAAR": "aadhaar",
    "IN_PAN": "pan",
    "IP_ADDRESS": "ip_address",
    "IT_FISCAL_CODE": "codice_fiscale",
    "MAC_ADDRESS": "mac_address",
    "PHONE_NUMBER": "phone",
    "SG_NRIC_FIN": "nric",
    "UK_NHS": "nhs_number",
    "UK_NINO": "nino",
    "UK_PASSPORT": "passport",
    "US_PASSPORT": "passport",
    "US_SSN": "ssn",
}
# Its recognisers of the types that both know; its dates, for one, are any dates, and would count as wrong here.
KINDS = (
    AbaRoutingRecognizer,
    AuMedicareRecognizer,
    AuTfnRecognizer,
    CaSinRecognizer,
    CreditCardRecognizer,
    CryptoRecognizer,
    DeTaxIdRecognizer,
    EmailRecognizer,
    EsNieRecognizer,
    EsNifRecognizer,
    IbanRecognizer,
    InAadhaarRecognizer,
    InPanRecognizer,
    IpRecognizer,
    ItFiscalCodeRecognizer,
    MacAddressRecognizer,
    NhsRecognizer,
    PhoneRecognizer,
    SgFinRecognizer,
    UkNinoRecognizer,
    UkPassportRecognizer,
    UsPassportRecognizer,
    UsSsnRecognizer,
)
# What words around a finding lift it to at least, by Presidio's own default; weaker patterns do not tell without them.
LEAST_SCORE = 0.4
LANGUAGE = "en"


def alone() -> Scan:
    """A scan by the recognisers, each for itself."""
    made = _made()

    def scan(text: str) -> Iterator[Found]:
        return _kept(
            result
            for recogniser in made
            for result in recogniser.analyze(text, recogniser.supported_entities, None) or ()
            if result.score >= LEAST_SCORE
        )

    return scan


def analyser() -> Scan:
    """A scan by the analyser, to which words around a finding count."""
    registry = RecognizerRegistry(recognizers=_made(), supported_languages=[LANGUAGE])
    engine = AnalyzerEngine(registry, _Words(), supported_languages=[LANGUAGE], default_score_threshold=LEAST_SCORE)

    def scan(text: str) -> Iterator[Found]:
        return _kept(engine.analyze(text, LANGUAGE, entities=list(NAMES)))

    return scan


def _made() -> Sequence[Any]:
    return [kind(supported_language=LANGUAGE) for kind in KINDS]


def _kept(results: Iterable[RecognizerResult]) -> Iterator[Found]:
    """Of overlapping findings the surest, then the longest."""
    kept: list[Found] = []
    for result in sorted(results, key=lambda one: (-one.score, one.start - one.end, one.start)):
        if all(result.end <= start or result.start >= end for _, start, end in kept):
            kept.append((NAMES[result.entity_type], result.start, result.end))
    return iter(kept)


@Language.component("small_letters")  # type: ignore[untyped-decorator]  # an extra
def _small_letters(doc: Doc) -> Doc:
    for token in doc:
        token.lemma_ = token.lower_
    return doc


class _Words(SpacyNlpEngine):  # type: ignore[misc]  # an extra
    """Words and nothing else."""

    def __init__(self) -> None:
        super().__init__(models=[{"lang_code": LANGUAGE, "model_name": "blank"}])
        words = spacy.blank(LANGUAGE)
        words.add_pipe("small_letters")
        self.nlp = {LANGUAGE: words}
