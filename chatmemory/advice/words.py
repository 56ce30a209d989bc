"""Turns an advice into words: the suggested action, its effect, the reasons, and the conversations
that were measured.

The sentences are the same on pages, in commands, in the API and for agents.
"""

from __future__ import annotations

from collections.abc import Iterator

from chatmemory.advice.effects import Effect
from chatmemory.advice.values import CLOSE, DEARER, Advice, LeftOut, Option, Scope, Verdict
from chatmemory.messages.json_values import JsonDict
from chatmemory.recall.cost import Prices
from chatmemory.windows.option_words import varied_words
from chatmemory.windows.policies import Policy

NAMED = 3  # ids of conversations in a sentence


# Policies and figures


def policy_short(policy: Policy | None) -> str:
    """Return a policy in a few words, such as `80,000 tokens, trimmed to 50 % when full`. The text
    is `Everything` for None, and for a policy that evicts nothing (`meters_only`).
    """
    if policy is None or policy.meters_only:
        return "Everything"
    return _limit_words(policy)


def policy_long(policy: Policy | None) -> str:
    """Return a policy as an instruction, such as `Set the limit to 80,000 tokens, trimmed to …`.
    The text is `Send everything` for None, and for a policy that evicts nothing (`meters_only`).
    """
    if policy is None or policy.meters_only:
        return "Send everything"
    return f"Set the limit to {_limit_words(policy)}"


def policy_verb(policy: Policy | None) -> str:
    """Return the label of the button that sets a policy, such as `Set limit to 80,000`. The label
    is `Send everything` for None, and for a policy that evicts nothing (`meters_only`).
    """
    if policy is None or policy.meters_only:
        return "Send everything"
    return f"Set limit to {policy.limit:,}"


def _limit_words(policy: Policy) -> str:
    return ", ".join([f"{policy.limit:,} {policy.unit}", *varied_words(policy)])


def name_of(option: Option) -> str:
    """Return the short name of an option: its policy, or `their own limits` if the conversations
    have different policies.
    """
    return "their own limits" if option.mixed else policy_short(option.policy)


def subject(option: Option) -> str:
    """Return an option as the subject of a sentence, such as `A limit of 8 messages`."""
    if option.mixed:
        return "Today’s limits"
    return "Sending everything" if _is_all(option) else f"A limit of {policy_short(option.policy)}"


def share_words(option: Option) -> str:
    """Return the share of needed facts that an option holds, such as `96 %`. The text is `100 %`
    only if the option holds all needed facts.
    """
    percent = round(100 * option.share)
    return f"{min(max(percent, 1), 99) if 0 < option.held < option.needed else percent} %"


def cost_words(cost: float) -> str:
    """Return a relative cost with two decimals, such as `1.43`."""
    return f"{cost:.2f}"


def cost_name(prices: Prices) -> str:
    """Return the name of the cost figure on pages: `relative cost`, or `relative tokens` if there
    is no price of cached input tokens.
    """
    return "relative cost" if prices.priced == "cache" else "relative tokens"


def effect_words(today: Option | None, option: Option, prices: Prices) -> str:
    """Return as text how the figures would change if an option replaced `today`, the policy in
    force.

    An example is `facts held: 24 → 25 of 25; relative cost: 1.43 → 1.00`. If `today` is None,
    return the figures of the option alone.
    """
    what = cost_name(prices)
    if today is None:
        held = f"facts held: {option.held:,} of {option.needed:,}; " if option.needed else ""
        return f"{held}{what}: {cost_words(option.cost)}"
    cost = f"{what}: {cost_words(today.cost)} → {cost_words(option.cost)}"
    if not option.needed:
        return cost
    return f"facts held: {today.held:,} → {option.held:,} of {option.needed:,}; {cost}"


def effect_sums(effect: Effect) -> list[tuple[str, str]]:
    """Return pairs of label and text: one pair for the facts held, and one pair for the cost.

    Each text has the figures before and after the change of policies, such as `1.43 → 1.00`. The
    pair for facts is left out if no fact was needed again. Returns [] if nothing was measured.
    """
    before, after = effect.before, effect.after
    if before is None or after is None:
        return []
    what = "Cost" if effect.measured.prices.priced == "cache" else "Tokens"
    cost = f"{cost_words(before.cost)} → {cost_words(after.cost)}"
    found = [(f"{what}, relative to sending everything", cost)]
    if after.needed:
        facts = f"{before.held:,} → {after.held:,} of {after.needed:,}"
        found.insert(0, ("Facts in memory when needed again", facts))
    return found


