"""Values of answers are compared as whole words, normalized."""

from __future__ import annotations

import pytest

from chatmemory import AiMessage, MessageWindow, UserMessage
from chatmemory.recall.answers import Answers
from chatmemory.recall.incidents import incidents_under
from chatmemory.recall.value_search import MOST_VALUES, Search, Searched
from chatmemory.recall.values import Value, codes_in, longest_first, words_in

SAME = [
    ("a-1182", "It is A-1182."),
    ("#20391", "order 20391"),
    ("LH 454", "flight LH454"),
    ("LH454", "Flight LH 454 was late"),
    ("415-555-0132", "(415) 555-0132"),
    ("4111-1111-1111-1111", "with 4111 1111 1111 1111."),
    ("SW1A 1AA", "to sw1a1aa"),
    ("DE89370400440532013000", "DE89 3704 0044 0532 0130 00"),
    ("B MW 1234", "B-MW 1234"),
    ("10:30", "at 10.30"),
    ("$149.99", "149.99 USD"),
    ("Anna@Example.org", "anna@example.org!"),
    ("www.example.org/menu", "see https://example.org/menu."),
    ("Jürgen Groß", "JURGEN GROSS"),
    ("12, rue des Lilas, Lyon", "12 rue des Lilas, à Lyon"),
    ("20 May 2024", "on 2024-05-20"),
    ("田中太郎", "私は田中太郎です"),
    ("09012345678", "電話番号は０９０-1234-5678です"),
    ("17", "It weighs 17kg."),
    ("Oakridge Branches", "the Oakridge branch"),
    ("Sense Hub", "my sensehub does not start"),
]
OTHERS = [
    ("A-1182", "A-11820 and XA-1182 and A-1182-B"),
    ("149", "149.99"),
    ("anna@example.org", "joanna@example.org"),
    ("Lee", "Leeds"),
    ("A-1182", "A-11   82"),
    ("17", "at 17mph"),
    ("Anna Lee", "Anna. -- Lee"),
    ("Oakridge Branches", "the Oakridge branching"),
    ("12 rue des Lilas", "12 quai, puis une grande belle rue des Lilas"),
    ("A-1182", ""),
]


def values_in(text: str) -> list[Value]:
    return longest_first([*codes_in(text), *words_in(text)])


@pytest.mark.parametrize(("value", "text"), SAME)
def test_the_same_in_other_words(value, text):
    longest = values_in(value)[0]
    assert Searched(text).holds(longest)


@pytest.mark.parametrize(("value", "text"), OTHERS)
def test_a_part_of_something_else(value, text):
    assert not any(Searched(text).holds(each) for each in values_in(value)[:1])


def test_a_part_of_a_longer_code_is_no_value():
    assert {each.text for each in values_in("A-1182") if each.shape == "code"} == {"A-1182"}


def test_a_text_of_capitals_has_no_codes():
    assert not [each for each in values_in("WHERE IS MY ORDER") if each.shape == "code"]


def test_texts_are_searched_for_a_bounded_number_of_values():
    values = [each for n in range(MOST_VALUES * 2) for each in values_in(f"X-{10_000 + n}")[:1]]
    text = " ".join(each.text for each in values)
    assert len(Search(values).found_in(text)) == MOST_VALUES


def answers(*texts):
    speakers = UserMessage, AiMessage
    found = Answers([speakers[n % 2](text) for n, text in enumerate(texts)]).at
    return [each for each in found.get(len(texts) - 1, ()) if each.is_forced]


@pytest.mark.parametrize(
    ("given", "asked", "answer", "found"),
    [
        ("It runs on Postgres 11.4.", "What do you run it on?", "Postgres 11.4, why?", True),
        ("He weighs 17 kilos.", "How heavy is he?", "17kg", True),
        ("It was on 14 March.", "When was it?", "14/03", True),
        ("No hazelnuts, please.", "Any allergies?", "hazelnut", True),
        ("My rent is 1150.", "What is it?", "He asked me what I pay, I said 1150", False),
        ("Question: does it run?", "Tell me which one.", "question: does it stop", False),
        ("I had the menu 12.", "Which menu?", "The menu 12 again", False),
        ("It is in Camden.", "Shall I look in Camden?", "Camden", False),
        ("My name is Wiesner.", "What runs there?", "I don't know, ask Wiesner", False),
        ("I live in Camden.", "I can only plan that if I know the town.", "Camden thx", True),
        ("I live in Camden.", "If you need help, feel free to ask.", "Camden thx", False),
        ("I like olive green.", "Good. And the colour?", "Olive green, to match the rest", True),
        ("It's for M-KL 4471.", "What does the plate say?", "m kl4471", True),
        ("I take the bike to Camden.", "Where does it end?", "isn't Camden the end?", False),
        (
            "I live in Camden.",
            "Is Monday fine? Let me know.",
            "Monday is fine, I'm in Camden",
            False,
        ),
        ("A red bike, please.", "What about the helmet?", "red, too", False),
        ("My code is AX-4471.", "Can it be read?", "AX-4471, on the back of it", True),
        ("A room for two.", "Luggage?", "one for two", False),
        ("It is booked in Camden.", "What did they write?", '"We told you so: Camden"', False),
    ],
)
def test_an_answer_to_any_question(given, asked, answer, found):
    assert bool(answers(given, "Thanks.", "Hm.", asked, answer)) is found


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("How often do I have to say it? Oat milk.", True),
        ("As I wrote when we began, oat milk!", True),
        ("I sound like a broken record: oat milk.", True),
        ("I told you, oat milk, so why do I get cow's?", True),
        ("He said I already told you about oat milk.", False),
        ("What does 'they' mean by \"as we told you, oat milk is out\"?", False),
        ("Did I already tell you about oat milk?", False),
    ],
)
def test_plain_words_beside_a_reminder(said, found):
    assert (
        bool(answers("With oat milk, please.", "Fine.", "Hm.", "With cow's milk.", said)) is found
    )


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("But that is not for Larkspur Close", True),
        ("Thanks, and how far is it to Larkspur Close", False),  # contradicts nothing
        ("But is that near Larkspur Close?", False),
        ("No, my sister said Larkspur Close is full", False),
        ("But not in the close", False),
    ],
)
def test_a_name_that_contradicts_is_found_and_is_not_red(said, found):
    said = "We live in Larkspur Close.", "Fine.", "Hm.", "We deliver to Mill Road.", said
    speakers = UserMessage, AiMessage
    at = Answers([speakers[n % 2](text) for n, text in enumerate(said)]).at
    assert [each.is_forced for each in at.get(4, ())] == ([False] if found else [])


