"""The recorder's proxy. It passes each request on to its provider unchanged, and the answer back
chunk by chunk. Each piece of a call is first written to a file of the spool (the folder of recorded
calls).

The package runs in its own process and imports nothing else of this project, so that it restarts
quickly after a crash.
"""