def effect_warning(effect: Effect) -> str:
    """Return a warning if the previewed policy costs at least 0.5 % more than sending everything,
    else "".

    If the policy has no advantage over sending everything (see `Effect.is_dominated`), the warning
    advises to send everything. Otherwise, it says how many conversations would cost more.
    """
    after, number = effect.after, effect.measured.conversations
    if after is None or after.cost < DEARER:
        return ""
    if effect.is_dominated:
        return "Sending everything costs less and holds as many facts: send everything instead."
    conversations = "conversation" if number == 1 else "conversations"
    return (
        f"{effect.dearer:,} of {number:,} {conversations} would cost more than sending everything."
    )


def unknown_effect(effect: Effect) -> str:
    """Return the sentence that says why the effect of a policy is not known."""
    return (
        f"The effect of this policy on facts and cost is not known: {_why_none(effect.measured)}."
    )


def more_or_less(cost: float) -> str:
    """Return a relative cost in words: `43 % more` for 1.43, and `about as much` for 1.00."""
    share = round(100 * abs(round(cost, 2) - 1))
    return f"{share} % {'more' if cost > 1 else 'less'}" if share else "about as much"


def cost_of_today(advice: Advice) -> str:
    """Return the cost of the policy in force in words, such as `costs 43 % more than sending
    everything`. Returns "" if the cost is unknown, or if everything is sent.
    """
    today, prices = advice.today, advice.measured.prices
    if today is None or (today.policy is None and not today.mixed):
        return ""
    share = more_or_less(today.cost)
    than = "as" if share == "about as much" else "than"
    verb = "costs" if prices.priced == "cache" else "sends"
    tokens = "" if prices.priced == "cache" or than == "as" else " tokens"
    return f"{verb} {share}{tokens} {than} sending everything"


def cause_words(advice: Advice, provider: str = "", least: int = 0) -> str:
    """Return why the policy in force costs more than sending everything; "" if the reason is
    unknown.

    There are two reasons: most prompts are too short for the prompt cache, or most prompts do not
    begin with the previous prompt. `least` is the length in tokens of the shortest prompt that the
    `provider` caches.
    """
    found, today = advice.prompts, advice.today
    if today is None or today.cost < DEARER or not found.calls:
        return ""
    if least and 2 * found.short > found.calls:
        return (
            f"{provider or 'the provider'} makes only cached prompts cheaper, from {least:,} "
            f"tokens on, and {found.short:,} of {found.calls:,} prompts are shorter"
        )
    if 2 * found.changed > found.calls:
        return f"{found.changed:,} of {found.calls:,} prompts do not begin with the previous prompt"
    return ""


# What to do


def headline(advice: Advice) -> str:
    """Return the suggested action, or the reason why there is none, as one sentence without a full
    stop.

    For the verdict CHEAPEST, the sentence only names the cheapest limit, such as `Cheapest limit: 8
    messages`. If sending everything is cheapest, the sentence is `Send everything`.
    """
    pick, goals = advice.pick, advice.goals
    match advice.verdict:
        case Verdict.KEEP if pick is not None:
            return _keep(advice, pick)
        case Verdict.CHEAPEST if pick is not None and pick.policy is not None:
            return f"Cheapest limit: {_limit_words(pick.policy)}"
        case Verdict.CLIENT:
            return "Only your client can change what memory holds"
        case Verdict.REFUSED:
            return "Repair this window first"
        case Verdict.TOO_FEW:
            return f"No advice: {_why_none(advice.measured)}"
        case Verdict.GROUPS_DIFFER:
            return "No single limit suits all groups"
        case Verdict.DOES_NOT_FIT:
            return (
                "No limit within the model’s context window holds "
                f"{100 * goals.share:.0f} % of the facts"
            )
    return policy_long(pick.policy) if pick else ""


def _keep(advice: Advice, today: Option) -> str:
    """Return what the advice says if the policy in force is kept. A limit without room for the
    largest turn is not recommended.
    """
    if today.mixed:
        return "Keep the policies in force"
    if today.policy is None or _is_all(today):
        return "Keep sending everything"
    if _too_small(advice):
        return "No better limit found"
    return f"Keep the limit of {_limit_words(today.policy)}"


