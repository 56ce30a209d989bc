"""What is a secret, and that none is kept: bodies without one are kept byte for byte."""

from __future__ import annotations

import json
import random
import string
import time
from base64 import b64encode
from urllib.parse import quote

import pytest

from inspector.rooms.calls.models import ModelCall
from inspector.rooms.calls.reads import one_call
from inspector.rooms.recorder.proxy.secrets import Cleaner, looks_like_key, secrets, secrets_of
from inspector.rooms.recorder.spool import call_of, exchange_of, read

from .upstream import ANSWER, CHAT, answer_text, chunk, ended, store_all

RANDOM = random.Random(71)
LETTERS = string.ascii_letters + string.digits


def chance(size: int, letters: str = LETTERS) -> str:
    return "".join(RANDOM.choice(letters) for _ in range(size))


HEX = string.hexdigits[:16]
UUID = "-".join(chance(size, HEX) for size in (8, 4, 4, 4, 12))
JWT = f"eyJhbGciOiJIUzI1NiJ9.{chance(60)}.{chance(43)}"
BASIC = b64encode(f"user:{chance(20)}".encode()).decode()
AWS = f"Credential=AKIA{chance(16)}/20261128/eu-central-1/bedrock/aws4_request, Signature="
SIGNATURE = chance(64, HEX)


def header(name: str, secret: str, value: str = "") -> tuple[dict[str, str], str, str]:
    return {name: value or secret}, "", secret


def bearer(secret: str, scheme: str = "Bearer", name: str = "Authorization"):
    return header(name, secret, f"{scheme} {secret}")


def cookie(secret: str, others: str = "theme=dark; "):
    return header("Cookie", secret, f"{others}session={secret}; n=1")


def query(name: str, secret: str):
    return {}, f"?a=1&{name}={quote(secret, safe='')}", secret


# Headers, the query, and the secret of each kind
KINDS = {
    "OpenAI": bearer(f"sk-{chance(48)}"),
    "OpenAI, of a project": bearer(f"sk-proj-{chance(60)}_{chance(30)}-{chance(40)}"),
    "OpenAI, of a service": bearer(f"sk-svcacct-{chance(70)}"),
    "OpenAI, of an admin": bearer(f"sk-admin-{chance(60)}"),
    "Anthropic": header("x-api-key", f"sk-ant-api03-{chance(86)}-{chance(6)}AA"),
    "Anthropic, by OAuth": bearer(f"sk-ant-oat01-{chance(86)}AA"),
    "Azure": header("api-key", chance(32, HEX)),
    "Azure, of today": header("Api-Key", chance(84)),
    "Azure API Management": header("Ocp-Apim-Subscription-Key", chance(32, HEX)),
    "Google, in a header": header("x-goog-api-key", f"AIza{chance(35)}"),
    "Google, in the query": query("key", f"AIza{chance(35)}"),
    "Google, by OAuth": bearer(f"ya29.{chance(120)}"),
    "Groq": bearer(f"gsk_{chance(52)}"),
    "OpenRouter": bearer(f"sk-or-v1-{chance(64, HEX)}"),
    "Mistral": bearer(chance(32)),
    "DeepSeek": bearer(f"sk-{chance(32, HEX)}"),
    "xAI": bearer(f"xai-{chance(80)}"),
    "Perplexity": bearer(f"pplx-{chance(48)}"),
    "Hugging Face": bearer(f"hf_{chance(34)}"),
    "Replicate": bearer(f"r8_{chance(37)}", "Token"),
    "Cohere": bearer(chance(40)),
    "Together": bearer(chance(64, HEX)),
    "Fireworks": bearer(f"fw_{chance(24)}"),
    "NVIDIA": bearer(f"nvapi-{chance(64)}"),
    "Databricks": bearer(f"dapi{chance(32, HEX)}"),
    "LiteLLM": header("x-litellm-api-key", f"sk-{chance(22)}", f"Bearer sk-{chance(22)}"),
    "Portkey": header("x-portkey-api-key", chance(28)),
    "Helicone": bearer(f"sk-helicone-{chance(7)}-{chance(7)}-{chance(7)}", name="Helicone-Auth"),
    "Cloudflare's gateway": bearer(chance(40), name="cf-aig-authorization"),
    "Langfuse": bearer(BASIC, "Basic"),
    "a JSON Web Token": bearer(JWT),
    "a JSON Web Token in a header of its own": header("X-Forwarded-Identity", JWT),
    "AWS, the signature": header("Authorization", SIGNATURE, f"AWS4-HMAC-SHA256 {AWS}{SIGNATURE}"),
    "AWS, the session": header("X-Amz-Security-Token", f"IQoJ{chance(200)}/+{chance(40)}=="),
    "a token of GitHub": header("X-GitHub", f"ghp_{chance(36)}"),
    "a token of Slack": header("X-Bot", f"xoxb-{chance(12)}-{chance(24)}"),
    "a UUID in a header": header("X-Tenant-Pass", UUID),
    "an own token": header("X-Company-Token", f"{chance(20)}+{chance(20)}/{chance(3)}="),
    "without a scheme": header("Authorization", chance(24)),
    "a cookie": cookie(chance(32, HEX)),
    "a cookie of a proxy": cookie(f"{chance(43)}.{chance(20)}-1732788000", "__cf_bm="),
    "a token in the query": query("access_token", f"{chance(40)}+/{chance(3)}="),
    "words of 16 letters": bearer("correcthorsebattery"),
}
KINDS["LiteLLM"] = bearer(f"sk-{chance(22)}", name="x-litellm-api-key")