def test_an_amount_beside_a_code_is_no_part_of_the_answer():
    said = "A voucher, VX-4471, worth €40.", "Thanks.", "Hm.", "Could you send me its code again?"
    assert [each.value.text for each in answers(*said, "VX-4471, €40")] == ["VX-4471"]


GIVEN = "My locker combination is XK-4411.", "Thank you."


def test_a_noun_that_no_kind_has_names_a_fact_too():
    asked = "Could you give me the locker combination?"
    assert [each.value.text for each in answers(*GIVEN, "Hm.", asked, "XK-4411")] == ["XK-4411"]
    assert not answers(*GIVEN, "Hm.", "Could you give me more details?", "It is XK-4411.")


@pytest.mark.parametrize(
    ("given", "asked", "answer", "is_one"),
    [
        ("A medium one, size M.", "Which size?", "M", False),  # one sign is no value
        ("I wear size medium.", "Which size would it be?", "Medium, please.", True),
        ("A medium pizza.", "Which size do you wear?", "Medium", False),
        ("I'm Anna.", "What is your name?", "Anna", True),
        ("Anna likes it.", "What is your name?", "Anna", False),
        ("I was born on May 2, 1985.", "What is your date of birth?", "May 2, 1985", True),
        ("I flew on May 2, 1985.", "What is your date of birth?", "May 2, 1985", False),
        ("My birthday is May 2, 1985.", "What is your date of birth?", "1985-05-02", True),
        ("Put it in room 12.", "What is your room number?", "12", True),
        ("I'd like 12 of them.", "What is your room number?", "12", False),
        ("My code is 4711.", "What is your order number?", "It's 4711", True),
        ("My PIN is 4711.", "What is your name?", "4711", False),
        (
            "A voucher, VX-4471, worth €40.",
            "Could you send me its code again?",
            "VX-4471, €40",
            True,
        ),
        ("Order A-1182.", "What is your order number?", "I don't know, but A-1182?", False),
    ],
)
def test_an_answer_is_of_the_kind_that_was_asked_for(given, asked, answer, is_one):
    assert bool(answers(given, "Thanks.", "Hm.", asked, answer)) is is_one


@pytest.mark.parametrize(
    ("answer", "is_one"),
    [
        ("I already told you. It's A-1182.", True),
        ("A-1182. As I said.", True),
        ("It's A-1182, as I said.", True),
        ("As I said, I am angry about this whole affair. Now check A-1182.", False),
        ("As I asked, has A-1182 shipped?", False),
        ("I already told my wife about A-1182.", False),
        ("I already paid A-1182.", False),
    ],
)
def test_a_reminder_is_bound_to_its_fact(answer, is_one):
    assert bool(answers("My order is A-1182.", "Thanks.", "Hm.", "Well.", answer)) is is_one


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("04.03.1981", "geboren am 4. März 1981"),
        ("17/08/1990", "née le 17 août 1990"),
        ("5 de mayo de 2001", "05/05/2001"),
        ("1 dicembre", "nato il 01-12-1970"),
        ("5月9日", "on 9 May"),
        ("08/17/1990", "on August 17, 1990"),
    ],
)
def test_a_day_is_the_same_in_any_language_and_in_numbers(value, text):
    days = [each for each in values_in(value) if each.shape == "date"]
    assert any(Searched(text).holds(each) for each in days)
    assert not any(Searched("on 2 June 1990").holds(each) for each in days)


@pytest.mark.parametrize("written", ["SW1A 1AA", "DE89 3704 0044 0532 0130 00", "AB12 CDE"])
def test_a_code_in_groups_is_repeated_as_a_whole(written):
    texts = [f"It goes to {written}.", "Sure.", "Is it far?", "No.", "Good.", "Yes.", "And now?"]
    users = [UserMessage(text) if n % 2 == 0 else AiMessage(text) for n, text in enumerate(texts)]
    said = [*users[:6], UserMessage(f"Send it to {written} today.")]
    used = [*users, AiMessage(f"Sent to {written}.")]
    for messages in (said, used):
        (found,) = incidents_under(MessageWindow(4), messages)
        assert [fact.fact for fact in found.facts] == [written]


def test_words_of_a_reminder_are_no_part_of_the_answer():
    said = ["I collect it at the Eastgate branch.", "Fine.", "What is it?", "A drill."]
    said += ["Is it new?", "It is. Which branch is it?", "Eastgate, I said so already."]
    messages = [UserMessage(text) if n % 2 == 0 else AiMessage(text) for n, text in enumerate(said)]
    (answer,) = Answers(messages).at[6]
    assert (answer.value.text, answer.is_requested, answer.is_reminded) == ("Eastgate", True, True)
