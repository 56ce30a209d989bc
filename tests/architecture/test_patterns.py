"""Patterns are declared by one function, so that none runs over a foreign text without a bound."""

from __future__ import annotations

import ast

from .test_layers import modules, parsed

DECLARING = "chatmemory.patterns"
HARMLESS = {"escape"}  # it takes time in line with a text's length


def uses_of_re(tree: ast.Module) -> list[str]:
    """Return what a module calls of the libraries of regular expressions, or imports from them."""
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module="re" | "regex"):
                found += [alias.name for alias in node.names]
            case ast.Import():
                found += [each.name for each in node.names if _is_hidden(each)]
            case ast.Call(func=ast.Attribute(value=ast.Name(id="re"))):
                found.append(node.func.attr)
    return [name for name in found if name not in HARMLESS]


def _is_hidden(module: ast.alias) -> bool:
    return module.name == "regex" or (module.name == "re" and module.asname is not None)


def test_each_pattern_is_declared():
    found = {name: uses_of_re(parsed(file)) for name, file in modules().items()}
    assert found.pop(DECLARING) == ["compile"]
    assert {name: used for name, used in found.items() if used} == {}


def test_a_pattern_that_is_not_declared_is_found():
    for source, used in {
        'import re\nre.sub("a", "b", text)': ["sub"],
        "from re import compile": ["compile"],
        "import re as r": ["re"],
        "import regex": ["regex"],
        "import re\nre.escape(text)": [],
    }.items():
        assert uses_of_re(ast.parse(source)) == used