def everything_of(call: ModelCall) -> str:
    found = one_call(call.memory_id, call.n)
    rows = [str(row.text) for row in found.rows]
    fields = [str(getattr(call, field.name)) for field in ModelCall._meta.get_fields()]
    return "\n".join([*rows, *fields, json.dumps(found.request), json.dumps(found.response)])


def test_there_are_more_than_forty_kinds():
    assert len(KINDS) >= 40


@pytest.mark.parametrize("kind", KINDS)
def test_a_secret_is_kept_nowhere(db, upstream, client, folder, caplog, kind):
    """Not where a program repeats it in its text, an id and its name, nor where a provider does."""
    headers, target, secret = KINDS[kind]

    def answer(handler, got):
        said = f"no such key: {secret}, SLASHES"
        body = ANSWER | {"choices": [{"message": {"role": "assistant", "content": said}}]}
        text = json.dumps(body).replace("SLASHES", secret.replace("/", "\\/"))
        answer_text(handler, text, X_Request_Id=f"req-{secret}", Set_Cookie="a=b")

    upstream.answer = answer
    request = {"model": "m", "messages": [{"role": "user", "content": f"It is {secret}, not x"}]}
    named = {"User-Agent": f"app/1 ({secret})", "X-Client-Request-Id": secret}
    client.post(f"{CHAT}{target}", json=request, headers={**named, **headers})
    (path,) = ended(folder)
    new, spooled = call_of(exchange_of(*read(path))), path.read_bytes()
    (call,) = store_all(folder)
    assert secret.encode() not in spooled
    assert json.dumps(secret)[1:-1].replace("/", "\\/").encode() not in spooled
    assert secret not in everything_of(call)
    assert secret not in caplog.text
    assert (call.is_exact, new.sent.removed) == (False, 3)
    assert "It is [removed], not x" in everything_of(call)


def test_a_secret_that_comes_in_pieces_is_kept_nowhere(db, upstream, client, folder):
    """The model repeats it, each letter in an event of its own."""
    secret = f"sk-proj-{chance(40)}"
    said = f"It is {secret}, {secret[:-1]}."

    def answer(handler, got):
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for letter in said:
            event = {"choices": [{"index": 0, "delta": {"content": letter}}]}
            chunk(handler, f"data: {json.dumps(event)}\n\n".encode())
        chunk(handler, b"data: [DONE]\n\n")
        chunk(handler, b"")

    upstream.answer = answer
    request = {"model": "m", "messages": [{"role": "user", "content": "My key?"}], "stream": True}
    client.post(CHAT, json=request, headers={"Authorization": f"Bearer {secret}"})
    (path,) = ended(folder)
    assert call_of(exchange_of(*read(path))).sent.removed == 1
    assert secret.encode() not in path.read_bytes()
    (call,) = store_all(folder)
    assert secret not in everything_of(call)
    assert f"It is [removed], {secret[:-1]}." in everything_of(call)
    assert not call.is_exact


# Bodies with words of headers that are no secret
PLAIN = {
    "schemes and placeholders": ({"Authorization": "Bearer TOKEN"}, "Authorization: Bearer TOKEN"),
    "Basic": ({"Authorization": "Basic dXNlcg=="}, "Basic dXNlcg== is user"),
    "ollama": ({"Authorization": "Bearer ollama"}, "ollama/llama3"),
    "EMPTY": ({"Authorization": "Bearer EMPTY"}, "the list is EMPTY"),
    "not-needed": ({"X-Api-Key": "not-needed"}, "a key is not-needed"),
    "no key": ({"Authorization": "Bearer sk-no-key-required"}, "key: sk-no-key-required"),
    "a short key": ({"Authorization": "Bearer sk-15-characte"}, "sk-15-characte"),
    "names of cookies": ({"Cookie": "session_of_the_workshop=1; b=2"}, "session_of_the_workshop"),
    "the name of a program": ({"User-Agent": "AsyncOpenAI/Python 3.57.0"}, "AsyncOpenAI/Python"),
    "an id of a request": ({"X-Request-Id": UUID}, UUID),
    "an id of a session": ({"X-Claude-Code-Session-Id": UUID}, UUID),
    "a trace": ({"traceparent": f"00-{chance(32, HEX)}-00f067aa0ba902b7-01"}, "00f067aa0ba902b7"),
    "idempotency": ({"Idempotency-Key": f"stainless-python-retry-{UUID}"}, UUID),
    "an organization": ({"OpenAI-Organization": f"org-{chance(24)}"}, "org-"),
    "a model": ({"X-Model": "claude-3-5-sonnet-20241022"}, "claude-3-5-sonnet-20241022"),
    "a media type": ({"Accept": "application/vnd.api+json"}, "application/vnd.api+json"),
}


