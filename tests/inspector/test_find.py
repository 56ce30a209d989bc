from __future__ import annotations

import pytest

from chatmemory import (
    AiMessage,
    MessageWindow,
    TokenWindow,
    UserMessage,
    explain,
    queries,
    services,
)
from chatmemory.services import protocol
from inspector import demo

from .markup import said, tree


@pytest.fixture(autouse=True)
def _demo(db):
    demo.load()


def find(client, query: str):
    return client.get(f"/c/order-7741/?{query}").context["page"]


def answer(client, query: str):
    return find(client, query).panel.found.answer


def answer_of(client, url: str):
    return client.get(url).context["page"].panel.found.answer


def test_a_phrase_that_came_back_is_answered_with_the_gap(operator_client):
    now = answer(operator_client, "find=A-1182")
    assert now.question == "Does it still remember “A-1182”?"
    assert now.summary == (
        "Yes, since #47. Forgotten at step 43, when #43 arrived, until #47 said it again. "
        "#47 and #49 are in memory."
    )
    assert [(each.first, each.last, each.is_in) for each in now.periods] == [
        (1, 24, False),
        (25, 42, True),
        (43, 46, False),
        (47, 58, True),
    ]
    assert find(operator_client, "find=A-1182").state.remembered == ((25, 42), (47, 58))


def test_a_phrase_that_left_is_answered_with_the_step(operator_client):
    page = find(operator_client, "at=43&find=A-1182")
    assert page.panel.found.answer.summary == (
        "At step 43: no, forgotten at this step, when #43 arrived. User message #43 arrived +57. "
        "4 messages left −183: #25 and #26 were the oldest, results #27 and #28 left with #26. "
        "Later: User #47 said it again, at step 47."
    )
    assert page.panel.found.answer.receipt[-1].label == "In memory after"
    statements = page.panel.found.groups[0].mentions
    assert [(each.row.seq, each.step) for each in statements] == [
        (49, 49),
        (47, 47),
        (28, 43),
        (27, 43),
        (25, 43),
    ]
    assert statements[-1].tag == "forgotten at step 43 · capacity, when #43 arrived"
    assert statements[0].tag == "said at step 49"


def test_a_phrase_in_memory_at_a_past_step_says_how_it_went_on(operator_client):
    assert answer(operator_client, "at=30&find=a-1182").summary == (
        "At step 30: yes, since #25. #25, #27 and #28 are in memory. "
        "Later: forgotten when #43 arrived, at step 43."
    )


def test_a_phrase_that_is_said_later_is_not_said_yet(operator_client):
    assert answer(operator_client, "at=3&find=A-1182").summary == (
        "At step 3: not said yet. Later: User #25 said it, at step 25."
    )
    assert answer(operator_client, "at=0&find=A-1182").summary == (
        "At step 0: not said yet. Later: User #25 said it, at step 25."
    )


def test_a_question_about_it_is_no_mention_of_it(operator_client):
    """The bot asks for the order number, and its system message speaks of it."""
    page = find(operator_client, "find=order+number")
    assert page.panel.found.answer.cause == (
        "Only in the assistant’s own words (#44) and the system message (#1)."
    )
    assert page.panel.found.answer.detail.startswith(
        "What users and tools said is forgotten since step 43, when #43 arrived."
    )
    assert page.state.remembered == ((25, 42),)
    assert [group.heading for group in page.panel.found.groups] == [
        "Users and tools",
        "The assistant itself",
        "System messages",
    ]
    assert "follow what users and tools said" in page.panel.found.answer.decided_by


def test_what_only_the_assistant_said_is_said_to_be_its_own(operator_client):
    page = find(operator_client, "find=your+confirmation")
    assert page.panel.found.answer.summary == (
        "Only in the assistant’s own words (#44). Forgotten at step 42, when #42 arrived, until "
        "#44 said it again. In memory since #44."
    )
    assert "No user and no tool said it" in page.panel.found.answer.decided_by


def test_a_question_of_the_assistant_alone_is_no_plain_yes(operator_client):
    """The bot asks for the order number, which was said in other words, and is forgotten."""
    where = "nly in the assistant’s own words (#44) and the system message (#1)."
    then = answer(operator_client, "at=45&find=the+order+number")
    assert then.cause == f"At step 45: o{where}"
    key = services.keep_trial("order-7741", [UserMessage("ok")], None)
    simulated = answer(operator_client, f"at=45&find=the+order+number&trial={key}")
    assert simulated.cause == f"O{where}"


