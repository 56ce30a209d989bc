"""The proxy of the recorder. It passes each request on to its provider as it is, and the answer
back chunk by chunk. What it sees of a call is written into a file of the spool before that.

It is a package of its own in a process of its own, and imports nothing else of this project, so
that it is back soon after a crash.
"""
