"""The tool with which agents compare limits: how many needed facts each limit would have held, and
at which cost.
"""

from __future__ import annotations

from decimal import Decimal

from chatmemory import MemoryNotFound
from chatmemory.explain import wording
from chatmemory.messages.json_values import JsonMap
from chatmemory.reading.finding import MemoryFilter
from chatmemory.recall.cost import Prices, rules_of
from chatmemory.windows.written_policies import policies_from_text
from inspector.rooms.lab.api import RecallSerializer, recall_answer
from inspector.rooms.lab.stored import READ_AT_ONCE, recall_of_stored
from inspector.shell.agents import SIZE, Agent, Answer, check_words


def recall(
    agent: Agent,
    limits: str = "token_window:1000,token_window:4000,message_window:20,everything",
    prefix: str = "",
    label: str = "",
    input: float | None = None,
    cached: float | None = None,
    write: float | None = None,
    provider: str = "",
) -> Answer:
    """Measure limits of memory: for each limit, how many of the facts needed again it would have
    held, and its cost.

    Choose the conversations by the `prefix` of their ids, which may be one whole id, or by a label.
    Write `limits` like token_window:4000,low_water=0.5,message_window:20,everything. An option such
    as low_water=0.5 belongs to the limit before it. The cost is relative to sending everything.
    `input`, `cached` and `write` are the prices of a million tokens: of input, of cached input, and
    of writing the cache. With `provider` (openai, anthropic), the cost follows the rules of the
    provider's cache, such as the shortest prompt that is cached.
    """
    for text in (prefix, label):
        check_words(text, "a prefix or a label")
    policies = policies_from_text(limits)[:SIZE]
    own = agent.scope.beginning()
    if not (prefix.startswith(own) or own.startswith(prefix)):
        raise MemoryNotFound(f"no conversation has an id that begins with {prefix!r}")
    which = MemoryFilter(label=label, id_prefix=max(prefix, own, key=len))
    prices = Prices(*map(_price, (input, cached, write)))
    found = recall_of_stored(which, policies, READ_AT_ONCE, rules_of(provider))
    answer = RecallSerializer(recall_answer(found, prices)).data
    rows = [
        (
            f"{row['policy']}: {row['held']:,} of {row['recalls']:,} needed facts in memory, "
            f"{row['user_repeated']:,} messages repeated by users, {row['call_repeated']:,} tool "
            f"results fetched again, {row['prompt_tokens']:,} prompt tokens{_relative(row)}"
        )
        for row in answer["results"]
    ]
    several = wording.counted(found.rows[0].conversations, "conversation")
    pick = f"Recommended: {answer['recommended'] or 'nothing'}: {answer['why']}."
    url = agent.page("lab", prefix=prefix, label=label)
    return Answer([f"{several}.", *rows, pick], url, **answer)


def _price(number: float | None) -> Decimal | None:
    return None if number is None else Decimal(str(number))


def _relative(row: JsonMap) -> str:
    """Return the cost of a policy relative to everything, in words."""
    cost = row["relative_cost"]
    what = "cost" if row["priced"] == "cache" else "tokens"
    return "" if cost is None else f", {cost:.2f} of the {what} of sending everything"
