"""The recorder's proxy. It passes each request on to its provider unchanged, and the answer
back chunk by chunk. Each piece of a request is written to a file of the spool as soon as the
provider has it, and each piece of an answer before the client has it.

The package runs in its own process and imports nothing else of this project, so that it restarts
quickly after a crash.
"""
