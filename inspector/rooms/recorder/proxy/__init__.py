"""The recorder's proxy. It passes requests on unchanged, and passes answers back chunk by chunk. A
copy of each goes to a file of the spool (the folder of recorded calls).

A part of a request is written after the provider has received it. A part of an answer is written
before the client receives it.

The package runs in its own process. It imports nothing else of this project, so that it restarts
quickly after a crash.
"""
