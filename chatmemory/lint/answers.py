"""Reads errors of providers: a prompt that is too long, an exceeded rate limit, and the position in
the request that an error names.

The known texts of errors come from the providers' documentation, and from public reports of users.
A number that an error does not give is None, or 0 for `TooLong.reply`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from chatmemory.lint.texts import texts_in
from chatmemory.patterns import declared_pattern

_NUMBER = r"[\d,]{1,12}"  # in place of # in the patterns


class ErrorPlace(NamedTuple):
    """A position in a request, as a provider's error names it.

    `messages.[0].content[1]` has the `list` "messages", `at` 0, and the `rest` ".content[1]". All
    providers' notations are converted to this form.
    """

    list: str
    at: int
    rest: str

    @property
    def path(self) -> str:
        return f"{self.list}[{self.at}]{self.rest}"


@dataclass(frozen=True)
class TooLong:
    """The error that a prompt is too long. A number that the error does not give is None, or 0 for
    `reply`.

    - `tokens`: the size of the prompt.
    - `maximum`: the limit, in tokens, for `tokens` and `reply` together.
    - `reply`: the tokens that are reserved for the answer.
    - `excess`: by how many tokens the limit is exceeded, if the error gives only this number.
    """

    tokens: int | None = None
    maximum: int | None = None
    reply: int = 0
    excess: int | None = None

    @property
    def over(self) -> int | None:
        """The number of tokens by which the prompt is too long. None if the error does not
        say it.
        """
        if self.tokens is None or self.maximum is None:
            return self.excess
        return max(0, self.tokens + self.reply - self.maximum)

    @property
    def fits(self) -> int | None:
        """The most tokens that the prompt may have. None if the error does not say it."""
        return None if self.maximum is None else max(0, self.maximum - self.reply)


@dataclass(frozen=True)
class RateLimited:
    """The error that a rate limit is exceeded, such as 30,000 tokens per minute.

    In this example, `limit` is 30000, `unit` is "tokens" and `period` is "minute". `wait` is the
    time to wait, such as "20s". Values that the error does not give are None or "". With
    `is_spending`, the credit or the budget is used up, and waiting does not help.
    """

    limit: int | None = None
    unit: str = ""
    period: str = ""
    wait: str = ""
    is_spending: bool = False


# tests/lint/wordings.toml has the sources of these wordings.
_TOO_LONG = tuple(
    declared_pattern(each.replace("#", _NUMBER), re.IGNORECASE)
    for each in (
        # Anthropic, also on Bedrock and Vertex AI
        r"prompt is too long: (?P<tokens>#) tokens > (?P<maximum>#) maximum",
        r"exceed context limit: (?P<tokens>#) \+ (?P<reply>#) > (?P<maximum>#)",
        # OpenAI, Azure, DeepSeek, OpenRouter and servers with their API
        (
            r"maximum context length is (?P<maximum>#) tokens.{0,20}?however,? you requested "
            r"(?:about )?(?P<all>#) tokens \([^()]{0,120}?(?P<reply>#) (?:in|for) the "
            r"(?:completion|output)\)"
        ),
        (
            r"maximum context length is (?P<maximum>#) tokens.{0,20}?however,? (?:you|your "
            r"request|your messages) (?:requested|resulted in|has) (?:about )?(?P<tokens>#) "
            r"(?:input )?tokens"
        ),
        # vLLM
        (
            r"maximum context length is (?P<maximum>#) tokens.{0,20}?however,? you requested "
            r"(?P<reply>#) output tokens and your prompt contains (?:at least )?(?P<tokens>#)"
        ),
        (
            r"you passed (?P<tokens>#) input tokens and requested (?P<reply>#) output tokens"
            r".{0,20}?however,? the model's context length is only (?P<maximum>#)"
        ),
        (
            r"the prompt \(total length (?P<tokens>#)\) is too long.{0,60}?context length "
            r"(?P<maximum>#)"
        ),
        r"input prompt \((?P<tokens>#) tokens\) is too long and exceeds limit of (?P<maximum>#)",
        # The servers behind Together and OpenRouter
        r"maximum context length(?: is| of)? \(?(?P<maximum>#)\)? tokens",
        (
            r"input length \(?(?P<tokens>#)\)? exceeds (?:the )?(?:model's )?maximum (?:context|"
            r"allowed input) length (?:of )?\(?(?P<maximum>#)"
        ),
        (
            r"the input \((?P<tokens>#) tokens\) is longer than the model's context length "
            r"\((?P<maximum>#)"
        ),
        (
            r"`?inputs`? tokens \+ `?max_new_tokens`? must be <= (?P<maximum>#)\. given: "
            r"(?P<tokens>#) `?inputs`? tokens and (?P<reply>#)"
        ),
        r"`?inputs`? must have less than (?P<maximum>#) tokens\. given: (?P<tokens>#)",
        r"exceeds the context window of this model",
        r"context_length_exceeded",
        # xAI
        (r"maximum prompt length is (?P<maximum>#) but the request contains (?P<tokens>#) tokens"),
        # Groq and Cerebras
        (
            r"reduce the length of the messages or completion\. current length is (?P<tokens>#) "
            r"while limit is (?P<maximum>#)"
        ),
        r"reduce the length of the messages",
        # Gemini
        (
            r"input token count \(?(?P<tokens>#)\)? exceeds the maximum number of tokens allowed "
            r"\(?(?P<maximum>#)"
        ),
        r"input token count exceeds the maximum number of tokens allowed \(?(?P<maximum>#)",
        # Mistral
        (
            r"prompt contains (?P<tokens>#) tokens.{0,60}?too large for model with (?P<maximum>#) "
            r"maximum context length"
        ),
        # Bedrock Converse
        r"max input tokens: (?P<maximum>#), request input token count: (?P<tokens>#)",
        r"input is too long for requested model",
        # Cohere
        (
            r"total number of tokens (?:in the prompt|\(prompt and prediction\)) cannot exceed "
            r"(?P<maximum>#)(?: - received (?P<tokens>#))?"
        ),
        r"too many tokens: .{0,60}?size limit exceeded by (?P<excess>#) tokens",
        # llama.cpp, Ollama and LM Studio
        (
            r"request \((?P<tokens>#) tokens\) exceeds the available context size "
            r"\((?P<maximum>#) tokens\)"
        ),
        (
            r"exceeds the available context size[^{}]{0,200}?n_prompt_tokens\W{1,6}(?P<tokens>#)"
            r"\W{1,40}n_ctx\W{1,6}(?P<maximum>#)"
        ),
        r"exceeds the available context size",
        r"prompt too long; exceeded (?:max )?context length by (?P<excess>#) tokens",
        r"n_keep[ :(]{1,3}(?P<tokens>#)\)? ?>= n_ctx[ :(]{1,3}(?P<maximum>#)",
        (
            r"trying to keep the first (?P<tokens>#) tokens.{0,90}?context length of only "
            r"(?P<maximum>#)"
        ),
        r"input length exceeds the context length",
        # GitHub Copilot, Kimi and Qwen
        r"prompt token count of (?P<tokens>#) exceeds the limit of (?P<maximum>#)",
        r"exceeded model token limit: (?P<maximum>#) \(requested: (?P<tokens>#)\)",
        r"range of input length should be \[1, (?P<maximum>#)\]",
        r"prompt (?:is )?too long",
    )
)
_SPENDING = (
    r"(?P<spending>insufficient_quota|exceeded your current quota, please check your plan|"
    r"used all available credits|credit balance is too low)"
)
_RATES = tuple(
    declared_pattern(each.replace("#", _NUMBER), re.IGNORECASE)
    for each in (
        # OpenAI and Groq, also "Request too large"
        (
            r"(?:rate limit reached|request too large) for .{1,200}? on (?P<unit>tokens|requests)"
            r" per (?P<period>min|day)\w*+ \(\w{3}\): limit:? (?P<limit>#)"
            r"(?:.{0,200}?try again in (?P<wait>[\dhms.]{1,20}[hms]))?"
        ),
        # Anthropic
        (
            r"rate limit(?: for your organization(?: \([\w-]{1,40}\))?)? of (?P<limit>#) "
            r"(?P<unit>(?:input |output )?tokens|requests) per (?P<period>minute|day)"
        ),
        # Gemini
        (
            r"quota exceeded for .{1,200}?limit: (?P<limit>#)"
            r"(?:[^{}]{0,600}?retry in (?P<wait>[\d.]{1,20}s))?"
        ),
        # Azure OpenAI
        (
            r"exceeded (?P<unit>token|call) rate limit of your current"
            r"(?:.{0,100}?retry after (?P<wait>\d{1,9} seconds))?"
        ),
        r"rate limit is exceeded\. try again in (?P<wait>\d{1,9} seconds)",
        # xAI
        (
            r"too many (?:tokens|requests) for team.{0,200}?(?P<unit>tokens|requests) per "
            r"(?P<period>minute|day) \(actual/limit\): #/(?P<limit>#)"
        ),
        # Bedrock
        r"too many (?P<unit>requests|tokens)(?: per (?P<period>day))?, please wait",
        # The other providers name no number
        r"rate[_ -]?limit(?:ed|[_ ](?:error|exceeded|reached))",
        r"requests rate limit exceeded",
        r"exceeded your per-minute rate limit",
        r"resource has been exhausted",
        r"resource_exhausted",
        r"throttlingexception",
        r"too_?many_?requests",
        r"service tier capacity exceeded",
        _SPENDING,
    )
)
_PLACE = declared_pattern(
    r"(?<![\w.])(?:GenerateContentRequest\.)?(messages|input|contents)(?:\.?\[(\d{1,9})\]|\.(\d{1,9})(?!\w))"
    r"((?:\.?\[\d{1,9}\]|\.[A-Za-z_]\w{0,40}+|\.\d{1,9}(?!\w)){0,12}+)"
)
# Of servers that check requests with Pydantic: ["body", "messages", 0, "user", "name"]
_PARTS = declared_pattern(
    r"""["']body\\?["'], ?\\?["'](messages|input)\\?["'], ?(\d{1,9})"""
    r"""((?:, ?(?:\\?["']\w{1,40}\\?["']|\d{1,9})){0,12}+)"""
)
_PART = declared_pattern(r"(\d{1,9})|([A-Za-z_]\w{0,40}+)", most=1_000)
_STEP = declared_pattern(r"\.?\[(\d{1,9})\]|\.(\d{1,9})(?!\w)", most=1_000)


