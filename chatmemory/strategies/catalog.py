"""The list of strategies: those of agent frameworks, chatmemory's own windows, and those of other
packages.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version

from chatmemory.exceptions import InvalidValue
from chatmemory.recall.cost import NO_BOUNDS, Bill, CacheRules
from chatmemory.registry import Registry
from chatmemory.strategies.measuring import Conversation, Measured, measure
from chatmemory.strategies.runs import Function, FunctionRun, Run, Settings, flushed_at
from chatmemory.strategies.summaries import StandIn

GROUP = "chatmemory.strategies"  # of entry points
EXTRA = "strategies"


@dataclass(frozen=True)
class Strategy:
    """A way to choose the messages of each prompt, with texts for reports.

    - `name`: the name on the command line. `label` is the name in reports.
    - `start`: the class or function that returns a new `Run`, such as `langchain:TrimRun`; "" for a
      user's function.
    - `call`: the framework's call as text, such as `Memory.from_defaults(token_limit={tokens})`.
      `{tokens}` and `{messages}` stand for the limits in `Settings`, and `{flushed}` for a tenth of
      `{tokens}`.
    - `like`: a text that compares the strategy with chatmemory's policies.
    - `page`: the URL of the framework's page about the strategy; "" if there is none.
    - `package`: the framework's package, which must be installed; "" for chatmemory's windows and
      users' functions.
    - `function`: a user's function that chooses the messages, else None.
    """

    name: str
    label: str
    start: str
    call: str
    like: str
    page: str = ""
    package: str = ""
    function: Function | None = None

    @property
    def version(self) -> str:
        """The installed version of `package`; "" if it is not installed, or if there is no
        package.
        """
        if not self.package:
            return ""
        try:
            return version(self.package)
        except PackageNotFoundError:
            return ""

    @property
    def is_installed(self) -> bool:
        return not self.package or bool(self.version)

    @property
    def how_to_install(self) -> str:
        return f"not installed: pip install '{self.package}'"

    def shown_call(self, settings: Settings) -> str:
        """Return the framework's call as text, such as `ClearToolUsesEdit(trigger=4000, keep=3)`.
        The limits in the call are those of the settings.
        """
        return self.call.format(
            tokens=settings.tokens,
            messages=settings.messages,
            flushed=flushed_at(settings.tokens),
        )

    def run(self, settings: Settings) -> Run:
        """Return a new run of the strategy, without messages. Raises ImportError if the package is
        not installed.
        """
        if self.function is not None:
            return FunctionRun(self.function)
        module, _, name = self.start.partition(":")
        begin: Callable[[Settings], Run] = getattr(
            import_module(f"chatmemory.strategies.{module}"), name
        )
        return begin(settings)


# What each is, where its page is, and the newest version that was measured: docs/strategies.md.
STRATEGIES = (
    Strategy(
        "message_window",
        "Message window",
        "own_windows:message_window",
        "MessageWindowChatMemory(max_messages={messages})",
        "Our message_window, which is equal to LangChain4j's MessageWindowChatMemory.",
        "https://docs.langchain4j.dev/tutorials/chat-memory",
    ),
    Strategy(
        "token_window",
        "Token window",
        "own_windows:token_window",
        "TokenWindowChatMemory(max_tokens={tokens})",
        "Our token_window, which is equal to LangChain4j's TokenWindowChatMemory.",
        "https://docs.langchain4j.dev/tutorials/chat-memory",
    ),
    Strategy(
        "token_window_in_blocks",
        "Token window, trimmed to 50 %",
        "own_windows:token_window_in_blocks",
        "TokenWindowChatMemory(max_tokens={tokens}, low_water=0.5)",
        "Our token_window with low_water=0.5. LangChain4j has no such option.",
    ),
    Strategy(
        "langchain_trim",
        "LangChain trim_messages",
        "langchain:TrimRun",
        'trim_messages(messages, max_tokens={tokens}, strategy="last", start_on="human", '
        "include_system=True, token_counter=…)",
        "Nearly our token_window with snap_to_user. It has no state: if no user message fits, the "
        "prompt has the system message only.",
        "https://docs.langchain.com/oss/python/langchain/short-term-memory",
        "langchain-core",
    ),
    Strategy(
        "langchain_summary",
        "LangChain SummarizationMiddleware",
        "langchain:SummaryRun",
        'SummarizationMiddleware(model, trigger=("tokens", {tokens}), keep=("messages", 20))',
        "Unlike all policies of ours: a summary takes the place of all but the newest 20 messages.",
        "https://docs.langchain.com/oss/python/langchain/middleware/built-in",
        "langchain",
    ),
    Strategy(
        "langchain_clear",
        "LangChain ClearToolUsesEdit",
        "langchain:ClearRun",
        "ClearToolUsesEdit(trigger={tokens}, keep=3)",
        "Like clear_tool_results of our token_window, but no message ever leaves, "
        "and one clearing takes all tool results but the newest 3.",
        "https://docs.langchain.com/oss/python/langchain/middleware/built-in",
        "langchain",
    ),
    Strategy(
        "openai_compaction",
        "OpenAI compaction session",
        "openai_agents:ResponsesCompactionRun",
        "OpenAIResponsesCompactionSession(id, session)",
        "Unlike all policies of ours: after a turn with 10 items that are not the "
        "user's, one encrypted item takes the place of all messages but the user's.",
        "https://openai.github.io/openai-agents-python/ref/memory/"
        "openai_responses_compaction_session",
        "openai-agents",
    ),
    Strategy(
        "google_adk",
        "Google ADK EventsCompaction",
        "google_adk:EventsCompactionRun",
        "EventsCompactionConfig(compaction_interval=5, overlap_size=1)",
        "Unlike all policies of ours: after every 5 turns, a summary takes the "
        "place of these turns and of the turn before them, unless the summary "
        "would be longer.",
        "https://google.github.io/adk-docs/context/compaction",
        "google-adk",
    ),
    Strategy(
        "llama_index",
        "LlamaIndex Memory",
        "llama_index:MemoryRun",
        "Memory.from_defaults(token_limit={tokens}, token_flush_size={flushed})",
        "Nearly our token_window of 70 % of the limit, trimmed by a tenth of the limit, with "
        "snap_to_user. It counts no tool calls.",
        "https://developers.llamaindex.ai/python/examples/memory/memory",
        "llama-index-core",
    ),
    Strategy(
        "agent_framework",
        "Microsoft SlidingWindowStrategy",
        "agent_framework:SlidingRun",
        "SlidingWindowStrategy(keep_last_groups={messages})",
        "Our message_window, if a tool call with its results counted as one message.",
        "https://learn.microsoft.com/en-us/agent-framework/concepts/agents/conversations/compaction",
        "agent-framework-core",
    ),
)


def measured_by(
    strategy: Strategy,
    settings: Settings,
    conversation: Conversation,
    stand_in: StandIn = StandIn.NOTHING,
    rules: CacheRules = NO_BOUNDS,
    everything: Bill | None = None,
) -> Measured:
    """Run a strategy over a conversation, and return its figures.

    - `stand_in`: which text replaces summaries.
    - `rules`: the rules of a provider's prompt cache.
    - `everything`: the bill of sending everything; computed if it is None.

    Raises InvalidValue with the name of the strategy for any error in a framework or a user's
    function.
    """
    try:
        run = strategy.run(settings)
        return measure(conversation, run, stand_in, rules, everything)
    except Exception as error:
        raise InvalidValue(f"the strategy {strategy.name!r} failed: {error!r}") from error


functions: Registry[Function] = Registry(GROUP, {}, callable)


def all_strategies() -> tuple[Strategy, ...]:
    """Return the strategies of chatmemory, then those of entry points. An entry point with the same
    name as a strategy of chatmemory is left out.
    """
    known = {each.name for each in STRATEGIES}
    own = (own_strategy(name, functions[name]) for name in functions if name not in known)
    return (*STRATEGIES, *own)


def own_strategy(name: str, function: Function) -> Strategy:
    """Return a strategy for a user's function, which takes the messages so far and returns those to
    send.
    """
    module = getattr(function, "__module__", "")
    call = f"{module}.{getattr(function, '__qualname__', name)}"
    return Strategy(
        name, name, "", call.replace("{", "{{"), "A function of your own.", function=function
    )


def chosen_strategies(names: str) -> tuple[Strategy, ...]:
    """Return the strategies that `names` lists, such as `"google_adk,llama_index"`. Return all
    strategies for "". Raises InvalidValue for an unknown name.
    """
    known = {each.name: each for each in all_strategies()}
    if not names:
        return tuple(known.values())
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    if unknown := next((name for name in wanted if name not in known), None):
        raise InvalidValue(f"no strategy is called {unknown!r}: choose one of {', '.join(known)}")
    return tuple(known[name] for name in wanted)
