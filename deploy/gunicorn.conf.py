"""Several processes on one machine: `gunicorn --config deploy/gunicorn.conf.py`.

WEB_CONCURRENCY         number of processes; default 2, and 2 per core serve most sites
CHATMEMORY_BIND         address and port, or unix:/path; default 127.0.0.1:8000, for a proxy
CHATMEMORY_PROXIES      addresses or networks of the proxies that tell the client's address; default
                        127.0.0.1. On a unix socket, whoever can open it is trusted.
CHATMEMORY_METRICS_DIR  a folder of its own in which the processes share their metrics
"""

import os
import shutil
from pathlib import Path

from inspector.project import handover
from inspector.project.environment import address, env, log_style, networks, number
from inspector.shell.logs import logging_settings

wsgi_app = "inspector.project.asgi:application"
worker_class = "inspector.project.worker.Worker"
workers = number("WEB_CONCURRENCY", 2, minimum=1)
bind = env.str("CHATMEMORY_BIND", "127.0.0.1:8000", validate=address)
proxies = networks("CHATMEMORY_PROXIES", "127.0.0.1")
forwarded_allow_ips = ",".join(proxies)
timeout = 60
graceful_timeout = 30
keepalive = 75
control_socket_disable = True  # systemd controls it; the socket would be in the home folder

logconfig_dict = logging_settings(log_style(), log_changes=True)
logconfig_dict["loggers"]["gunicorn.error"] = {"level": "INFO", "handlers": ["stderr"]}

_metrics = env.str("CHATMEMORY_METRICS_DIR", "")
if _metrics:
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = _metrics


def on_starting(server):
    """Removes the metrics of an earlier start."""
    if _metrics:
        shutil.rmtree(_metrics, ignore_errors=True)
        Path(_metrics).mkdir(parents=True)


def on_reload(server):
    """Has the workers of now go on until a new one has started."""
    handover.reload_begins(server.worker_age)


def child_exit(server, worker):
    """Lets nobody wait for a process that has ended, and adds up its metrics."""
    handover.worker_ended(worker.age)
    if _metrics:
        from inspector.project import metrics_files

        metrics_files.process_ended(_metrics, worker.pid)
