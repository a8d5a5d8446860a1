import base64

import pytest

from astrocyte.errors import ValidationError
from astrocyte.policy.requests.page_tokens import decode_token, encode_token

SCOPE = ("memories", "tenant", 7, ("a",), None)


def test_a_token_gives_its_place_back() -> None:
    assert decode_token(encode_token(SCOPE, [3, 4]), SCOPE, int, 2) == [3, 4]
    assert decode_token(encode_token(SCOPE, ["bank-1"]), SCOPE, str, 1) == ["bank-1"]


@pytest.mark.parametrize(
    "other", [("memories", "tenant", 8, ("a",), None), ("memories", "tenant", 7, (), None), ("x",)]
)
def test_a_token_of_another_list_is_refused(other: tuple[object, ...]) -> None:
    with pytest.raises(ValidationError, match="another list") as caught:
        decode_token(encode_token(SCOPE, [3, 4]), other, int, 2)
    assert caught.value.field == "page_token"


@pytest.mark.parametrize(
    "token",
    [
        "x",
        "%%%",
        "é",
        "x" * 5_000,
        base64.urlsafe_b64encode(b"{}").decode(),
        base64.urlsafe_b64encode(b"[]").decode(),
        base64.urlsafe_b64encode(b"[" * 500).decode(),
        base64.urlsafe_b64encode(b'["digest"]').decode(),
        encode_token(SCOPE, [3, 4, 5]),
        encode_token(SCOPE, ["3", "4"]),
        encode_token(SCOPE, [3, True]),
        encode_token(SCOPE, [3, 4])[:-3],
    ],
)
def test_a_token_that_is_none_of_ours_is_refused(token: str) -> None:
    with pytest.raises(ValidationError) as caught:
        decode_token(token, SCOPE, int, 2)
    assert caught.value.field == "page_token"
