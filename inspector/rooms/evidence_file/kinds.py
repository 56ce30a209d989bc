"""The kinds of terms that are recognized by their form and masked, such as card numbers. Names of
people have no such form, so they are not recognized.

Each kind has a pattern for the normal form of a text (see `normal`), and a check of each match,
such as the check digits of a card. docs/masks.md lists what each kind finds, as measured by tests.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from ipaddress import ip_address
from typing import NamedTuple

from chatmemory.patterns import declared_pattern

_HEXADECIMAL = frozenset("0123456789abcdefABCDEF-")


class Kind(NamedTuple):
    """A kind of terms that can be masked, such as email addresses.

    `pattern` finds candidates, and `is_term` decides whether a candidate is a term. `group` is the
    regex group whose text is masked, such as the number after a label. If this group is not part of
    a match, the whole match is masked.
    """

    pattern: re.Pattern[str]
    is_term: Callable[[re.Match[str]], bool] = lambda found: True
    group: int | str = 0


def _digits(text: str) -> str:
    return "".join(filter(str.isdecimal, text))


def _has_check_digit(found: re.Match[str]) -> bool:
    """Return whether digits can be the number of a payment card, by the Luhn algorithm."""
    return _is_luhn(_digits(found[0]))


def _is_luhn(text: str) -> bool:
    digits = [int(each) for each in text][::-1]
    doubled = [n if place % 2 == 0 else sum(divmod(2 * n, 10)) for place, n in enumerate(digits)]
    return sum(doubled) % 10 == 0 and len(set(digits)) > 1


def _is_iban(found: re.Match[str]) -> bool:
    """Return whether the check number of an IBAN is right (ISO 13616). Words after the IBAN are
    ignored.
    """
    signs = "".join(filter(str.isalnum, found[0])).upper()
    return any(_remainder(signs[:end]) == 1 for end in range(len(signs), 14, -1))


def _remainder(signs: str) -> int:
    return int("".join(str(int(each, 36)) for each in signs[4:] + signs[:4])) % 97


def _is_address(found: re.Match[str]) -> bool:
    try:
        ip_address(found[0])
    except ValueError:
        return False
    return any(map(str.isdecimal, found[0]))


def _is_place(found: re.Match[str]) -> bool:
    return found[1] is None or (abs(float(found[1])) <= 90 and abs(float(found[2])) <= 180)


def _is_random(found: re.Match[str]) -> bool:
    """Return whether characters look random, as in a key: 20 or more, mixed letters and digits, and
    not hexadecimal.
    """
    signs = found[0].strip("-_./+=")
    has_all = all(any(map(is_of, signs)) for is_of in (str.islower, str.isupper, str.isdecimal))
    if len(signs) < 20 or not has_all or _HEXADECIMAL.issuperset(signs):
        return False
    sorts = [_sort_of(each) for each in signs if each.isalnum()]
    changes = sum(map(str.__ne__, sorts, sorts[1:])) / len(sorts)
    counts = Counter(signs).values()
    entropy = -sum(n / len(signs) * math.log2(n / len(signs)) for n in counts)
    return changes > 0.3 and entropy > 3.5


def _sort_of(sign: str) -> str:
    return "0" if sign.isdecimal() else "A" if sign.isupper() else "a" if sign.islower() else "-"


def _is_national(found: re.Match[str]) -> bool:
    """Return whether a match can be a national ID: its check digits are right, or it follows a
    label and is long enough.
    """
    if found["labelled"]:
        signs = sum(map(str.isalnum, found["labelled"]))
        return signs >= 5 and len(_digits(found["labelled"])) >= 3
    if found["cn"]:
        weighed = (int(n) * 2 ** (17 - i) for i, n in enumerate(found["cn"][:17]))
        return "10X98765432"[sum(weighed) % 11] == found["cn"][-1].upper()
    if found["nordic"]:
        return _is_luhn(_digits(found["nordic"]))
    if found["dni"]:
        first = str("XYZ".find(found["dni"][0].upper())).replace("-1", "")
        number = int(first + _digits(found["dni"]))
        return "TRWAGMYFPDXBNJZSQVHLCKE"[number % 23] == found["dni"][-1].upper()
    if found["cpf"]:
        return _is_cpf(_digits(found["cpf"]))
    if found["nir"]:
        digits = _digits(found["nir"])
        return 97 - int(digits[:13]) % 97 == int(digits[13:])
    return True


def _is_cpf(digits: str) -> bool:
    for end in (9, 10):
        total = sum(int(n) * (end + 1 - i) for i, n in enumerate(digits[:end]))
        if (total * 10 % 11) % 10 != int(digits[end]):
            return False
    return len(set(digits)) > 1


def _is_phone(found: re.Match[str]) -> bool:
    count = len(_digits(found[0]))
    if found["labelled"]:
        return 7 <= len(_digits(found["labelled"])) <= 15
    if found["local"]:
        return 9 <= count <= 12
    return 7 <= count <= 15


_NAMED = (
    r"pass(?:word|wd|phrase|code)|pwd|kennwort|passwort|contrasen\u0303?a|mot de passe"
    r"|(?:client|api|app|shared)?[ _-]?secret|(?:api|access|private|account)[ _-]?key"
    r"|(?:auth|access|refresh|id|csrf)?[ _-]?token|bearer|session[ _-]?(?:id|key|token)|s(?:ess)?id"
)
_MONTH = (
    (
        r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mär|mai|okt|dez|ene|abr|ago|dic|fév|avr"
        r"|juin|juil|aou|déc|gen|mag|giu|lug|set|ott|fev|out|mei|maa|maj|stycz|lut|kwie|czerw|lip|sierp"
        r"|wrze|paz|pa\u017a|listop|grud|янв|фев|мар|апр|мая|июн|июл|авг|сен|окт|ноя|дек)[^\W\d_]{0,8}"
    )
    .replace("ä", "a\u0308?")
    .replace("é", "e\u0301?")
)
_DATE = (
    r"[0-9]{1,4}[-/. ][0-9]{1,2}[-/. ][0-9]{2,4}"
    rf"|[0-9]{{1,2}}(?:st|nd|rd|th|\.)? (?:of |de )?{_MONTH}\.?,? (?:de )?[0-9]{{2,4}}"
    rf"|{_MONTH}\.? [0-9]{{1,2}}(?:st|nd|rd|th)?,? [0-9]{{4}}|{_MONTH},? (?:de |of )?[0-9]{{4}}"
    r"|[0-9]{4}[年년] ?[0-9]{1,2}[月월] ?[0-9]{1,2}[日일]|(?:19|20)[0-9]{6}|(?:18|19|20)[0-9]{2}"
)
_BIRTH = (
    r"born|birth ?(?:day|date)?|date of birth|d\.?o\.?b\.?|geboren|geb\.|geburts(?:tag|datum)"
    r"|nac(?:ido|ida|imiento)|ne\u0301?e?|nato|nata|nascita|naissance|nascimento|nascid[oa]"
    r"|geboorte(?:datum|dag)|urodzon[ya]|urodzenia|fo\u0308?dd|fo\u0308?delsedatum|fødselsdato"
    r"|født|syntynyt|syntyma\u0308?aika|родил(?:ся|ась)|рождения|dog\u0306?um tarihi|生年月日"
    r"|出生日期|생년월일"
)
_LABEL = (
    r"ssn|social security|national id(?:entity)?|national insurance|passport|tax(?:payer)? id"
    r"|tax file|nino|nhs|(?:id|identity) card|itin|dni|nie|nif|cpf|cnpj|rg|curp|bsn|ahv|tfn|cnp"
    r"|cpr|nir|pesel|aadhaar|pan|oib|jmbg|egn|amka|nric|hkid|snils|инн|снилс|medicare"
    r"|steuer-?id|steuernummer|steueridentifikationsnummer|(?:sozial|renten)versicherungsnummer"
    r"|(?:kranken)?versicherten-?(?:nr|nummer)|(?:personal)?ausweis|reisepass|fu\u0308?hrerschein"
    r"|pasaporte|passeport|passaporto|driver'?s licen[cs]e|driving licen[cs]e|permis de conduire"
    r"|carte d'identite\u0301?|carta d'identita\u0300?|codice fiscale"
    r"|se\u0301?curite\u0301? sociale|seguridad social|person(?:al)?nummer|fo\u0308?dselsnummer"
    r"|fødselsnummer|henkilo\u0308?tunnus"
    r"|isikukood|rodne\u0301? c\u030c?i\u0301?slo|kimlik|身份证(?:号码?)?|マイナンバー|주민등록번호"
)
_NUMBERED = (
    r"(?:[ -](?:card|id))?(?:[ -](?:numbers?|no|nr|num|code)\b)?[ .:#=]{0,3}"
    r"(?:(?:is|es|ist|est|e\u0300|was) )?"
)
# Groups of signs with a digit in them, or single letters between such groups
_NUMBERS = (
    r"(?=[\w./+-]{0,14}[0-9])[\w./+-]{1,20}+"
    r"(?: (?=[A-Za-z]{0,3}[0-9])[\w./-]{1,12}+| [A-Za-z](?![^\W_])(?! [a-z])){0,8}"
)

_CALLED = (
    r"(?:tel(?:ephone|efono?|efoon|ef)?|(?:mobile?|cell) ?(?:phone)?|phone|handy|mob|fax|whatsapp"
    r"|sms|rufnummer|landline|(?:my|his|her|our|their) number"
    r"|(?:call|ring|text|reach) (?:me|us|him|her))"
    r"(?:[ .]{0,2}(?:number|no|nr|is|at|on|under)\b){0,2}[ .:=#]{1,3}"
    r"(?![0-9]{4}-[0-9]{2}-[0-9]{2})(?![0-9]{1,2}[./][0-9]{1,2}[./][0-9])"
)
_DEGREES = "[0-9]{1,3}\u00b0 ?[0-9]{1,2}' ?(?:[0-9]{1,2}(?:[.][0-9]{1,6})?(?:\"|'') ?)?"

KINDS: Mapping[str, Kind] = {
    "mail": Kind(
        declared_pattern(
            r"(?<![\w.+%'\u0300-\u036f-])[\w.+%'\u0300-\u036f-]++"
            r"@(?:[\w\u0300-\u036f-]++(?:\.[\w\u0300-\u036f-]++)+|\[[0-9a-fA-F.:]++\])"
        ),
        lambda found: found[0][-1] == "]" or not found[0].rpartition(".")[2].isdecimal(),
    ),
    "URL": Kind(
        declared_pattern(r"(?i)(?<![\w.])(?:(?:https?|ftp|wss?)://|www\.(?=\w))[^\s\"'<>\\]+")
    ),
    "token": Kind(
        declared_pattern(
            rf"(?i:(?<![^\W_])(?:{_NAMED})[\"']?(?: ?[:=] ?|(?: is|: ?is)? )[\"']?)"
            r"(?P<labelled>(?=[^\s\"'<>]{0,99}[0-9])(?=[^\s\"'<>]{0,99}[A-Za-z])[^\s\"'<>]{8,200}+)"
            r"|(?<![\w-])(?:eyJ[\w-]{8,}+\.[\w-]{4,}+(?:\.[\w-]*+)?"
            r"|(?:sk|pk|rk|ghp|gho|ghs|ghu|github_pat|glpat|xox[abeoprs]|hf|npm|pypi|AKIA|ASIA|AIza"
            r"|SG|whsec|shpat|dop_v1|ya29)[-_.]?(?=[\w-]*[0-9])[\w.-]{14,}+"
            r"|(?P<random>[\w+/-]{20,}+={0,2}))"
        ),
        lambda found: found["random"] is None or _is_random(found),
        group="labelled",
    ),
    "iban": Kind(
        declared_pattern(
            r"(?<![A-Za-z0-9])[A-Za-z]{2}[0-9]{2}(?:[ .-]?[A-Z0-9a-z]){11,30}+(?![A-Za-z0-9])"
        ),
        _is_iban,
    ),
    "card": Kind(
        declared_pattern(
            r"(?<![\w-])[0-9](?:[ ./_:,\u00b7\u2013\u2014-]{0,3}[0-9]){12,18}(?![\w-])"
        ),
        _has_check_digit,
    ),
    "national id": Kind(
        declared_pattern(
            r"(?i)(?<![\w-])(?:(?!000|666|9)[0-9]{3}([- .\u2013])(?!00)[0-9]{2}\1(?!0000)[0-9]{4}"
            r"|[A-CEGHJ-PR-TW-Z]{2} ?[0-9]{2} ?[0-9]{2} ?[0-9]{2} ?[A-D]"
            r"|(?P<dni>(?:[0-9]|[XYZ]-?)[0-9]{7}-?[A-Z])|(?P<cpf>[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2})"
            r"|(?P<nir>[12] ?[0-9]{2} ?[0-9]{2} ?[0-9]{2} ?[0-9]{3} ?[0-9]{3} ?[0-9]{2})"
            r"|756\.[0-9]{4}\.[0-9]{4}\.[0-9]{2}"
            r"|[A-Z]{6}[0-9]{2}[A-EHLMPRST][0-9]{2}[A-Z][0-9]{3}[A-Z]"
            r"|[A-Z]{4}[0-9]{6}[HM][A-Z]{5}[A-Z0-9][0-9]"
            r"|(?P<cn>[1-9][0-9]{5}(?:19|20)[0-9]{2}[01][0-9][0-3][0-9]{4}[0-9X])"
            r"|(?P<nordic>[0-9]{6}[-+][0-9]{4}))(?![\w-])"
            rf"|(?i:(?<![^\W_])(?:{_LABEL}){_NUMBERED})(?P<labelled>{_NUMBERS})"
        ),
        _is_national,
        group="labelled",
    ),
    "ip": Kind(
        declared_pattern(
            r"(?i)(?<![\w.:-])(?<!version )(?<!release )"
            r"(?:[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?![\w-]|\.[0-9])"
            r"|(?=[0-9a-f]{0,4}:[0-9a-f:]{0,30}:)[0-9a-f:]{2,39}+(?:\.[0-9]{1,3}){0,3}+(?![\w:]))"
        ),
        _is_address,
    ),
    "coordinates": Kind(
        declared_pattern(
            r"(?<![\w.-])([-+]?[0-9]{1,2}\.[0-9]{3,12})\u00b0?(?: ?[NS])?(?: ?[,;/] ?| )"
            r"([-+]?[0-9]{1,3}\.[0-9]{3,12})(?:\u00b0? ?[EWO])?(?![\w.]*[0-9])"
            rf"|(?<![\w.]){_DEGREES}[NS][,; ]{{1,2}}{_DEGREES}[EWO]"
            r"|(?i:(?<![^\W_])lat(?:itude)?[\"']?[ :=]{1,3}(?P<named>[-+]?[0-9]{1,2}\.[0-9]{2,12}"
            r"[^\w-]{1,4}(?:lng|lon(?:g(?:itude)?)?)[\"']?[ :=]{1,3}[-+]?[0-9]{1,3}\.[0-9]{2,12}))"
        ),
        _is_place,
        group="named",
    ),
    "date of birth": Kind(
        declared_pattern(
            rf"(?i)(?<![^\W_])(?:{_BIRTH})(?![^\W_])[^\w]{{0,4}}(?:(?:on|am|is|was|the|el|le|il|in|em|op|den|w|dnia|:|=)"
            rf"[ :=\"']{{1,3}}){{0,2}}(?P<date>{_DATE})(?![0-9])"
        ),
        group="date",
    ),
    "phone": Kind(
        declared_pattern(
            r"(?<![\w+])(?:(?:\+|00 ?(?=[1-9]))[0-9](?:[ ()./-]{0,3}[0-9]){6,13}"
            r"|(?<![.,/-])(?:1[ .-])?(?:\([2-9][0-9]{2}\) ?|[2-9][0-9]{2}[ .-])"
            r"[0-9]{3}[ .-][0-9]{4}"
            r"|(?<![.,/:-])(?P<local>\(?0[1-9][0-9]{0,4}\)?(?:[ /.-]{1,3}[0-9]{2,8}){1,5})"
            rf"|(?<![^\W_])(?:{_CALLED})(?P<labelled>\(?[0-9](?:[ ()./-]{{0,3}}[0-9]){{6,14}}))"
            r"(?![\w-]|[.:/][0-9])",
            re.IGNORECASE,
        ),
        _is_phone,
        group="labelled",
    ),
    "number": Kind(declared_pattern(r"(?<![\w,-])(?<![0-9]\.)[0-9]{4,}+(?![\w-]|\.[0-9])")),
    "id": Kind(
        declared_pattern(
            r"(?<![\w-])(?=[\w-]*[0-9])(?=[\w-]*[A-Za-z])[A-Za-z0-9]++(?:[_-][A-Za-z0-9]++)*+(?!\w)"
        )
    ),
}