def test_the_last_mention_explains_the_consequence(operator_client):
    page = find(operator_client, "at=43&find=A-1182&msg=26")
    assert page.panel.consequence == (
        "Without #25, #26, #27 and #28, nothing in memory mentions “A-1182”."
    )
    assert find(operator_client, "at=43&find=A-1182&msg=2").panel.consequence == ""
    assert find(operator_client, "at=30&find=A-1182&msg=2").panel.consequence == ""


@pytest.mark.parametrize(
    ("phrase", "near"),
    [
        ("A-1183", "A-1182"),
        ("a-118299", "A-1182"),
        ("order zebra", "order"),
        ("A-1182", ""),
        ("zzzz", ""),
        ("  ", ""),
        ("allergy", ""),
        ("all the zebras", ""),
        ("160 elephants", "160"),
    ],
)
def test_a_similar_phrase_is_offered(operator_client, phrase, near):
    page = find(operator_client, f"find={phrase}")
    assert (page.panel.found.nearest if page.panel.found else "") == near


@pytest.mark.parametrize(
    ("said", "near"),
    [
        ("it was 1.182,50.", "1.182,50"),
        ("on 2024-11-82?", "2024-11-82"),
        ("x" * 300 + "1182", ""),
        ("x" * 300 + "1182 or no-1182-b", "no-1182-b"),
    ],
)
def test_a_number_that_is_offered_is_not_cut(operator_client, said, near):
    services.create("said", MessageWindow(5))
    services.add("said", [UserMessage(said)])
    phrase = "1182 zebra" if "1182" in said else said.rstrip(".?").split()[-1][:-1] + "9"
    page = operator_client.get("/c/said/", {"find": phrase}).context["page"]
    assert page.panel.found.nearest == near


def test_a_phrase_that_was_never_said(operator_client):
    assert "It was never said." in answer(operator_client, "find=zebra").summary


def test_the_phrase_is_marked_and_the_link_can_be_shared(operator_client):
    html = operator_client.get("/c/order-7741/?at=43&find=A-1182").content.decode()
    assert html.count("<mark>A-1182</mark>") > 4
    assert "&amp;find=A-1182" in html
    assert "is-hit" in html


def test_hostile_phrases_show_as_text(operator_client):
    html = operator_client.get('/c/order-7741/?find="><script>x</script>').content.decode()
    assert "<script>x" not in html


def test_the_newest_mentions_and_those_in_memory_are_looked_at(operator_client, few_looked_at):
    page = find(operator_client, "find=e")
    here = {seq for seqs in page.state.mentions.present.values() for seq in seqs}
    assert len(page.state.mentions.speakers.keys() - here) <= 20
    answer = page.panel.found.answer
    assert "There are more than 20 mentions: the newest 20 are looked at" in answer.decided_by
    html = operator_client.get("/c/order-7741/?find=e").content.decode()
    assert f'<span class="n">{page.panel.found.count}+</span>' in html


def test_mentions_that_are_not_listed_are_counted(operator_client):
    say([UserMessage("Anna")] * 60, 5)
    assert "and 10 more mentions" in operator_client.get("/c/said/?find=Anna").content.decode()


def test_all_mentions_in_memory_are_named_however_many_they_are(operator_client, few_looked_at):
    say([UserMessage("Anna")] * 100, 90)
    html = operator_client.get("/c/said/?find=Anna").content.decode()
    assert "and at least 40 more mentions" in html
    assert told(operator_client, "").startswith("Yes, since step 81 or earlier. #11 to #100 are")


@pytest.fixture
def few_looked_at(monkeypatch):
    for module in (queries.phrase, explain.phrase):
        monkeypatch.setattr(module, "MATCHES_MAX", 20)


def say(messages, window: int) -> None:
    services.create("said", MessageWindow(window))
    services.add("said", messages)


def told(client, query: str) -> str:
    response = client.get(f"/c/said/?find=Anna&{query}")
    found = response.context["page"].panel.found.answer
    assert found.decided_by in response.content.decode()
    return f"{found.summary} {found.decided_by}"