def _is_all(option: Option) -> bool:
    return option.policy is None or option.policy.meters_only


def _why_none(scope: Scope) -> str:
    """Return the most frequent reason why conversations were left out, so that nothing can be
    advised.
    """
    if not scope.left_out:
        return "there are no conversations"
    return _WHY_NONE[max(scope.left_out, key=lambda each: len(scope.left_out[each]))]


_WHY_NONE = {
    LeftOut.UNREAD: "the conversations are not read yet",
    LeftOut.UNREADABLE: "the conversations cannot be read",
    LeftOut.TOO_SHORT: "fewer than three model calls",
    LeftOut.CLIENT: "the client decides what memory holds",
    LeftOut.OTHER_UNIT: "the limits are in another unit",
    LeftOut.NO_FACTS: "no fact was needed again",
    LeftOut.OUTLIER: "the conversations are far larger than the others",
}


def effect(advice: Advice) -> str:
    """Return the effect of the advised option in words. Returns "" if no option is advised, or if
    the policy in force is kept.
    """
    pick, today, prices = advice.pick, advice.today, advice.measured.prices
    if pick is None or advice.verdict is Verdict.KEEP:
        return ""
    return effect_words(today, pick, prices)


def why(advice: Advice) -> str:
    """Return the reasons for the advice as sentences; "" if there are none."""
    return " ".join(filter(None, _whys(advice)))


def _whys(advice: Advice) -> Iterator[str]:
    yield _of_verdict(advice)
    yield _too_small(advice)
    if advice.everything is not None and not advice.everything.fits:
        yield (
            f"The longest prompt has {advice.prompts.longest:,} tokens, more than the "
            f"model’s context window of {advice.goals.context or 0:,}."
        )
    if advice.is_few:
        few = "1 fact was" if advice.needed == 1 else f"{advice.needed:,} facts were"
        yield f"Only {few} needed again: too few to compare limits by facts."
    elif not advice.needed and advice.pick is not None:
        yield "No fact was needed again, so limits are compared by cost alone."
        if advice.verdict is Verdict.CHEAPEST and advice.pick.policy is not None:
            yield "The measurement does not show whether answers need earlier messages."
    if advice.checked and advice.verdict is Verdict.CHANGE:
        first, second = map(cost_words, advice.checked)
        what = cost_name(advice.measured.prices)
        yield f"It also saves in each half of the conversations: {what} {first} and {second}."


def _of_verdict(advice: Advice) -> str:
    pick = advice.pick
    match advice.verdict:
        case Verdict.KEEP if pick is not None:
            return _kept(advice, pick)
        case Verdict.SEND_EVERYTHING if not advice.is_few:
            return _nothing_saves(advice)
        case Verdict.CLIENT if pick is not None:
            return (
                "The client decides what memory holds. A limit that the client could "
                f"use: {policy_short(pick.policy)}."
            )
        case Verdict.REFUSED:
            return f"{advice.prompts.refused} would reject this window with any limit."
        case Verdict.GROUPS_DIFFER:
            return "The groups need different limits: see the advice for each group."
        case Verdict.DOES_NOT_FIT:
            best = max(advice.others, key=lambda each: each.share, default=None)
            held = f"{best.held:,} of {best.needed:,}" if best else ""
            return f"{subject(best)} holds the most facts: {held}." if best else ""
    return ""


def _too_small(advice: Advice) -> str:
    """Return a sentence that today's limit has no room for the largest turn. Returns "" if the
    limit has room, or if neither a change nor to keep the limit is advised.
    """
    is_judged = advice.is_change or advice.verdict is Verdict.KEEP
    today = advice.today.policy if advice.today and is_judged else None
    needed = advice.prompts.needed_limit
    if today is None or today.meters_only or today.limit >= needed:
        return ""
    return (
        f"The largest turn needs {needed:,} {today.unit} with the system message, "
        f"and today’s limit is {today.limit:,}."
    )


def _nothing_saves(advice: Advice) -> str:
    share, saving = (f"{100 * each:.0f} %" for each in (advice.goals.share, advice.goals.saving))
    in_halves = " in each half of the conversations" if advice.measured.conversations > 1 else ""
    nothing = (
        f"No limit that holds enough facts costs {saving} less than sending everything{in_halves}. "
        f"A limit holds enough facts if it holds {share} of them, and no fewer than today’s."
    )
    return f"{nothing} {_nearest(advice, saving)}".rstrip()


