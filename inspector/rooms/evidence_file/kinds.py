"""The kinds of terms that can be masked by their form, unlike names of people.

Each kind has a pattern over a normal form (see `normal`) and a check of what it found, such as the
check digits of a card. docs/masks.md says what each finds, as measured by tests.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from ipaddress import ip_address
from typing import NamedTuple

from chatmemory.patterns import declared_pattern


class Kind(NamedTuple):
    """A kind of terms. `is_term` decides by a match; `group` is the part that is masked."""

    pattern: re.Pattern[str]
    is_term: Callable[[re.Match[str]], bool] = lambda found: True
    group: int | str = 0


def _digits(text: str) -> str:
    return "".join(filter(str.isdecimal, text))


def _has_check_digit(found: re.Match[str]) -> bool:
    """Return whether digits can be the number of a payment card, by the Luhn algorithm."""
    digits = [int(each) for each in _digits(found[0])][::-1]
    doubled = [n if place % 2 == 0 else sum(divmod(2 * n, 10)) for place, n in enumerate(digits)]
    return sum(doubled) % 10 == 0 and len(set(digits)) > 1


def _is_iban(found: re.Match[str]) -> bool:
    """Return whether the check number is right (ISO 13616), with or without words behind it."""
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
    return abs(float(found[1])) <= 90 and abs(float(found[2])) <= 180


def _is_random(found: re.Match[str]) -> bool:
    """Return whether a long run of signs changes like chance does: no word, hash or UUID."""
    signs = found[0].strip("-_./+=")
    kinds = {_sort_of(each) for each in signs}
    is_hexadecimal = all(each in "0123456789abcdefABCDEF-" for each in signs)
    if len(signs) < 20 or not {"a", "A", "0"} <= kinds or is_hexadecimal:
        return False
    sorts = [_sort_of(each) for each in signs if each.isalnum()]
    changes = sum(map(str.__ne__, sorts, sorts[1:])) / len(sorts)
    counts = Counter(signs).values()
    entropy = -sum(n / len(signs) * math.log2(n / len(signs)) for n in counts)
    return changes > 0.3 and entropy > 3.5


def _sort_of(sign: str) -> str:
    return "0" if sign.isdecimal() else "A" if sign.isupper() else "a" if sign.islower() else "-"


def _is_national(found: re.Match[str]) -> bool:
    """Return whether check digits are right, where an id has some."""
    if found["dni"]:
        number = int(_digits(found["dni"]))
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
    if found["local"]:
        return 9 <= count <= 12
    return 7 <= count <= 15


_MONTH = (
    (
        r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mär|mai|okt|dez|ene|abr|ago|dic|fév|avr"
        r"|juin|juil|aou|déc|gen|mag|giu|lug|set|ott)[^\W\d_]{0,8}"
    )
    .replace("ä", "a\u0308?")
    .replace("é", "e\u0301?")
)
_DATE = (
    r"[0-9]{1,4}[-/. ][0-9]{1,2}[-/. ][0-9]{2,4}"
    rf"|[0-9]{{1,2}}(?:st|nd|rd|th|\.)? (?:of |de )?{_MONTH}\.?,? (?:de )?[0-9]{{2,4}}"
    rf"|{_MONTH}\.? [0-9]{{1,2}}(?:st|nd|rd|th)?,? [0-9]{{4}}"
)
_BIRTH = (
    r"born|birth ?(?:day|date)?|date of birth|d\.?o\.?b\.?|geboren|geb\.|geburts(?:tag|datum)"
    r"|nac(?:ido|ida|imiento)|ne\u0301?e?|nato|nata|nascita|naissance|nascimento"
)
_LABEL = (
    r"ssn|social security|national id|national insurance|passport|tax id|nino|nhs|id card|dni|nie"
    r"|nif|cpf|bsn|ahv|steuer-?id|personalausweis|reisepass|pasaporte|driver'?s licen[cs]e"
)
_NUMBERED = r"(?:[ -](?:number|no|nr|num)\b)?[ .:#=]{0,3}(?:is )?"

_DEGREES = "[0-9]{1,3}\u00b0 ?[0-9]{1,2}' ?(?:[0-9]{1,2}(?:[.][0-9]{1,6})?(?:\"|'') ?)?"

KINDS: Mapping[str, Kind] = {
    "mail": Kind(
        declared_pattern(
            r"(?<![\w.+%'\u0300-\u036f-])[\w.+%'\u0300-\u036f-]++"
            r"@(?:[\w\u0300-\u036f-]++(?:\.[\w\u0300-\u036f-]++)+|\[[0-9a-fA-F.:]++\])"
        )
    ),
    "URL": Kind(
        declared_pattern(r"(?i)(?<![\w.])(?:(?:https?|ftp|wss?)://|www\.(?=\w))[^\s\"'<>\\]+")
    ),
    "token": Kind(
        declared_pattern(
            r"(?<![\w-])(?:eyJ[\w-]{8,}+\.[\w-]{4,}+(?:\.[\w-]*+)?"
            r"|(?:sk|pk|rk|ghp|gho|ghs|ghu|github_pat|glpat|xox[abeoprs]|hf|npm|pypi|AKIA|ASIA|AIza"
            r"|SG|whsec|shpat|dop_v1|ya29)[-_.]?(?=[\w-]*[0-9])[\w.-]{14,}+"
            r"|(?P<random>[\w+/=-]{20,}+))"
        ),
        lambda found: found["random"] is None or _is_random(found),
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
            r"|(?P<dni>[0-9]{8}-?[A-Z])|(?P<cpf>[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2})"
            r"|(?P<nir>[12] ?[0-9]{2} ?[0-9]{2} ?[0-9]{2} ?[0-9]{3} ?[0-9]{3} ?[0-9]{2})"
            r"|756\.[0-9]{4}\.[0-9]{4}\.[0-9]{2}"
            r"|[A-Z]{6}[0-9]{2}[A-EHLMPRST][0-9]{2}[A-Z][0-9]{3}[A-Z])(?![\w-])"
            rf"|(?i:\b(?:{_LABEL}){_NUMBERED})(?P<labelled>(?=[\w-]{{0,14}}[0-9])[\w-]{{5,15}}+)"
        ),
        lambda found: found["labelled"] is not None or _is_national(found),
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
        ),
        lambda found: found[1] is None or _is_place(found),
    ),
    "date of birth": Kind(
        declared_pattern(
            rf"(?i)(?<![^\W_])(?:{_BIRTH})(?![^\W_])[^\w]{{0,4}}(?:(?:on|am|is|was|the|el|le|il|:|=)"
            rf"[ :=\"']{{1,3}}){{0,2}}(?P<date>{_DATE})(?![0-9])"
        ),
        group="date",
    ),
    "phone": Kind(
        declared_pattern(
            r"(?<![\w+])(?:(?:\+|00(?=[1-9]))[0-9](?:[ ()./-]{0,3}[0-9]){6,13}"
            r"|(?<![.,/-])(?:1[ .-])?(?:\([2-9][0-9]{2}\) ?|[2-9][0-9]{2}[ .-])"
            r"[0-9]{3}[ .-][0-9]{4}"
            r"|(?<![.,/:-])(?P<local>\(?0[1-9][0-9]{0,4}\)?(?:[ /.-]{1,3}[0-9]{2,8}){1,5})"
            r"|(?<=tel )[0-9](?:[ ./-]?[0-9]){5,13}|(?<=tel: )[0-9](?:[ ./-]?[0-9]){5,13}"
            r"|(?<=phone: )[0-9](?:[ ./-]?[0-9]){5,13}|(?<=phone )[0-9](?:[ ./-]?[0-9]){5,13}"
            r"|(?<=call me at )[0-9](?:[ ./-]?[0-9]){5,13})(?![\w-]|[.:/][0-9])",
            re.IGNORECASE,
        ),
        _is_phone,
    ),
    "number": Kind(declared_pattern(r"(?<![\w,-])(?<![0-9]\.)[0-9]{4,}+(?![\w-]|\.[0-9])")),
    "id": Kind(
        declared_pattern(
            r"(?<![\w-])(?=[\w-]*[0-9])(?=[\w-]*[A-Za-z])[A-Za-z0-9]++(?:[_-][A-Za-z0-9]++)*+(?!\w)"
        )
    ),
}