PART = (
    "There are more than 20 mentions: the newest 20 are looked at, and those in memory at this "
    "step."
)


def test_a_phrase_that_all_say_is_in_memory_at_an_early_step(operator_client, few_looked_at):
    say([UserMessage(f"Anna {n}") for n in range(100)], 5)
    assert told(operator_client, "at=90") == (
        f"At step 90: yes, since step 81 or earlier. #86 to #90 are in memory. {PART}"
    )
    assert told(operator_client, "at=3") == (
        "At step 3: yes, since step 3 or earlier. #1, #2 and #3 are in memory. "
        f"Later: in memory, at step 81. {PART}"
    )
    page = operator_client.get("/c/said/?find=Anna&at=50").context["page"]
    assert [(each.steps, each.why) for each in page.panel.found.answer.periods] == [
        ("Steps 1 to 80", "not looked at"),
        ("Steps 81 to 100", "in memory"),
    ]


def test_what_was_said_too_long_before_is_not_looked_at(operator_client, few_looked_at):
    say([UserMessage("Anna")] * 30 + [AiMessage("Anna?")] * 40, 5)
    assert told(operator_client, "") == (
        "Only in the assistant’s own words (#66 to #70). In memory since step 51 or earlier. "
        f"{PART} Of these, no user and no tool said it: it is found only in the assistant’s own "
        "words."
    )
    at_20 = told(operator_client, "at=20")
    assert at_20.startswith("At step 20: yes, since step 20 or earlier. #16 to #20 are in memory.")
    assert "follow what users and tools said, not the assistant’s own words." in at_20


def test_an_old_mention_that_is_pinned_is_in_memory(operator_client, few_looked_at):
    say([UserMessage("Anna is the name")], 5)
    services.pin("said", 1)
    services.add("said", [UserMessage("hm"), *[AiMessage("Anna")] * 40])
    assert told(operator_client, "").startswith("Yes, since step 43 or earlier. #1 is in memory.")


def test_nothing_is_told_of_steps_before_the_newest_mentions(operator_client, few_looked_at):
    say([UserMessage("Anna"), *[UserMessage("hm")] * 9, *[AiMessage("Anna?")] * 40], 5)
    services.add("said", [UserMessage("Anna")])
    assert told(operator_client, "at=8").startswith(
        "At step 8: no, nothing in memory mentions it. Later: in memory, at step 51."
    )
    assert told(operator_client, "at=15").startswith(
        "At step 15: only in the assistant’s own words (#11 to #15). Later: "
    )


def test_turns_are_told_though_very_many_followed(operator_client):
    say([UserMessage(("Anna", "hm")[n % 2]) for n in range(150)], 1)
    assert told(operator_client, "at=3").startswith(
        "At step 3: yes, since #3. Forgotten at step 2, when #2 arrived, until #3 said it again. "
        "#3 is in memory. Later: forgotten when #4 arrived, at step 4."
    )


@pytest.mark.parametrize(
    ("text", "phrase"), [("Grüße aus MÜNCHEN", "münchen"), ("Ünal", "ü"), ("ΟΔΟΣ 5", "οδος")]
)
def test_letters_of_other_alphabets_are_the_same_in_both_cases(operator_client, text, phrase):
    """A search of all conversations finds them."""
    say([UserMessage(text)], 5)
    page = operator_client.get("/c/said/", {"find": phrase}).context["page"]
    assert page.panel.found.answer.cause == "Yes, since #1."


def test_a_phrase_over_the_lowered_limit_is_hidden(operator_client):
    services.create("lowered", MessageWindow(9))
    services.add("lowered", [UserMessage("the key is 17"), *[UserMessage("hm")] * 3])
    services.change("lowered", policy=MessageWindow(2))
    page = operator_client.get("/c/lowered/?find=key").context["page"]
    assert page.panel.found.answer.summary == (
        "Only over the limit: #1. The model no longer sees it; the next add evicts #1."
    )