@pytest.mark.parametrize("case", PLAIN)
def test_what_is_no_secret_is_kept_byte_for_byte(db, client, folder, case):
    headers, text = PLAIN[case]
    text = f"{text} {next(iter(headers.values()))} {next(iter(headers))}"
    request = {"model": f"x/{text[:40]}", "messages": [{"role": "user", "content": text}]}
    body = json.dumps(request, separators=(",", ":")).encode()
    client.post(CHAT, content=body, headers=headers)
    (path,) = ended(folder)
    new = call_of(exchange_of(*read(path)))
    (call,) = store_all(folder)
    assert one_call(call.memory_id, call.n).body == body
    assert (call.is_exact, new.sent.removed) == (True, 0)


KEYS = [
    *(f"sk-proj-{chance(40)}", chance(16, HEX), chance(24, HEX), chance(32, HEX), UUID, JWT),
    *(chance(24), chance(32), chance(43), f"ghp_{chance(36)}", f"AIza{chance(35)}", BASIC),
    *(f"xoxb-{chance(12)}-{chance(24)}", f"{chance(20)}/{chance(19)}", f"glpat-{chance(20)}"),
    *(f"npm_{chance(36)}", f"SG.{chance(22)}.{chance(43)}", f"AKIA{chance(16)}"),
    *(f"sk_live_{chance(24)}", f"hvs.{chance(90)}", f"lsv2_pt_{chance(32, HEX)}_{chance(10, HEX)}"),
]
WORDS = [
    *("application/json", "text/event-stream", "claude-3-5-sonnet-20241022", "gpt-4o-2024-08-06"),
    *("fine-grained-tool-streaming-2025-05-14", "AsyncOpenAI", "prompt-caching-2024-07-31"),
    *(
        "interleaved-thinking",
        "responses=experimental",
        "2026-11-28T09:30:00.000Z",
        "1732788000000",
    ),
    *("stainless-python-runtime", "resolution-lowest-direct", "gl-python/3.11.4", "no-transform"),
    *("anthropic-sdk-typescript", "CPython", "production-eu-central-1a", "internationalization"),
    *("meta-llama/Llama-3.3-70B-Instruct-Turbo", "1234567890123456789012", "AutomaticFunctions"),
]


@pytest.mark.parametrize("text", KEYS)
def test_keys_look_like_keys(text):
    assert looks_like_key(text)


@pytest.mark.parametrize("text", WORDS)
def test_words_models_and_versions_do_not(text):
    assert not looks_like_key(text)


def test_a_secret_in_pieces_is_found_in_each_way_to_cut_it():
    secret = chance(20).encode()
    whole = b'{"a": "' + secret + b'", "b": "' + secret[:19] + b'"}'
    for size in range(1, len(whole)):
        cleaner = Cleaner(secrets([secret]))
        pieces = [whole[n : n + size] for n in range(0, len(whole), size)]
        found = b"".join(map(cleaner.clean, pieces)) + cleaner.clean(b"", is_last=True)
        assert found == whole.replace(secret, b"[removed]")
        assert cleaner.removed == 1


def test_many_secrets_are_found_like_one():
    """Each in the body, in another spelling of JSON, and across the bounds of slices."""
    values = [f"{chance(18)}/{n}" for n in range(500)]
    cookies = "; ".join(f"c{n}={value}" for n, value in enumerate(values))
    found = secrets_of([(b"Cookie", cookies.encode())])
    body = json.dumps({"texts": [f"{'x' * 61} {value}." for value in values]}).encode()
    body += body.replace(b"/", b"\\/")
    cleaner = Cleaner(found)
    cleaned = cleaner.clean(body) + cleaner.clean(b"", is_last=True)
    assert cleaner.removed == 1000
    assert not [value for value in values if value.encode() in cleaned]
    assert cleaned.count(b"[removed]") == 1000


def cost(cookies: int) -> float:
    """The CPU seconds of reading and removing the secrets of a request, at best."""
    line = "; ".join(f"c{n}={chance(24)}" for n in range(cookies)).encode()
    body = b'{"text": "' + b"words " * 50_000 + b'"}'
    best = 1e9
    for _ in range(5):
        start = time.thread_time()
        cleaner = Cleaner(secrets_of([(b"Cookie", line)]))
        cleaner.clean(body, is_last=True)
        best = min(best, time.thread_time() - start)
    return best


def test_the_cost_of_cookies_is_linear():
    assert cost(4_000) < 8 * cost(1_000)
    assert cost(4_000) < 2
