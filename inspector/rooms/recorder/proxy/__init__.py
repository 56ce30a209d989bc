"""The proxy of the recorder. It passes each request on to its provider unchanged, and the answer
back chunk by chunk. Each piece of a call is written to a file of the spool first.

It is a package of its own in a process of its own, and imports nothing else of this project, so
that it is back soon after a crash.
"""
