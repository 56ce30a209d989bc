"""Reads trees of messages, as chat sites store them: each message names its parent.

An edited question, or a regenerated answer, is another child of the original's parent. The
conversation is the path to the message that the site shows last. Every other path is a branch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile

from chatmemory.exceptions import UnreadableTranscript
from chatmemory.formats.account import Account
from chatmemory.formats.format import Format, Loss, Node, RawTranscript, Transcript
from chatmemory.formats.readers_and_writers import Reader
from chatmemory.messages.json_values import JsonMap, JsonValue
from chatmemory.messages.message import ChatMessage, with_attributes

BRANCHES_MAX = 100  # of one conversation; messages on further ones are a loss
LEFT = "messages on other branches, which are not on the path to the last message"


def nodes_of(values: JsonMap, parents: JsonMap, last: JsonValue) -> list[Node]:
    """Return the messages of a tree as nodes: first the path to the message `last`, then all other
    messages.

    `values` maps the id of a message to the message, and `parents` maps the id of a message to the
    id of its parent. If `last` is not in the tree, the last message in the file takes its place.
    """
    if not isinstance(last, str) or last not in values:
        last = next(reversed([*values]), None)
    path = path_to(last, parents)
    shown = [Node(id, _id(parents.get(id)), values[id]) for id in path if id in values]
    known = set(path)
    others = (id for id in values if id not in known)
    return shown + [Node(id, _id(parents.get(id)), values[id], False) for id in others]


def linked_nodes(values: JsonMap, parent: str, last: JsonValue = None) -> list[Node]:
    """Return the messages of a tree as nodes, as `nodes_of` does.

    `values` has the messages by id, and `parent` is the property with the parent's id. If no
    message has this property, the parent of a message is the message before it.
    """
    if any(parent in each for each in values.values()):
        return nodes_of(values, {id: each.get(parent) for id, each in values.items()}, last)
    return nodes_of(values, dict(zip(values, [None, *values], strict=False)), last)


def path_to(last: JsonValue, parents: JsonMap) -> list[str]:
    """Return the ids on the path from the first message of a tree to the message `last`.

    The path begins at a message whose parent is not in the file. In a circle of parents, it has
    each message once.
    """
    found: dict[str, None] = {}
    while isinstance(last, str) and last in parents and last not in found:
        found[last] = None
        last = parents[last]
    return [*found][::-1]


def _chained(turns: Iterable[JsonValue]) -> Iterator[Node]:
    """Yield the nodes of a tree. Values without a node follow each other."""
    before = None
    for n, turn in enumerate(turns):
        node = turn if isinstance(turn, Node) else Node(str(n), before, turn)
        yield node
        before = node.id


def _id(value: JsonValue) -> str | None:
    return value if isinstance(value, str) else None


def format_of_tree(
    name: str,
    find: Callable[[JsonValue], RawTranscript | None],
    reader: type[Reader],
    content_of: Callable[[JsonValue], JsonValue],
    is_empty: Callable[[JsonValue], bool],
) -> Format:
    """Return a format for conversations that are trees of messages. The format is only read.

    - `find`: returns a conversation whose values are the nodes of the tree.
    - `reader`: reads the values in the nodes.
    - `content_of`: returns the part of a value that has content, such as text. Values without
      content at the end of a branch are left out.
    - `is_empty`: returns whether a JSON value is a conversation without messages.
    """
    reader.format = name

    def parse(turns: Sequence[JsonValue], after: Iterable[ChatMessage] = ()) -> Transcript:
        return _read(Account.of(turns), tuple(after), reader, content_of)

    return Format(name, find, parse, content_of=content_of, is_empty=is_empty, is_whole=True)


def _read(
    account: Account,
    after: tuple[ChatMessage, ...],
    reader: type[Reader],
    content_of: Callable[[JsonValue], JsonValue],
) -> Transcript:
    nodes = [*_chained(account)]
    shown = Account([node.value for node in nodes if node.is_shown])
    read = reader().read_all(shown, after)
    account.take_over(shown, range(len(shown)))
    account.leave(*range(len(shown), len(nodes)))  # their text is in the branches
    leaves = [*_leaves(nodes, lambda value: _has_content(content_of(value)))]

    def along(path: Account) -> Transcript:
        return reader().read_all(path, after)

    branches = [*_branches(account, nodes, leaves[:BRANCHES_MAX], along, content_of)]
    lost = dict.fromkeys(loss for each in branches for loss in each.losses)
    if more := len(leaves[BRANCHES_MAX:]):
        lost[Loss("conversation", f"{LEFT} ({more:,})")] = None
    return replace(
        read,
        losses=(*read.losses, *(loss for loss in lost if loss not in read.losses)),
        branches=tuple(
            replace(each, losses=(), shared=_shared(read.messages, each.messages))
            for each in branches
        ),
    )


def _has_content(content: JsonValue) -> bool:
    """Return whether a value has text or anything else to show, such as an image."""
    if isinstance(content, dict):
        return any(map(_has_content, content.values()))
    if isinstance(content, list | tuple):
        return any(map(_has_content, content))
    return bool(content)


def _leaves(nodes: Sequence[Node], has_content: Callable[[JsonValue], bool]) -> Iterator[Node]:
    """Yield the last message of each path, except the path that is shown. Messages that name each
    other as parents are a path, too.
    """
    saying = [node for node in nodes if has_content(node.value)]
    parents = {node.id: node.parent for node in nodes}
    followed: set[str] = set()
    for node in saying:
        _walk(node.parent, parents, followed)
    leaves = [node for node in saying if not node.is_shown and node.id not in followed]
    reached = {node.id for node in nodes if node.is_shown}
    for node in (*leaves, *reversed(saying)):
        if node.id not in reached:
            yield node
            _walk(node.id, parents, reached)


def _walk(id: str | None, parents: Mapping[str, str | None], reached: set[str]) -> None:
    """Add the id of a message and of all messages before it to `reached`, up to a message that is
    already there.
    """
    while id is not None and id not in reached:
        reached.add(id)
        id = parents.get(id)


def _branches(
    outer: Account,
    nodes: Sequence[Node],
    leaves: Iterable[Node],
    read: Callable[[Account], Transcript],
    content_of: Callable[[JsonValue], JsonValue],
) -> Iterator[Transcript]:
    """Yield the branches that end with the messages `leaves`. Their losses are those after the path
    that is shown.

    A branch ends before a message that cannot be read; `outer` reports that message.
    """
    ends: set[int] = set()
    numbers = {node.id: n for n, node in enumerate(nodes)}
    parents = {node.id: node.parent for node in nodes}
    for leaf in leaves:
        path = [numbers[id] for id in path_to(leaf.id, parents)]
        account, branch = _read_branch(outer, nodes, path, read)
        if not path or path[-1] in ends or nodes[path[-1]].is_shown:
            continue
        ends.add(path[-1])
        account.leave(*(k for k, n in enumerate(path) if nodes[n].is_shown))
        words = account.losses(branch, content_of)
        own = (replace(each, turn=None) for each in branch.losses)
        yield replace(branch, losses=(*own, *(Loss("branch", each.what) for each in words)))


def _read_branch(
    outer: Account, nodes: Sequence[Node], path: list[int], read: Callable[[Account], Transcript]
) -> tuple[Account, Transcript]:
    """Read a branch, and return it with its account. If a message cannot be read, `path` is cut
    before that message.
    """
    account = Account([nodes[n].value for n in path])
    try:
        return account, read(account)
    except UnreadableTranscript as error:
        outer.refuse(path[error.index], error.why)
        del path[error.index :]
    return _read_branch(outer, nodes, path, read)


def _shared(one: Sequence[ChatMessage], other: Sequence[ChatMessage]) -> int:
    """Return how many messages at the beginning of both conversations are equal."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: _bare(pair[0]) == _bare(pair[1]), pairs))


def _bare(message: ChatMessage) -> ChatMessage:
    return with_attributes(message, {})
