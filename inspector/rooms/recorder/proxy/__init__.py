"""The recorder's proxy, which passes requests on to providers, and passes answers back to clients
in pieces. It writes requests and answers to files of the spool (the folder of recorded calls).

A piece of a request is written after it was sent to the provider. A piece of an answer is written
before it is sent to the client.

The proxy runs in its own process. It loads nothing else of this project except
`chatmemory/patterns.py`, so that it restarts quickly after a crash.
"""
