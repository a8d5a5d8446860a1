"""Chats as JSON documents: ChatGPT, Claude, Slack, Discord and Telegram, and exports of mem0 and Zep."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import tzinfo
from functools import partial
from typing import Any

from astrocyte.cli.portability.sources.entries import Entry, SourcePath, document, each, files_in, moment
from astrocyte.model import RetainItem

MENTION = re.compile(r"<@([A-Z0-9]+)(?:\|[^>]*)?>")
ROLES = {"human": "user"}


def chatgpt(data: Any, zone: tzinfo | None) -> Iterator[Entry]:
    """The conversations of a ChatGPT export, each along its last branch."""
    yield from each(data, "conversation", partial(_chatgpt, zone))


def _chatgpt(zone: tzinfo | None, _: int, conversation: Any) -> Iterator[Entry]:
    nodes = conversation["mapping"]
    branch: list[Any] = []
    node = nodes.get(conversation.get("current_node"))
    # A branch has at most as many nodes as there are: a circle ends.
    while node is not None and len(branch) <= len(nodes):
        branch.append(node.get("message"))
        node = nodes.get(node.get("parent"))
    session = str(conversation.get("id") or conversation.get("conversation_id") or conversation.get("title"))
    for message in reversed(branch):
        if message and message["author"]["role"] in {"user", "assistant"}:
            texts = [part for part in (message.get("content") or {}).get("parts") or () if isinstance(part, str)]
            yield from _turn(
                f"conversation {session}",
                "\n".join(texts),
                speaker=message["author"]["role"],
                session=session,
                time=message.get("create_time"),
                zone=zone,
                source="chatgpt",
                title=conversation.get("title"),
            )


def claude(data: Any, zone: tzinfo | None) -> Iterator[Entry]:
    """The conversations of a Claude export."""
    yield from each(data, "conversation", partial(_claude, zone))


def _claude(zone: tzinfo | None, _: int, conversation: Any) -> Iterator[Entry]:
    session = str(conversation["uuid"])
    for message in conversation["chat_messages"] or ():
        blocks = [block.get("text") or "" for block in message.get("content") or () if block.get("type") == "text"]
        yield from _turn(
            f"conversation {session}",
            message.get("text") or "\n".join(blocks),
            speaker=ROLES.get(message["sender"], message["sender"]),
            session=session,
            time=message.get("created_at"),
            zone=zone,
            source="claude",
            title=conversation.get("name"),
        )


def slack(folder: SourcePath, zone: tzinfo | None) -> Iterator[Entry]:
    """The channels of a Slack export: a folder for each channel, with a file for each day."""
    names = {user["id"]: _slack_name(user) for user in document(folder / "users.json")}
    for _, path in files_in(folder, "*/*.json"):
        place = f"{path.parent.name}/{path.name}"
        try:
            day = document(path)
        except ValueError as error:
            yield Entry(place, None, str(error))
            continue
        # Other files lie beside the days, such as those of canvases.
        if isinstance(day, list):
            yield from each(day, f"{place}, message", partial(_slack, path, names, zone))


def _slack(
    path: SourcePath, names: Mapping[str, str], zone: tzinfo | None, number: int, message: Any
) -> Iterator[Entry]:
    # Messages of programs about the channel, such as who joined, have a subtype.
    if message.get("type") != "message" or message.get("subtype") not in {None, "thread_broadcast"}:
        return
    channel = path.parent.name
    text = MENTION.sub(lambda found: f"@{names.get(found[1], found[1])}", message.get("text") or "")
    user = message.get("user") or ""
    yield from _turn(
        f"{channel}/{path.name}, message {number}",
        text,
        speaker=names.get(user, user),
        session=f"{channel}/{message['thread_ts']}" if message.get("thread_ts") else f"{channel}/{path.stem}",
        time=message.get("ts"),
        zone=zone,
        source=f"slack:{channel}",
    )


def discord(data: Any, zone: tzinfo | None) -> Iterator[Entry]:
    """A channel of DiscordChatExporter."""
    channel = str(data["channel"].get("name") or data["channel"]["id"])
    yield from each(data["messages"], "message", partial(_discord, channel, zone))


def _discord(channel: str, zone: tzinfo | None, _: int, message: Any) -> Iterator[Entry]:
    author = message["author"]
    yield from _turn(
        f"message {message['id']}",
        message.get("content") or "",
        speaker=author.get("nickname") or author["name"],
        session=f"{channel}/{str(message['timestamp'])[:10]}",
        time=message["timestamp"],
        zone=zone,
        source=f"discord:{channel}",
    )


def telegram(data: Any, zone: tzinfo | None) -> Iterator[Entry]:
    """A chat of Telegram Desktop, or all of them."""
    chats = (data["chats"] or {}).get("list") or () if "chats" in data else [data]
    yield from each(chats, "chat", partial(_telegram_chat, zone))


def _telegram_chat(zone: tzinfo | None, _: int, chat: Any) -> Iterator[Entry]:
    name = str(chat.get("name") or chat.get("id"))
    yield from each(chat["messages"], f"{name}, message", partial(_telegram, name, zone))


def _telegram(name: str, zone: tzinfo | None, _: int, message: Any) -> Iterator[Entry]:
    if message.get("type") == "message":
        yield from _turn(
            f"{name}, message {message.get('id')}",
            _telegram_text(message.get("text")),
            speaker=message.get("from"),
            session=f"{name}/{str(message['date'])[:10]}",
            time=message.get("date_unixtime") or message["date"],
            zone=zone,
            source=f"telegram:{name}",
        )


def mem0(data: Any, zone: tzinfo | None) -> Iterator[Entry]:
    """The memories of a mem0 export."""
    yield from each(data["results"] if isinstance(data, dict) else data, "memory", partial(_mem0, zone))


def _mem0(zone: tzinfo | None, number: int, one: Any) -> Iterator[Entry]:
    metadata = {key: value for key, value in (one.get("metadata") or {}).items() if _is_scalar(value)}
    names = {key: one[key] for key in ("user_id", "agent_id", "run_id") if one.get(key)}
    identity = {"id": str(one["id"]), **names, **metadata}
    yield from _fact(f"memory {number}", one["memory"], identity, one.get("created_at"), zone, "mem0")


def zep(data: Any, zone: tzinfo | None) -> Iterator[Entry]:
    """The messages and facts of a Zep export."""
    yield from each(data.get("messages") or (), "message", partial(_zep_message, zone, data.get("session_id")))
    yield from each(data.get("facts") or data.get("edges") or (), "fact", partial(_zep_fact, zone))


def _zep_message(zone: tzinfo | None, session: str | None, number: int, message: Any) -> Iterator[Entry]:
    yield from _turn(
        f"message {number}",
        message["content"],
        speaker=message.get("name") or message.get("role") or message.get("role_type"),
        session=session or message.get("session_id"),
        time=message.get("created_at"),
        zone=zone,
        source="zep",
    )


def _zep_fact(zone: tzinfo | None, number: int, fact: Any) -> Iterator[Entry]:
    time = fact.get("valid_at") or fact.get("created_at")
    yield from _fact(f"fact {number}", fact["fact"], {"id": str(fact["uuid"])}, time, zone, "zep")


def _turn(
    place: str,
    text: object,
    *,
    speaker: str | None,
    session: str | None,
    time: object,
    zone: tzinfo | None,
    source: str,
    title: str | None = None,
) -> Iterator[Entry]:
    """A turn of a chat; none for an empty one, such as a picture without a text."""
    if not isinstance(text, str):
        yield Entry(place, None, f"expected text, got {type(text).__name__}")
        return
    if not text.strip():
        return
    try:
        when = None if time is None else moment(time, zone)
    except ValueError as error:
        yield Entry(place, None, str(error))
        return
    metadata = {"title": title[:250]} if title else {}
    yield Entry(
        place,
        RetainItem(
            text,
            content_type="conversation",
            speaker=_label(speaker),
            session_id=_label(session),
            occurred_at=when,
            source=_label(source),
            metadata=metadata,
        ),
    )


def _fact(
    place: str, text: object, metadata: Mapping[str, Any], time: object, zone: tzinfo | None, source: str
) -> Iterator[Entry]:
    if not isinstance(text, str):
        yield Entry(place, None, f"expected text, got {'nothing' if text is None else type(text).__name__}")
        return
    try:
        when = None if time is None else moment(time, zone)
    except ValueError as error:
        yield Entry(place, None, str(error))
        return
    yield Entry(place, RetainItem(text, metadata=metadata, occurred_at=when, source=source))


def _slack_name(user: Mapping[str, Any]) -> str:
    profile = user.get("profile") or {}
    return str(profile.get("display_name") or profile.get("real_name") or user.get("name") or user["id"])


def _telegram_text(text: Any) -> str:
    if isinstance(text, str):
        return text
    return "".join(part if isinstance(part, str) else str(part.get("text", "")) for part in text or ())


def _label(value: str | None) -> str | None:
    """A name as a memory can have it: on one line, not too long."""
    return " ".join(str(value).split())[:200] or None if value else None


def _is_scalar(value: object) -> bool:
    return value is None or isinstance(value, (str, int, float, bool))
