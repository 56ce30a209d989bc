"""The plugin for pytest: the fixture `chatmemory`, and the option --chatmemory-baseline.

Every run of pytest imports this module if the package is installed. So the module imports nothing
of chatmemory before a test requests the fixture.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from chatmemory import Policy
    from chatmemory.testing.asserting import Runs
    from chatmemory.testing.figures import Baseline
    from chatmemory.testing.recorded import Recorded

_BASELINE = pytest.StashKey["Baseline"]()
_READ = pytest.StashKey["list[Runs]"]()
_WORKER = "chatmemory_baseline"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("chatmemory", "recorded conversations")
    group.addoption(
        "--chatmemory-baseline",
        metavar="FILE",
        help="compare the figures of the conversations that tests read with this file; "
        "figures that the file lacks are added to it",
    )


class ChatMemoryFiles:
    """The value of the fixture `chatmemory`, which reads recorded conversations. Paths are relative
    to pytest's rootdir.
    """

    def __init__(self, root: Path, note: Callable[[Runs], None]) -> None:
        self._root, self._note = root, note

    def transcript(
        self,
        path: str | Path,
        policy: str | Policy | None = None,
        *,
        name: str | None = None,
        format: str = "auto",
        terms: Sequence[str] = (),
        prefixes: Sequence[str] = (),
    ) -> Runs:
        """Return the conversation in a file, replayed under a policy. Without a policy, memory
        keeps everything.

        If the file has several conversations, `name` chooses one of them. `terms` count as facts,
        too, and so do words that begin with one of the `prefixes`. Raises InvalidValue.
        """
        __tracebackhide__ = True
        from chatmemory.testing.asserting import runs_of

        runs = self._read(path, policy, format, terms, prefixes)
        return self._noted(runs_of(str(path), runs, name=name))

    def transcripts(
        self,
        path: str | Path,
        policy: str | Policy | None = None,
        *,
        format: str = "auto",
        terms: Sequence[str] = (),
        prefixes: Sequence[str] = (),
    ) -> Runs:
        """Return all conversations of a folder or file, replayed under a policy. The arguments are
        those of `transcript`.
        """
        __tracebackhide__ = True
        from chatmemory.testing.asserting import Runs

        return self._noted(Runs(str(path), self._read(path, policy, format, terms, prefixes)))

    def _read(
        self,
        path: str | Path,
        policy: str | Policy | None,
        format: str,
        terms: Sequence[str],
        prefixes: Sequence[str],
    ) -> Sequence[Recorded]:
        __tracebackhide__ = True
        from chatmemory import ChatMemoryError, InvalidValue
        from chatmemory.recall.facts import words_of
        from chatmemory.testing.asserting import read_runs

        try:
            words = words_of(terms, prefixes)
            return read_runs([self._root / path], policy, format=format, words=words)
        except ChatMemoryError as error:
            raise InvalidValue(str(error)) from None

    def _noted(self, runs: Runs) -> Runs:
        self._note(runs)
        return runs


@pytest.fixture
def chatmemory(request: pytest.FixtureRequest) -> ChatMemoryFiles:
    """The fixture `chatmemory`: it reads recorded conversations, so that a test can assert how
    memory treats them.
    """
    runs = request.node.stash.setdefault(_READ, [])
    return ChatMemoryFiles(request.config.rootpath, runs.append)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Run a test. If it passes and --chatmemory-baseline is given, compare the figures of the
    test's conversations with the baseline. The test then fails if a figure is worse.
    """
    result = yield
    _compare(item)
    return result


def _compare(item: pytest.Item) -> None:
    __tracebackhide__ = True
    baseline = _baseline(item.config)
    if baseline is None:
        return
    from chatmemory.testing.figures import figures_of_runs, key_of, worsened

    found = []
    for runs in item.stash.get(_READ, ()):
        key = key_of(runs.what, runs)
        found.append(worsened(key, baseline.compare(key, figures_of_runs(runs))))
    if worse := "\n".join(filter(None, found)):
        pytest.fail(worse, pytrace=False)


def _baseline(config: pytest.Config) -> Baseline | None:
    if not (path := config.getoption("chatmemory_baseline")):
        return None
    if _BASELINE not in config.stash:
        from chatmemory.testing.figures import Baseline

        config.stash[_BASELINE] = Baseline(Path(path))
    found: Baseline = config.stash[_BASELINE]
    return found


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the new entries of the baseline to its file. A worker of pytest-xdist passes them to
    the main process instead.
    """
    config = session.config
    baseline = config.stash.get(_BASELINE, None)
    if baseline is None:
        return
    if hasattr(config, "workeroutput"):
        config.workeroutput[_WORKER] = baseline.added
    else:
        baseline.write()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:  # of pytest-xdist, which need not be installed
    """Take over the new entries of the baseline from a worker of pytest-xdist."""
    added = getattr(node, "workeroutput", {}).get(_WORKER)
    if added and (baseline := _baseline(node.config)):
        baseline.added.update(added)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    baseline = config.stash.get(_BASELINE, None)
    if baseline is not None and baseline.added:
        terminalreporter.write_line(
            f"chatmemory: {len(baseline.added)} new in the baseline {baseline.path}"
        )
