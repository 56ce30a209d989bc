"""manage.py compactions, of session files. It needs no database, and these tests have none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from docs.images import compactions

from .formats.test_sessions import Claude

PAGE = Path(__file__).parents[1] / "docs/compaction.md"


@pytest.fixture
def file(tmp_path):
    claude = Claude()
    claude.user("1", "Fix ENT-1182 in cmd/hooks2.go, for 3000 ms.")
    claude.ai("2", "m1", "Reading.")
    claude.compact("3", "The user wants a fix.", "2", trigger="auto", preTokens=150, postTokens=40)
    claude.user("4", "It is ENT-1182.")
    claude.ai("5", "m2", "ENT-1182 is in cmd/hooks2.go, after 3000 ms.")
    path = tmp_path / "session.jsonl"
    path.write_text("\n".join(map(json.dumps, claude.records)))
    return str(path)


def lines(capsys):
    return list(map(json.loads, capsys.readouterr().out.splitlines()))


def test_each_compaction_is_a_line_of_json(file, capsys):
    call_command("compactions", file, "--level", "all", "--json")
    compaction, total = lines(capsys)
    unknown = {"said": 1, "used": 5, "came": None, "back": "no recorded mention"}
    assert compaction == {
        "session": "s",
        "n": 1,
        "tokens_before": 150,
        "tokens_after": 40,
        "replaced": 2,
        "needed": 2,
        "held": 0,
        "lost": [
            {"term": "ENT-1182", "said": 1, "used": 5, "came": 4, "back": "user"},
            {"term": "cmd/hooks2.go", **unknown},
        ],
        "appended": {"25": 2, "50": 2},
        "tail": {"20000": 2},
    }
    sums = {"needed": 2, "held": 0, "appended": {"25": 2, "50": 2}, "tail": {"20000": 2}}
    assert total == {"total": {"level": "all", "compactions": 1, **sums}}


def test_people_read_sentences(file, capsys):
    call_command("compactions", file)  # too few sessions to know what is rare
    instead = (
        "2 with 10 terms, 2 with 25 terms, 2 with 50 terms, 2 with 100 terms; "
        "2 in the last 10,000 tokens, 2 in the last 20,000 tokens"
    )
    first = (
        "s: compaction 1 (auto), 150 became 40 tokens, 2 messages replaced: the summary holds "
        "0 of 2 told exact terms that were needed again; "
    )
    last = "2 lost: 0 came back from a tool, 1 repeated by the user, 1 no recorded mention"
    total = "1 compactions: the summaries hold 0 of 2 told exact terms that were needed again; "
    assert capsys.readouterr().out.splitlines() == [
        first + instead,
        "  lost ENT-1182, said in #1, used in #5: repeated by the user in #4",
        "  lost cmd/hooks2.go, said in #1, used in #5: no recorded mention",
        total + instead,
        last,
    ]


def test_terms_are_rare_if_few_of_the_files_mention_them(file, capsys):
    for files, needed in (2, 2), (3, 0):
        call_command("compactions", *[file] * files, "--level", "rare", "--json")
        assert lines(capsys)[-1]["total"]["needed"] == files * needed
    call_command("compactions", *[file] * 5, "--json")
    assert lines(capsys)[-1]["total"]["level"] == "rare"


def rewound(file, tmp_path, *ways):
    """The session of a file, to whose record `parent` the user went back, once for each of them."""
    records = [json.loads(line) for line in Path(file).read_text().splitlines()]
    claude = Claude()
    claude.records = records
    for n, (parent, *texts) in enumerate(ways):
        for place, text in enumerate(texts):
            speak = (claude.user, lambda uuid, *more, n=n: claude.ai(uuid, f"r{n}-{uuid}", *more))
            speak[place % 2](f"r{n}-{place}", text, *([parent] if not place else []))
    path = tmp_path / f"rewound-{len(ways)}.jsonl"
    path.write_text("\n".join(map(json.dumps, claude.records)))
    return str(path)


@pytest.fixture
def longer(tmp_path):
    claude = Claude()
    claude.user("1", "Fix ENT-1182 in cmd/hooks2.go.")
    claude.ai("2", "m1", "Reading.")
    claude.user("a", "And ENT-1183.")
    claude.ai("b", "m2", "Reading that, too.")
    claude.compact("3", "The user wants a fix.", "b", trigger="auto")
    claude.user("4", "It is ENT-1182.")
    claude.ai("5", "m3", "ENT-1182 and ENT-1183 are in cmd/hooks2.go.")
    path = tmp_path / "longer.jsonl"
    path.write_text("\n".join(map(json.dumps, claude.records)))
    return str(path)


@pytest.mark.needs("evidence")
@pytest.mark.parametrize(
    "parents", [["3-summary"], ["3-summary", "3-summary"], ["2"], ["2", "3-summary"]]
)
@pytest.mark.parametrize("level", ["all", "told", "rare"])
def test_rewinds_change_no_figure(longer, tmp_path, capsys, parents, level):
    file = longer
    ways = [(parent, "Well, forget it.", "Okay.") for parent in parents]
    path = rewound(file, tmp_path, *ways)
    others = [file] * 4  # a corpus in which terms can be rare
    call_command("compactions", file, *others, "--level", level, "--json")
    before = lines(capsys)
    call_command("compactions", path, *others, "--level", level, "--json")
    assert lines(capsys) == before


def test_files_without_a_session_are_named_and_left_out(file, tmp_path, capsys):
    (tmp_path / "chat.json").write_text(json.dumps([{"role": "user", "content": "hi"}]))
    (tmp_path / "titles.jsonl").write_text('{"type": "summary", "summary": "A title"}')
    others = [str(tmp_path / name) for name in ("chat.json", "titles.jsonl", "missing.jsonl")]
    call_command("compactions", *others, file, "--json")
    told = capsys.readouterr()
    assert json.loads(told.out.splitlines()[-1])["total"]["compactions"] == 1
    for words in ("does not record compactions", "no conversation found", "No such file"):
        assert words in told.err
    with pytest.raises(CommandError, match="none of the files holds a session"):
        call_command("compactions", *others)


LACKING = ["198393f2", "839b35f7"]


@pytest.mark.parametrize(
    ("sessions", "level", "expected", "lacking"),
    [
        ("claude_sessions", "rare", (14, 5, 12, 12, 11), ["198393f2"]),
        *(
            pytest.param("all_claude_sessions", *each, LACKING, marks=pytest.mark.long)
            for each in [
                ("all", (38, 17, 31, 31, 29)),
                ("told", (28, 10, 21, 21, 19)),
                ("rare", (18, 8, 13, 13, 12)),
            ]
        ),
    ],
)
def test_the_real_sessions(request, capsys, sessions, level, expected, lacking):
    """Files that lack most replaced messages are named, and their compactions not counted."""
    files = request.getfixturevalue(sessions)
    call_command("compactions", *map(str, files), "--level", level, "--json")
    told = capsys.readouterr()
    *compactions, total = map(json.loads, told.out.splitlines())
    sums = total["total"]
    appended = sums["appended"]
    needed, held = sums["needed"], sums["held"]
    found = (needed, held, appended["25"], appended["50"], sums["tail"]["20000"])
    assert (sums["compactions"], found) == (len(compactions), expected)
    assert len(compactions) == len(files)
    left_out = [line.split()[5][:8] for line in told.err.splitlines()]
    assert left_out == lacking


@pytest.mark.long
def test_the_page_has_the_figures_and_the_plot(all_claude_sessions):
    sums = compactions.sums_of(all_claude_sessions)
    figures = f"{compactions.BEGIN}\n{compactions.table(sums)}\n{compactions.END}"
    assert figures in PAGE.read_text("utf-8")
    assert compactions.PLOT.read_text("utf-8") == compactions.bars(sums)


@pytest.mark.long
def test_the_page_tells_how_lost_terms_came_back(all_claude_sessions, capsys):
    call_command("compactions", *map(str, all_claude_sessions))
    *_, last = capsys.readouterr().out.splitlines()
    assert last in " ".join(PAGE.read_text("utf-8").split())
