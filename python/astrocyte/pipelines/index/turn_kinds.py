"""Kinds of turns of conversations, by their words alone: questions, and what is about the one to whom it is said."""

from __future__ import annotations

import re


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Names of the parts of a conversation with a language model, in upper or lower case.
ROLES = _words(
    """
    user assistant system human ai bot chatbot agent customer client developer model tool function gpt chatgpt
    claude gemini copilot llm me you usuario usuaria asistente utilisateur utilisatrice benutzer nutzer
    assistent utente assistente usuário gebruiker användare użytkownik asystent kullanıcı asistan пользователь
    ассистент помощник бот 用户 助手 系统 ユーザー アシスタント システム 사용자 어시스턴트 시스템 المستخدم
    المساعد النظام משתמש עוזר उपयोगकर्ता सहायक
    """
)
# A turn of more characters says more than it asks.
SHORT = 200
QUESTION_END = re.compile(r"[?\u061f\uff1f][\"')\]\u201d\u2019]*\s*\Z")
# "I'm" and "you've" begin with these words too.
FIRST_PERSON = re.compile(r"\b(?:i|my|me|mine|myself|we|our|ours|us)\b", re.IGNORECASE)
SECOND_PERSON = re.compile(r"\byou(?:r|rs|rself)?\b", re.IGNORECASE)


def is_question(text: str) -> bool:
    """True if a text is short and ends with a question."""
    return len(text) <= SHORT and QUESTION_END.search(text) is not None


def is_address(text: str) -> bool:
    """True if a text speaks of the one to whom it is said, and not of its speaker."""
    return SECOND_PERSON.search(text) is not None and FIRST_PERSON.search(text) is None


def is_role(name: str) -> bool:
    """True if a name is a role in a conversation with a language model."""
    return name.casefold() in ROLES
