"""Style sheets and templates use the same classes, and every icon is drawn once."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from chatmemory.flags import flags
from chatmemory.messages.message import MessageType
from inspector.conversation.guide import STOPS
from inspector.conversation.looks import glyph
from inspector.conversation.page import MOVES
from inspector.display import DISPLAYS
from inspector.shell import menu
from inspector.shell.rooms import rooms

ROOT = Path(__file__).parents[2]
SHEETS = sorted((ROOT / "static").glob("**/*.css"))
SCRIPTS = sorted((ROOT / "static").glob("**/*.js"))
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
PRESENTERS = [
    *(ROOT / "inspector/conversation").rglob("*.py"),
    *(ROOT / "inspector/rooms").rglob("*.py"),
    *(ROOT / "inspector/templatetags").glob("*.py"),
    *(ROOT / "chatmemory/explain").glob("*.py"),
]
LONGEST = 140

# Classes that templates finish: what stands before {{ … }}, and what can follow.
GLYPHS = {glyph(type, calls) for type in MessageType for calls in (False, True)}
BUILT = {
    "r-": GLYPHS | {"index", "media"},  # the index, and a part of the budget bar
    "guide--": {stop.pane for stop in STOPS},
}


def without_comments(css: str) -> str:
    return re.sub(r"/\*.*?\*/", "", css, flags=re.DOTALL)


def styles() -> str:
    return "".join(without_comments(sheet.read_text()) for sheet in SHEETS)


def selectors() -> list[str]:
    """The selectors of a sheet, without at-rules."""
    preludes = re.findall(r"([^{};]+)\{", styles())
    return [prelude.strip() for prelude in preludes if not prelude.strip().startswith("@")]


def html() -> str:
    return "".join(template.read_text() for template in TEMPLATES)


def scripts() -> str:
    return "".join(script.read_text() for script in SCRIPTS)


def of_templates() -> set[str]:
    """All classes that templates can write, and the prefixes of composed classes."""
    values = re.findall(r'class="((?:{%.*?%}|{{.*?}}|[^"])*)"', html(), re.DOTALL)
    values += re.findall(r"{% block body_class %}(.*?){% endblock", html(), re.DOTALL)
    values += re.findall(r'{% icon \S+ "([^"]+)"', html())
    plain = (re.sub(r"{%.*?%}", " ", re.sub(r"{{.*?}}", "", value)) for value in values)
    return {"i", *(name for value in plain for name in value.split())}


def of_presenters() -> set[str]:
    """Strings in Python of one or two words, such as `rule ok`."""
    trees = (ast.parse(path.read_text()) for path in PRESENTERS)
    nodes = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant))
    texts = {node.value.strip() for node in nodes if isinstance(node.value, str)}
    pairs = (text.split() for text in texts if re.fullmatch(r"[a-z][\w-]*( [a-z][\w-]*)?", text))
    return {word for pair in pairs for word in pair}


def of_sheets() -> set[str]:
    return {name for each in selectors() for name in re.findall(r"\.(-?[a-zA-Z_][\w-]*)", each)}


def of_scripts() -> set[str]:
    named = set(re.findall(r"\.(-?[a-z][\w-]*)", " ".join(re.findall(r'"[^"]*"', scripts()))))
    return named | set(re.findall(r'classList\.\w+\("([\w-]+)"', scripts()))


def test_classes_that_templates_compose_are_listed_here():
    assert {name for name in of_templates() if name.endswith("-")} == BUILT.keys()


def test_every_class_of_a_sheet_is_used():
    built = {f"{begin}{end}" for begin, ends in BUILT.items() for end in ends}
    used = of_templates() | of_presenters() | of_scripts() | built
    assert sorted(of_sheets() - used) == []


def test_every_class_of_a_template_has_a_style():
    assert sorted(of_templates() - of_sheets() - BUILT.keys()) == []


def test_every_property_is_used_and_every_used_one_is_defined():
    defined = set(re.findall(r"[{;\s](--[\w-]+):", styles()))
    used = set(re.findall(r"var\((--[\w-]+)", styles() + html()))
    assert sorted(defined ^ used) == []


def test_every_animation_is_used():
    named = set(re.findall(r"@keyframes ([\w-]+)", styles()))
    played = set(re.findall(r"animation: ([\w-]+)", styles())) - {"none"}
    assert named == played


@pytest.mark.parametrize("sheet", SHEETS, ids=lambda sheet: sheet.stem)
def test_every_rule_is_in_a_layer(sheet):
    rest = without_comments(sheet.read_text())
    while re.search(r"{[^{}]*}", rest):
        rest = re.sub(r"{[^{}]*}", ";", rest)
    tops = [top.strip() for top in rest.split(";") if top.strip()]
    assert all(top.startswith("@layer") for top in tops) or sheet.stem == "swagger"


def test_every_hook_that_a_script_or_a_sheet_asks_for_is_on_a_page():
    asked = set(re.findall(r"\[(data-[\w-]+)", scripts() + styles()))
    set_by_scripts = {"data-deleted", "data-has-chosen", "data-js", "data-jump"}
    chosen = {f"data-{name}" for name in ("theme", *DISPLAYS)}
    on_pages = set(re.findall(r"\b(data-[\w-]+)", html()))
    assert sorted(asked - set_by_scripts - chosen - on_pages) == []


def test_every_symbol_is_used_and_every_used_one_is_drawn():
    sprite = (ROOT / "static/inspector/sprite.svg").read_text()
    drawn = set(re.findall(r'<symbol id="([\w-]+)"', sprite))
    icons = re.findall(r'{% icon "([\w-]+)"|icon_name="([\w-]+)"', html())
    used = {f"i-{name or passed}" for name, passed in icons}
    used |= {f"g-{name}" for name in BUILT["r-"]}
    used |= {f"i-{name}" for name in MOVES}
    used |= {f"i-{flag.icon}" for flag in flags() if flag.icon}
    used |= {f"i-{item.icon}" for item in (*menu.OWN, *(i for r in rooms() for i in r.menu))}
    assert drawn == used


def test_no_icon_is_drawn_twice():
    sprite = (ROOT / "static/inspector/sprite.svg").read_text()
    copies = [path for path in re.findall(r' d="([^"]+)"', sprite) if path in html() + styles()]
    assert copies == []


def test_no_line_of_a_template_is_longer_than_a_screen():
    lines = [
        (template.name, number)
        for template in TEMPLATES
        for number, line in enumerate(template.read_text().splitlines(), 1)
        if len(line) > LONGEST
    ]
    assert lines == []
