"""Words that stand before a colon, and whether they can name a speaker."""

from __future__ import annotations

import re

from astrocyte.pipelines.index.turn_kinds import ROLES


def _words(text: str) -> frozenset[str]:
    return frozenset(word.replace("_", " ") for word in text.split())


# Names of those parts that only a heading or a tag makes one: "### Response".
TAGGED_ROLES = ROLES | _words("instruction input response output prompt completion question answer")
# Begin a section of minutes or notes: the turn before them ends.
SECTIONS = _words(
    """
    abstract action action_item action_items actions agenda agenda_item agreed agreement aims any_other_business
    aob appendix apologies approval attendance attendees background chapter closing conclusion conclusions
    contents date decision decisions discussion duration executive_summary figure findings follow-up follow-ups
    goals highlights introduction item items key_points key_takeaways location meeting minutes motion motions
    next_meeting next_steps notes objectives open_questions outcome outcomes overview owner owners participants
    place present purpose recap recommendations references resolution resolutions result results room schedule
    section status subject summary table takeaways task tasks time timeline title to-do to-dos todo todos topic
    topics venue vote votes beschluss beschlüsse aufgaben anwesend anwesende datum ergebnis ergebnisse fazit
    inhalt ort protokoll tagesordnung teilnehmer teilnehmende thema themen uhrzeit zusammenfassung
    nächste_schritte besprechung conclusions_générales décision décisions ordre_du_jour présents présentes
    résumé lieu heure sujet prochaines_étapes compte_rendu participantes acuerdos asistentes conclusiones
    conclusión decisiones decisión fecha hora lugar resumen tema temas próximos_pasos orden_del_día conclusione
    conclusioni data decisione decisioni luogo ora ordine_del_giorno presenti riassunto riepilogo conclusão
    conclusões decisão decisões local pauta resumo próximos_passos besluit besluiten conclusie samenvatting
    aanwezig вывод выводы дата итог итоги место повестка повестка_дня присутствовали решение решения тема
    участники время заключение 议题 议程 结论 决定 总结 摘要 日期 时间 地点 参会人员 出席者 参加者 日時 場所
    議題 結論 決定 決定事項 まとめ 要約 概要 안건 결론 결정 요약 일시 장소 참석자 الخلاصة الخاتمة القرار
    القرارات التاريخ المكان الحضور الموضوع جدول_الأعمال סיכום החלטה החלטות תאריך מקום נוכחים निष्कर्ष निर्णय सारांश दिनांक
    स्थान
    """
)
# Begin a remark, an address or a field inside a turn.
REMARKS = _words(
    """
    addendum address advice alert amount attention attn bcc bug caution caveat cc cf comment comments context
    contact cost correction danger default deadline definition description details disclaimer edit email e-mail
    e.g eg error errors etc event example examples exception expected fact faq fax file files fixme footnote
    for_example formula from ftp fwd hint hints http https i.e ie important info information input keyword
    keywords language legend level link links list mail mailto message method mode name nb n.b nota_bene note
    number objective option options output password phone plan points price priority problem pros cons prompt ps
    p.s pps quantity quote quotes re reason reasons reference regards reminder remark remarks requirement
    requirements response rule rules score see sender sent signature sincerely solution source sources spoiler
    step steps tel telephone tip tips to translation type update updated url usage value version via warning
    warnings website why_not xkcd achtung anmerkung an beispiel betreff frage_1 hinweis hinweise beachte von
    wichtig tipp warnung zitat nachtrag grund preis quelle vorschlag astuce attention_à avertissement cite
    citation exemple important_à objet par_exemple remarque remarques à de pièce_jointe advertencia asunto
    atención aviso ejemplo importante nota notas por_ejemplo para attenzione avviso avvertenza esempio oggetto
    per_esempio importante_a atenção assunto exemplo observação obs aviso_a let_op opmerking onderwerp voorbeeld
    uwaga przykład ważne obs! anm bemærk huom dikkat örnek not важно внимание замечание например от кому пример
    примечание примечания тема_письма 注意 注 時間 时间 备注 備註 備考 例 例如 例えば 重要 提示 警告 参考 說明
    说明 补充 補足 メモ 件名 発信者 宛先 原因 理由 참고 주의 예 중요 비고 تنبيه ملاحظة ملاحظات مثال مهم هام من
    إلى הערה שימו_לב דוגמה חשוב नोट ध्यान_दें उदाहरण महत्वपूर्ण
    """
)
LABELS = SECTIONS | REMARKS
# Begin a clause, not a name. An office is a name: "The Chair".
FUNCTION_WORDS = _words(
    """
    a an the this that these those my your his her its our their we they he she it i'm we're in on at by to for
    from with of as if so then when while where what which who how why and or but because since until after
    before during about first second third finally also next last another one two three some any all no yes not
    there here please let is are was were be been do does did have has had can could would should might must
    just only even der die das ein eine im am um zu für mit von und oder aber weil wenn als es wir ihr sie ich
    mein unser le la les un une des au aux pour avec et ou mais si quand nous vous ils elles mon notre il el los
    las una para con y pero cuando nosotros mi nuestro es il lo gli per con e ma quando noi mio nostro o os as
    um uma para com mas quando и в на с по но если когда мы вы они это что как для
    """
)
OFFICES = _words(
    """
    chair chairman chairwoman chairperson clerk coroner court defendant director interpreter interviewer judge
    mayor moderator narrator officer presenter president presiding_officer prosecutor reporter secretary speaker
    witness vorsitzende vorsitzender präsident präsidentin président présidente
    """
)
PARTICLES = _words(
    "de del della der den di da do dos das du la le el al bin ibn bint van von zu zur ter ten y e i san af av ap ben "
    "und and of the"
)
# Stand before a number, and then name a place in a text: "Step 2".
NUMBERED = _words(
    """
    act annex article appendix at book case chapter clause class column day episode exhibit exercise example
    figure grade group hour in issue item lesson level line module month note on option order page paragraph
    part phase point problem quarter question q rule round row scene season section session slide stage step
    table task team topic track unit update version volume week year kapitel abschnitt teil tag woche schritt
    punkt top seite chapitre partie jour étape page capítulo parte día paso capitolo passo giorno глава часть
    день шаг пункт
    """
)
# The most words and characters of a name.
NAME_WORDS = 5
NAME_CHARS = 48
# Names without spaces, in scripts that have none, are shorter.
UNSPACED_NAME_CHARS = 12
UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
# Grammatical particles that names of these scripts do not hold.
UNSPACED_GRAMMAR = re.compile(r"[のを的是]")
FIRST = re.compile(r"[^\W\d]")
# One word, with the signs that nicknames have.
HANDLE = re.compile(r"[^\s!\"$%&()*+,/:;<=>?@\u2026\u3001\u3002\u060c\u061f\u201c\u201d\u00ab\u00bb]+")


