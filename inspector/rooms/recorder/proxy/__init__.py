"""The recorder's proxy. It passes each request on to its provider unchanged, and the answer back
chunk by chunk. It also writes request and answer to a file of the spool (the folder of recorded
calls).

A piece of a request is written after the provider has received the piece. A piece of an answer is
written before the client receives the piece. The package runs in its own process and imports
nothing else of this project, so that it restarts quickly after a crash.
"""
