"""Presidio's pattern recognisers, without a language model, under this project's names of types."""

from __future__ import annotations

from collections.abc import Iterator

from presidio_analyzer.predefined_recognizers import (
    AuMedicareRecognizer,
    AuTfnRecognizer,
    CreditCardRecognizer,
    CryptoRecognizer,
    EmailRecognizer,
    EsNieRecognizer,
    EsNifRecognizer,
    IbanRecognizer,
    InAadhaarRecognizer,
    InPanRecognizer,
    IpRecognizer,
    ItFiscalCodeRecognizer,
    NhsRecognizer,
    PhoneRecognizer,
    SgFinRecognizer,
    UsPassportRecognizer,
    UsSsnRecognizer,
)

from benches.pii.documents import Found, Scan

NAMES = {
    "AU_MEDICARE": "medicare",
    "AU_TFN": "tfn",
    "CREDIT_CARD": "credit_card",
    "CRYPTO": "crypto_address",
    "EMAIL_ADDRESS": "email",
    "ES_NIE": "nie",
    "ES_NIF": "dni",
    "IBAN_CODE": "iban",
    "IN_AADHAAR": "aadhaar",
    "IN_PAN": "pan",
    "IP_ADDRESS": "ip_address",
    "IT_FISCAL_CODE": "codice_fiscale",
    "UK_NHS": "nhs_number",
    "PHONE_NUMBER": "phone",
    "SG_NRIC_FIN": "nric",
    "US_PASSPORT": "passport",
    "US_SSN": "ssn",
}
# Below this Presidio's own default would not tell, once its analyser has weighed the words around, which a pattern
# recogniser alone does not.
LEAST_SCORE = 0.4


def recognisers() -> Scan:
    """A scan by all of them; of overlapping findings the surest, then the longest."""
    made = [
        kind()
        for kind in (
            AuMedicareRecognizer,
            AuTfnRecognizer,
            CreditCardRecognizer,
            CryptoRecognizer,
            EmailRecognizer,
            EsNieRecognizer,
            EsNifRecognizer,
            IbanRecognizer,
            InAadhaarRecognizer,
            InPanRecognizer,
            IpRecognizer,
            ItFiscalCodeRecognizer,
            NhsRecognizer,
            PhoneRecognizer,
            SgFinRecognizer,
            UsPassportRecognizer,
            UsSsnRecognizer,
        )
    ]

    def scan(text: str) -> Iterator[Found]:
        results = [
            result
            for recogniser in made
            for result in recogniser.analyze(text, recogniser.supported_entities, None) or ()
            if result.score >= LEAST_SCORE
        ]
        results.sort(key=lambda result: (-result.score, result.start - result.end, result.start))
        kept: list[Found] = []
        for result in results:
            if all(result.end <= start or result.start >= end for _, start, end in kept):
                kept.append((NAMES[result.entity_type], result.start, result.end))
        return iter(kept)

    return scan
