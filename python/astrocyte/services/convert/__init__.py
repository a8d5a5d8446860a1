"""Wire messages to domain values and back: pure, in both directions, for server and client alike.

``decode_x`` makes a domain value of a message and raises `ValidationError` with the path of what cannot be read;
``encode_x`` makes a message of a domain value and raises `Refused`, or whatever protobuf raises, for a value that the
wire cannot carry: `refuse` says which. What is None in the domain is unset or empty on the wire. Answers with hits are
made into bytes at once, because their hits may never have been a message.
"""

from astrocyte.services.convert.access import (
    decode_access_check,
    decode_api_key,
    decode_create_api_key,
    decode_grant,
    decode_permission,
    decode_permissions,
    encode_access_check,
    encode_api_key,
    encode_create_api_key,
    encode_grant,
    encode_permissions,
)
from astrocyte.services.convert.bank import (
    decode_bank,
    decode_bank_stats,
    decode_bank_template,
    decode_server_info,
    encode_bank,
    encode_bank_stats,
    encode_bank_template,
    encode_server_info,
)
from astrocyte.services.convert.engines import decode_engine, encode_engine
from astrocyte.services.convert.explain import (
    decode_explain_request,
    decode_explain_result,
    encode_explain_request,
    encode_explain_result,
)
from astrocyte.services.convert.forget import (
    decode_change,
    decode_forget_result,
    decode_selector,
    encode_change,
    encode_forget_request,
    encode_forget_result,
)
from astrocyte.services.convert.governance import (
    decode_audit_page,
    decode_hold,
    encode_audit_page,
    encode_hold,
)
from astrocyte.services.convert.memory import (
    decode_item,
    decode_memory,
    decode_retain_result,
    decode_update,
    encode_item,
    encode_memory,
    encode_retain_request,
    encode_retain_result,
    encode_update_request,
)
from astrocyte.services.convert.multi_bank import decode_bank_group, encode_bank_group
from astrocyte.services.convert.operations import (
    decode_operation,
    decode_timeout,
    encode_operation,
    encode_timeout,
)
from astrocyte.services.convert.recall import (
    decode_history_query,
    decode_history_result,
    decode_query,
    decode_recall_result,
    encode_history_request,
    encode_history_result,
    encode_query,
    encode_recall_result,
    encode_recall_results,
)
from astrocyte.services.convert.reflect import (
    decode_reflect_query,
    decode_reflect_result,
    encode_reflect_query,
    encode_reflect_result,
)
from astrocyte.services.convert.values import Refused, refuse

__all__ = [
    "Refused",
    "decode_access_check",
    "decode_api_key",
    "decode_audit_page",
    "decode_bank",
    "decode_bank_group",
    "decode_bank_stats",
    "decode_bank_template",
    "decode_change",
    "decode_create_api_key",
    "decode_engine",
    "decode_explain_request",
    "decode_explain_result",
    "decode_forget_result",
    "decode_grant",
    "decode_history_query",
    "decode_history_result",
    "decode_hold",
    "decode_item",
    "decode_memory",
    "decode_operation",
    "decode_permission",
    "decode_permissions",
    "decode_query",
    "decode_recall_result",
    "decode_reflect_query",
    "decode_reflect_result",
    "decode_retain_result",
    "decode_selector",
    "decode_server_info",
    "decode_timeout",
    "decode_update",
    "encode_access_check",
    "encode_api_key",
    "encode_audit_page",
    "encode_bank",
    "encode_bank_group",
    "encode_bank_stats",
    "encode_bank_template",
    "encode_change",
    "encode_create_api_key",
    "encode_engine",
    "encode_explain_request",
    "encode_explain_result",
    "encode_forget_request",
    "encode_forget_result",
    "encode_grant",
    "encode_history_request",
    "encode_history_result",
    "encode_hold",
    "encode_item",
    "encode_memory",
    "encode_operation",
    "encode_permissions",
    "encode_query",
    "encode_recall_result",
    "encode_recall_results",
    "encode_reflect_query",
    "encode_reflect_result",
    "encode_retain_request",
    "encode_retain_result",
    "encode_server_info",
    "encode_timeout",
    "encode_update_request",
    "refuse",
]