def _nearest(advice: Advice, saving: str) -> str:
    """Return why the cheapest shown window that loses no fact is not advised. Returns "" unless
    that window costs less than sending everything.
    """
    lossless = (each for each in advice.others if each.policy and not (each.lost or each.repeated))
    nearest = next(lossless, None)
    if nearest is None or cost_words(nearest.cost) >= cost_words(1):
        return ""
    is_enough = nearest.cost <= 1 - advice.goals.saving + CLOSE
    half = " in one half of the conversations" if is_enough else ""
    cost = f"{cost_name(advice.measured.prices)} {cost_words(nearest.cost)}"
    return f"{subject(nearest)} holds as many facts ({cost}), but saves less than {saving}{half}."


def _kept(advice: Advice, today: Option) -> str:
    than = "sending everything" if _is_all(today) and not today.mixed else "today’s"
    if advice.is_few or not advice.needed:
        other = "" if today.lost else "other "
        return f"No {other}limit that holds every fact saves 10 % or more compared with {than}."
    saves = f"saves less than 10 % compared with {than}."
    if today.lost:
        return f"Every other limit holds fewer facts or {saves}"
    return f"Today’s limit loses no fact. Every other limit loses a fact or {saves}"


# What was measured


def measured_words(scope: Scope, is_one: bool = False) -> str:
    """Return a sentence about the conversations that the advice was measured on. `is_one` is True
    on the page of a single conversation.
    """
    if not scope.conversations:
        return _apart(scope).strip()
    calls = f"{scope.calls:,} model {'call' if scope.calls == 1 else 'calls'}"
    if scope.conversations == 1 and scope.in_part:
        owner = "its" if is_one else "the"
        of = "" if is_one else " of 1 conversation"
        on = f"the newest {scope.messages:,} of {owner} {scope.said:,} messages{of}, {calls}"
    elif is_one:
        on = f"this conversation, {scope.said:,} messages, {calls}"
    elif scope.conversations == 1:
        on = f"1 conversation, {calls}"
    else:
        on = f"{scope.conversations:,} conversations, each with the same weight, {calls}"
    return f"Measured on {on}, {_prices_words(scope.prices)}.{_in_part(scope)}{_apart(scope)}"


def _in_part(scope: Scope) -> str:
    """Return a sentence about the number of conversations whose newest messages alone were
    measured.
    """
    if not scope.in_part or scope.conversations == 1:
        return ""
    return (
        f" Of {scope.in_part:,} long "
        f"{'conversation' if scope.in_part == 1 else 'conversations'}, only the "
        f"newest messages were measured: {scope.messages:,} of all {scope.said:,} "
        "messages."
    )


def _prices_words(prices: Prices) -> str:
    if prices.priced == "tokens":
        return "in tokens, because no price of cached input is chosen"
    return f"at {prices.source or 'prices of your own'}"


def _apart(scope: Scope) -> str:
    """Return a sentence about the conversations that were not counted, by reason. Conversations
    that are far larger than the rest are named.
    """
    parts = []
    for reason, ids in scope.left_out.items():
        named = ""
        if reason is LeftOut.OUTLIER:
            more = len(ids) - NAMED
            named = f" ({', '.join(ids[:NAMED])}{f' and {more:,} more' if more > 0 else ''})"
        parts.append(f"{len(ids):,} {reason.value}{named}")
    return f" Conversations not counted: {'; '.join(parts)}." if parts else ""


def dominated_words(advice: Advice) -> str:
    """Return a sentence that says how many tried windows are worse than another option (see
    `Advice.dominated`). Return "" if no window is worse.
    """
    if not advice.dominated:
        return ""
    limits = "1 limit is" if advice.dominated == 1 else f"{advice.dominated:,} limits are"
    return f"{limits} not offered: another option costs less and holds no fewer facts."


def answer_of(advice: Advice) -> JsonDict:
    """Return the advice as a JSON object for programs."""
    return {
        "verdict": advice.verdict.value,
        "recommended": advice.recommended,
        "why": sentence(advice),
        "measured": advice.measured.to_dict(),
    }


def sentence(advice: Advice) -> str:
    """Return the whole advice in one line, without the last full stop, for commands and
    programs.
    """
    parts = [headline(advice), effect(advice), why(advice), measured_words(advice.measured)]
    return ". ".join(part.rstrip(".") for part in parts if part)
