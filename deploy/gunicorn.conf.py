"""Several processes on one machine: `gunicorn --config deploy/gunicorn.conf.py`.

WEB_CONCURRENCY         processes, 2 unless said; two per core serve most sites
CHATMEMORY_BIND         address and port, or unix:/path; a proxy that ends TLS stands before it
CHATMEMORY_METRICS_DIR  an empty folder where the processes share their metrics
"""

import os
import shutil
from pathlib import Path

from inspector.observability.logs import logging_settings

wsgi_app = "inspector.project.asgi:application"
worker_class = "inspector.project.worker.Worker"
workers = int(os.environ.get("WEB_CONCURRENCY", "2"))
bind = os.environ.get("CHATMEMORY_BIND", "127.0.0.1:8000")
timeout = 60
graceful_timeout = 30
keepalive = 75

logconfig_dict = logging_settings(os.environ.get("CHATMEMORY_LOG") or "text", log_changes=True)
logconfig_dict["loggers"]["gunicorn.error"] = {"level": "INFO", "handlers": ["stderr"]}

_metrics = os.environ.get("CHATMEMORY_METRICS_DIR")
if _metrics:
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = _metrics


def on_starting(server):
    """What processes of an earlier start left is of no use."""
    if _metrics:
        shutil.rmtree(_metrics, ignore_errors=True)
        Path(_metrics).mkdir(parents=True)


def child_exit(server, worker):
    if _metrics:
        from prometheus_client import multiprocess

        multiprocess.mark_process_dead(worker.pid)