def too_long(error: str) -> TooLong | None:
    """Return the numbers in an error about a prompt that is too long. None for any other error."""
    texts = _flat_texts(error)
    for pattern in _TOO_LONG:
        for text in texts:
            if found := pattern.search(text):
                named = {name: _count(text) for name, text in found.groupdict().items()}
                reply = named.get("reply") or 0
                tokens, both = named.get("tokens"), named.get("all")
                tokens = tokens if both is None else both - reply
                return TooLong(tokens, named.get("maximum"), reply, named.get("excess"))
    return None


def rate_limited(error: str) -> RateLimited | None:
    """Return the details of an error about an exceeded rate limit. None for any other error."""
    texts = _flat_texts(error)
    for pattern in _RATES:
        for text in texts:
            if found := pattern.search(text):
                named = found.groupdict()
                period = (named.get("period") or "").lower()
                return RateLimited(
                    _count(named.get("limit")),
                    (named.get("unit") or "").lower(),
                    "minute" if period == "min" else period,
                    named.get("wait") or "",
                    is_spending=bool(named.get("spending")),
                )
    return None


def place_in(error: str) -> ErrorPlace | None:
    """Return the first position in a request that an error names, or None if it names none.

    All providers' notations are understood: `messages.[0].role`, `messages[0].role`,
    `messages.0.content.1` or `["body", "messages", 0]`.
    """
    for text in texts_in(error):
        if found := _PARTS.search(text):
            steps = (
                f"[{number}]" if number else f".{name}" for number, name in _PART.findall(found[3])
            )
            return ErrorPlace(found[1], int(found[2]), "".join(steps))
        if found := _PLACE.search(text):
            rest = _STEP.sub(lambda step: f"[{step[1] or step[2]}]", found[4])
            return ErrorPlace(found[1], int(found[2] or found[3]), rest)
    return None


def _flat_texts(error: str) -> list[str]:
    """Return the texts of an error, without the line breaks that a log or a terminal has added."""
    return [" ".join(text.split()) for text in texts_in(error)]


def _count(text: str | None) -> int | None:
    digits = (text or "").replace(",", "")
    return int(digits) if digits else None