def test_what_never_fitted_was_never_in_memory(operator_client):
    services.create("big", TokenWindow(20))
    services.add("big", [UserMessage("hi"), UserMessage("the key is 17 " * 20), UserMessage("ok")])
    page = operator_client.get("/c/big/?find=key").context["page"]
    assert page.state.remembered == ()
    assert page.panel.found.answer.cause == "No, it had no room when it was said, at step 2."
    assert [(each.steps, each.why) for each in page.panel.found.answer.periods] == [
        ("Step 1", "not said yet"),
        ("Steps 2 to 3", "it had no room when it was said, at step 2"),
    ]
    assert answer_of(operator_client, "/c/big/?find=key&at=1").summary == (
        "At step 1: not said yet. Later: it had no room when it was said, at step 2."
    )


def test_what_the_client_put_in_was_never_said(operator_client):
    words = [UserMessage("a"), UserMessage("b")]
    protocol.update_messages("client", words)
    protocol.update_messages("client", [words[0], UserMessage("the key is 17"), words[1]])
    found = operator_client.get("/c/client/?find=key").context["page"].panel.found
    assert found.answer.cause == "Yes, since #3."
    assert found.groups[0].heading == "Put into memory by the client, never said"


def test_a_number_selects_its_message(operator_client):
    page = find(operator_client, "at=43&find=%2326")
    assert (page.msg, page.find) == (26, "")
    assert find(operator_client, "find=%23").find == "#"


def test_a_number_that_no_message_has_says_so(operator_client):
    page = find(operator_client, "at=43&find=%2399999")
    assert page.panel.found.answer.summary == ("There is no message #99999. The newest is #58.")
    assert operator_client.get("/c/order-7741/?msg=99999").status_code == 404


def test_a_search_keeps_the_selected_message_and_the_comparison(operator_client):
    response = operator_client.get("/c/order-7741/?at=43&msg=26&with=20")
    page = tree(response.content.decode())
    sent = {
        each.get("name"): each.get("value") for each in page.iter() if each.get("form") == "find"
    }
    assert sent == {"at": "43", "msg": "26", "with": "20"}
    response = operator_client.get("/c/order-7741/?at=43&msg=26&with=20&find=A-1182")
    why = said(response, "why")
    assert "At step 43: no, forgotten at this step" in why
    assert "Why did #26 leave?" in why


class TestInASimulation:
    """The answer is that of the simulated memory."""

    def page(self, client, *drafts: str, limit: int | None = None, at: int = 42):
        key = services.keep_trial("order-7741", [UserMessage(text) for text in drafts], limit)
        return find(client, f"at={at}&find=A-1182&trial={key}")

    def test_a_phrase_that_would_leave(self, operator_client):
        page = self.page(operator_client, "Here is my mail once more. " * 12)
        answer = page.panel.found.answer
        assert answer.question == "Would it still remember “A-1182”?"
        assert answer.cause == "No, #25, #27 and #28 would leave."
        assert "#25 and #26 are the oldest" in answer.detail
        assert answer.receipt[-1].label == "In memory after"
        assert answer.periods == ()

    def test_a_phrase_that_would_stay(self, operator_client):
        answer = self.page(operator_client, "ok", at=30).panel.found.answer
        assert answer.summary == "Yes. #25, #27 and #28 are in memory."

    def test_a_draft_that_says_it(self, operator_client):
        page = self.page(operator_client, "My order is a-1182. " * 12)
        assert page.panel.found.answer.summary == (
            "Yes. Draft 1 is in memory. #25, #27 and #28 would leave."
        )
        assert page.panel.found.groups[0].mentions[0].row.seq == -1
        html = operator_client.get(f"{page.url}{page.query(42)}").content.decode()
        assert "draft=1" in html
        assert page.panel.found.count == 9

    def test_a_lower_limit_alone(self, operator_client):
        answer = self.page(operator_client, limit=300).panel.found.answer
        assert answer.summary == "No, #25, #27 and #28 would leave."

    def test_what_was_forgotten_before(self, operator_client):
        answer = self.page(operator_client, "hm", at=44).panel.found.answer
        assert answer.question.startswith("Would")
        assert answer.cause == "At step 44: no, forgotten since step 43, when #43 arrived."
        assert "Later" not in answer.detail


def test_one_stretch_that_is_not_listed_is_one_time(operator_client, db):
    services.create("often", MessageWindow(1))
    services.add("often", [UserMessage(word) for word in ["needle", "hay"] * 6 + ["needle"]])
    assert "1 earlier time Step 2" in said(operator_client.get("/c/often/?find=needle"), "why")
