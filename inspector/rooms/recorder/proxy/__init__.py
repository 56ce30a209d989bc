"""The recorder's proxy. It passes each request on to its provider unchanged, and the answer back
chunk by chunk. Both are also written to a file of the spool (the folder of recorded calls).

A piece of a request is written as soon as the provider has it, and a piece of an answer before the
client has it. The package runs in its own process and imports nothing else of this project, so that
it restarts quickly after a crash.
"""
