"""Signatures: what a delivery proves, and what is refused."""

from __future__ import annotations

import hmac

import pytest
from pydantic import TypeAdapter

from astrocyte.config.sources.signatures import HmacAuth, StandardWebhooksAuth, WebhookAuth
from astrocyte.errors import AuthorizationError
from astrocyte.ingest.signatures import verified
from external.webhooks import PLAIN_AUTH, SECRET, STANDARD_AUTH, Sent, body_of, plain, standard

NOW = 1_800_000_000.0
BODY = body_of("Mara plays the oboe.")
AUTHS: TypeAdapter[HmacAuth | StandardWebhooksAuth] = TypeAdapter(WebhookAuth)
PLAIN, STANDARD = AUTHS.validate_python(PLAIN_AUTH), AUTHS.validate_python(STANDARD_AUTH)
TIMELESS = AUTHS.validate_python({"type": "hmac", "secret": SECRET})


def test_the_vector_of_the_specification_of_standard_webhooks_fits() -> None:
    auth = AUTHS.validate_python({"type": "standard_webhooks", "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"})
    headers = {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    assert verified(auth, headers, b'{"test": 2432232314}', 1_614_265_330.0).signed_at == 1_614_265_330


def test_a_signature_counts_with_and_without_its_prefix() -> None:
    sent = plain(BODY, NOW)
    bare = sent.with_header("x-astrocyte-signature", sent.headers["x-astrocyte-signature"].removeprefix("sha256="))
    assert verified(PLAIN, bare.headers, BODY, NOW) == verified(PLAIN, sent.headers, BODY, NOW)


def test_the_same_bytes_are_one_delivery_and_others_are_another() -> None:
    first = verified(PLAIN, plain(BODY, NOW).headers, BODY, NOW)
    assert first == verified(PLAIN, plain(BODY, NOW).headers, BODY, NOW + 5)
    assert first.key != verified(PLAIN, plain(BODY, NOW + 1).headers, BODY, NOW).key
    by_id = [verified(STANDARD, standard(BODY, NOW + late).headers, BODY, NOW) for late in (0, 1)]
    assert by_id[0].key == by_id[1].key
    assert verified(STANDARD, standard(BODY, NOW, "msg_2").headers, BODY, NOW).key != by_id[0].key


def test_the_former_secret_counts_while_it_is_configured() -> None:
    auth = AUTHS.validate_python({"type": "hmac", "secret": "another secret, a new one", "previous_secret": SECRET})
    assert verified(auth, plain(BODY).headers, BODY, NOW).signed_at == 0


@pytest.mark.parametrize("seconds", [-301, 301])
def test_a_time_beyond_the_tolerance_is_refused(seconds: float) -> None:
    for auth, sent in ((PLAIN, plain(BODY, NOW + seconds)), (STANDARD, standard(BODY, NOW + seconds))):
        with pytest.raises(AuthorizationError, match="301 s"):
            verified(auth, sent.headers, BODY, NOW)


@pytest.mark.parametrize(
    ("auth", "sent"),
    [
        (PLAIN, plain(BODY, NOW).without("x-time")),
        (PLAIN, plain(BODY, NOW).with_header("x-time", "1800000001")),
        (PLAIN, plain(BODY, NOW).with_header("x-time", "1_800_000_000")),
        (PLAIN, plain(BODY, NOW).with_header("x-time", "٣")),
        (PLAIN, plain(BODY, NOW).without("x-astrocyte-signature")),
        (PLAIN, plain(BODY, NOW).with_header("x-astrocyte-signature", "sha256=")),
        (PLAIN, plain(BODY, NOW).with_header("x-astrocyte-signature", f"sha1={'0' * 64}")),
        (PLAIN, plain(BODY, NOW, "another secret, not ours")),
        (PLAIN, plain(BODY)),
        (TIMELESS, plain(BODY + b" ")),
        (STANDARD, standard(BODY, NOW, key=b"k" * 24)),
        (STANDARD, standard(BODY, NOW).with_header("webhook-id", "msg_2")),
        (STANDARD, standard(BODY, NOW).with_header("webhook-id", "m" * 257)),
        (STANDARD, standard(BODY, NOW).with_header("webhook-timestamp", "1800000001")),
        (STANDARD, standard(BODY, NOW).with_header("webhook-signature", "v1,not base64")),
        (STANDARD, standard(BODY, NOW).with_header("webhook-signature", "v2,AAAA")),
        (STANDARD, plain(BODY, NOW)),
    ],
)
def test_what_is_not_signed_is_refused(auth: HmacAuth | StandardWebhooksAuth, sent: Sent) -> None:
    with pytest.raises(AuthorizationError):
        verified(auth, sent.headers, BODY, NOW)


def test_signatures_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[bytes, bytes]] = []

    def compare(left: bytes, right: bytes) -> bool:
        compared.append((left, right))
        return left == right

    monkeypatch.setattr(hmac, "compare_digest", compare)
    auth = AUTHS.validate_python({**STANDARD_AUTH, "previous_secret": STANDARD_AUTH["secret"]})
    sent = standard(BODY, NOW)
    many = sent.with_header("webhook-signature", f"{sent.headers['webhook-signature']} v1,AAAA v1a,xx")
    verified(auth, many.headers, BODY, NOW)
    # Each key with each signature, whichever fits.
    assert len(compared) == 4