def is_label(name: str) -> bool:
    """True if a name is a known heading or remark, with or without a number behind it."""
    folded = " ".join(name.casefold().split()).strip(".")
    if folded in LABELS:
        return True
    word, _, rest = folded.rpartition(" ")
    return bool(word) and rest.rstrip(".)").isnumeric() and (word in LABELS or word in NUMBERED)


def is_name(name: str) -> bool:
    """True if a text before a colon looks like the name of a speaker.

    Known headings and remarks, clauses, places in a text, and what begins with a digit do not.
    """
    words = name.split()
    if not 0 < len(words) <= NAME_WORDS or len(name) > NAME_CHARS or not FIRST.match(name) or is_label(name):
        return False
    if UNSPACED.search(name):
        return len(name) <= UNSPACED_NAME_CHARS * len(words) and not UNSPACED_GRAMMAR.search(name)
    first = words[0].casefold()
    if len(words) == 1:
        return HANDLE.fullmatch(name) is not None and (first not in FUNCTION_WORDS or name.isupper())
    if first == "the" and " ".join(words[1:]).casefold() in OFFICES:
        return True
    return first not in FUNCTION_WORDS and all(_is_name_word(word) for word in words)


def is_short(name: str) -> bool:
    """True if a text is short enough for a name, if nothing else speaks against it."""
    words = name.split()
    return (
        0 < len(words) <= NAME_WORDS - 2
        and len(name) <= NAME_CHARS
        and not is_label(name)
        and words[0].casefold() not in FUNCTION_WORDS
    )


def _is_name_word(word: str) -> bool:
    """A capitalised word, one of a script without capitals, a number, or a particle."""
    return not word[0].islower() or word.casefold() in PARTICLES or word.startswith(("d'", "d\u2019", "o'"))
