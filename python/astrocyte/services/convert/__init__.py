"""Domain values to wire messages and back: pure, in both directions, for server and client alike.

`codec_of` gives the codec of a domain class for a class of messages, `codec_of_rpc` that of an RPC.
"""

from astrocyte.services.convert.codec import Codec, codec_of
from astrocyte.services.convert.memory import ITEMS
from astrocyte.services.convert.recall import encode_history_result, encode_recall_result, encode_recall_results
from astrocyte.services.convert.rpcs import RETAIN_RESULTS, RpcCodec, codec_of_rpc, descriptor_of
from astrocyte.services.convert.values import Refused, encoding, refuse

__all__ = [
    "ITEMS",
    "RETAIN_RESULTS",
    "Codec",
    "Refused",
    "RpcCodec",
    "codec_of",
    "codec_of_rpc",
    "descriptor_of",
    "encode_history_result",
    "encode_recall_result",
    "encode_recall_results",
    "encoding",
    "refuse",
]
