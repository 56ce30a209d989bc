"""Patches between JSON values: from the rendered messages of a call to the request of the call.

`patch(source, target)` returns a patch, or None if both values are equal. `patched(source, patch)`
applies a patch, and returns the target. A patch is a JSON value in one of these forms:

    {"v": value}                              a new value
    {"k": [names], "c": {name: patch}}        an object with these members; members without a patch
                                              come from the source
    {"l": [index, [index, patch], {"v": …}]}  a list: items of the source by index, some patched

With `in_order`, members of objects keep the order of the target.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from chatmemory.messages.json_values import JsonDict, JsonValue

Patch = JsonDict


def patch(source: JsonValue, target: JsonValue, in_order: bool = False) -> Patch | None:
    """Return the patch that turns the source into the target; None if they are equal. `in_order`
    also preserves the order of members.
    """
    if spelled(source, in_order) == spelled(target, in_order):
        return None
    if isinstance(source, dict) and isinstance(target, dict):
        return _of_objects(source, target, in_order)
    if isinstance(source, list) and isinstance(target, list):
        return {"l": list(_items(source, target, in_order))}
    return {"v": target}


def spelled(value: JsonValue, in_order: bool = False) -> str:
    """Return a JSON text that is the same for equal values. 1, 1.0 and true are different values.

    With `in_order`, objects are equal only if their members have the same order.
    """
    return json.dumps(value, sort_keys=not in_order, ensure_ascii=False)


def _of_objects(source: JsonDict, target: JsonDict, in_order: bool) -> Patch:
    changed = {
        name: {"v": value} if name not in source else patch(source[name], value, in_order)
        for name, value in target.items()
    }
    return {"k": [*target], "c": {name: each for name, each in changed.items() if each}}


def _items(
    source: Sequence[JsonValue], target: Sequence[JsonValue], in_order: bool
) -> Iterator[JsonValue]:
    before, after = ([spelled(each, in_order) for each in values] for values in (source, target))
    found = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    for kind, start, end, first, last in found:
        for place in range(first, last):
            other = start + place - first
            if kind == "equal":
                yield other
            elif other < end and (changed := patch(source[other], target[place], in_order)):
                yield {"v": target[place]} if "v" in changed else [other, changed]
            else:
                yield {"v": target[place]}


def patched(source: JsonValue, difference: Patch | None) -> JsonValue:
    """Apply a patch to the source, and return the target."""
    if difference is None:
        return source
    if "v" in difference:
        return difference["v"]
    if "l" in difference:
        items = source if isinstance(source, list) else []
        return [_item(items, each) for each in difference["l"]]
    members = source if isinstance(source, dict) else {}
    changed = difference["c"]
    return {
        name: patched(members.get(name), changed.get(name))
        for name in difference["k"]
        if name in members or name in changed
    }


def _item(source: Sequence[JsonValue], item: JsonValue) -> JsonValue:
    if isinstance(item, dict):
        return item["v"]
    place, difference = item if isinstance(item, list) else (item, None)
    return patched(source[place] if place < len(source) else None, difference)
