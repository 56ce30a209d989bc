"""The recorder: a process between an app and its provider, and one that stores what it saw.

`proxy` passes requests on and writes what it sees into files, the spool. `spool` reads these files,
and `storing` stores the calls. `supervision` starts the two, and starts them again.
"""
