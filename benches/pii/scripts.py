"""Sentences of twelve scripts right around a value, without a space between, and numbers that are nobody's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random

from benches.pii.documents import SEED, Document
from benches.pii.values import MAKERS

# Types that are told by a check digit or by their own shape, so that no word of any language is needed.
BY_SHAPE = ("credit_card", "iban", "email", "ip_address", "mac_address", "api_key", "crypto_address", "resident_id")


@dataclass(frozen=True, slots=True)
class Script:
    """Sentences of one script: {} is the value."""

    plain: tuple[str, ...]
    phone: tuple[str, ...]
    password: tuple[str, ...]
    # {n} is a number of things.
    numbers: tuple[str, ...]


SCRIPTS: Mapping[str, Script] = {
    "han": Script(
        ("请记下{}谢谢", "我的是{}已经登记了", "客户留了{}给我们"),
        ("电话{}随时", "手机号码是{}请联系"),
        ("密码：{}请保密", "登录密码是{}别告诉别人"),
        ("仓库里有{n}件商品", "第{n}页的图表", "总共卖了{n}张票"),
    ),
    "kana": Script(
        ("これは{}です", "お客様の{}を登録しました", "メモには{}と書いてある"),
        ("電話は{}です", "携帯番号{}まで"),
        ("パスワードは{}です", "パスワード：{}を使う"),
        ("在庫は{n}個です", "全部で{n}円でした", "{n}ページまで読んだ"),
    ),
    "hangul": Script(
        ("여기는{}입니다", "고객이{}를남겼다", "메모에{}라고적혀있다"),
        ("전화는{}입니다", "휴대폰{}로연락"),
        ("비밀번호는{}입니다", "비밀번호:{}를사용"),
        ("재고는{n}개입니다", "모두{n}원이었다", "{n}쪽까지읽었다"),
    ),
    "thai": Script(
        ("นี่คือ{}ครับ", "ลูกค้าให้{}ไว้", "จดว่า{}แล้ว"),
        ("โทร{}ครับ", "เบอร์มือถือ{}ติดต่อได้"),
        ("รหัสผ่าน:{}อย่าบอกใคร", "รหัสผ่านคือ{}ครับ"),
        ("มีสินค้า{n}ชิ้น", "อ่านถึงหน้า{n}แล้ว", "รวม{n}บาท"),
    ),
    "cyrillic": Script(
        ("Запишите{}пожалуйста", "это{}клиента", "он оставил:{}и ушёл"),
        ("телефон{}звоните", "Звоните на номер {}после шести"),
        ("пароль:{} никому", "Пароль: {}"),
        ("на складе{n}штук", "страница{n}отчёта", "всего{n}рублей"),
    ),
    "greek": Script(
        ("σημείωσε{}παρακαλώ", "είναι{}του πελάτη", "έγραψε:{}και έφυγε"),
        ("τηλέφωνο{}πάντα", "Το κινητό είναι {}μετά τις έξι"),
        ("κωδικός:{} κρυφός", "Κωδικός πρόσβασης: {}"),
        ("υπάρχουν{n}κομμάτια", "σελίδα{n}της έκθεσης", "σύνολο{n}ευρώ"),
    ),
    "arabic": Script(
        ("سجل{}من فضلك", "هذا{}للعميل", "كتب:{}ثم خرج"),
        ("هاتف{}دائما", "رقم الجوال {}بعد السادسة"),
        ("كلمة المرور:{} سرية", "كلمة السر: {}"),
        ("يوجد{n}قطعة", "صفحة{n}من التقرير", "المجموع{n}دينار"),
    ),
    "hebrew": Script(
        ("רשום{}בבקשה", "זה{}של הלקוח", "הוא כתב:{}והלך"),
        ("טלפון{}תמיד", "הנייד שלי {}אחרי שש"),
        ("סיסמה:{} סודית", "הסיסמה: {}"),
        ("יש{n}יחידות", "עמוד{n}של הדוח", "סך הכל{n}שקלים"),
    ),
    "devanagari": Script(
        ("कृपया{}लिखें", "यह{}ग्राहक का है", "उसने लिखा:{}और गया"),
        ("फोन{}कभी भी", "मोबाइल नंबर {}शाम को"),
        ("पासवर्ड:{} गुप्त", "पासवर्ड: {}"),
        ("स्टॉक में{n}नग", "पृष्ठ{n}पढ़ा", "कुल{n}रुपये"),
    ),
    "bengali": Script(
        ("দয়া করে{}লিখুন", "এটা{}গ্রাহকের", "সে লিখেছে:{}এবং গেল"),
        ("ফোন{}যেকোনো সময়", "মোবাইল নম্বর {}সন্ধ্যায়"),
        ("পাসওয়ার্ড:{} গোপন", "পাসওয়ার্ড: {}"),
        ("স্টকে{n}টি আছে", "পৃষ্ঠা{n}পড়া হলো", "মোট{n}টাকা"),
    ),
    "georgian": Script(
        ("ჩაწერე{}გთხოვ", "ეს{}კლიენტისაა", "დაწერა:{}და წავიდა"),
        ("ტელეფონი{}ყოველთვის", "მობილური {}საღამოს"),
        ("პაროლი:{} საიდუმლოა", "პაროლი: {}"),
        ("საწყობშია{n}ცალი", "გვერდი{n}წავიკითხე", "სულ{n}ლარი"),
    ),
    "latin": Script(
        ("noté{}à côté", "là{}écrit", "số{}đã ghi"),
        ("téléphoné{}été", "điện thoại {}được"),
        ("mật khẩu:{} đã đổi", "şifre: {}"),
        ("il y en a là{n}été", "trang{n}đã đọc", "tổng cộng{n}đồng"),
    ),
}


def positives(script: str, count: int, seed: int = SEED) -> Iterator[Document]:
    """For each type ``count`` documents of the script that hold one value of it."""
    random = Random(f"{seed}-{script}")
    sentences = SCRIPTS[script]
    by_type = dict.fromkeys(BY_SHAPE, sentences.plain) | {
        "phone": sentences.phone,
        "credential": sentences.password,
    }
    for name, templates in by_type.items():
        for _ in range(count):
            value = MAKERS[name](random)
            before, after = random.choice(templates).split("{}")
            if name == "email" and script == "latin":
                # An accented letter may be part of an address, so that only a space ends one.
                before, after = f"{before} ", f" {after}"
            yield Document(f"{before}{value}{after}", ((name, len(before), len(before) + len(value)),))


def negatives(script: str, count: int, seed: int = SEED) -> Iterator[Document]:
    """``count`` documents of the script with a number of things."""
    random = Random(f"{seed}-{script}-negatives")
    for _ in range(count):
        number = random.choice([random.randrange(10**7), random.randrange(100), random.randrange(1_000, 100_000)])
        shown = random.choice([f"{number}", f"{number:,}", f"{number / 100:.2f}"])
        yield Document(random.choice(SCRIPTS[script].numbers).replace("{n}", shown))
