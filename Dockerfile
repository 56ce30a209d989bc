# The site with gunicorn, from the wheel of this checkout: docs/operations.md, "Containers".
# For another Python: docker build --build-arg PYTHON=3.13.7-slim-bookworm
ARG PYTHON=3.12.11-slim-bookworm
FROM python:${PYTHON} AS build
WORKDIR /build
COPY requirements-serve.txt requirements-build.txt ./
RUN python -m venv /app \
    && /app/bin/pip install --no-cache-dir --require-hashes -r requirements-serve.txt \
    && python -m pip install --no-cache-dir --require-hashes -r requirements-build.txt
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY chatmemory chatmemory
COPY inspector inspector
COPY pytest_chatmemory pytest_chatmemory
COPY templates templates
COPY static static
RUN python -m pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir dist . \
    && /app/bin/pip install --no-cache-dir --no-deps dist/*.whl

FROM python:${PYTHON}
RUN useradd --system --uid 10001 chatmemory \
    && mkdir --mode 700 /var/lib/chatmemory \
    && chown chatmemory /var/lib/chatmemory
COPY --from=build /app /app
COPY deploy/gunicorn.conf.py deploy/start /app/deploy/
ENV PATH=/app/bin:$PATH \
    CHATMEMORY_VAR=/var/lib/chatmemory \
    CHATMEMORY_BIND=0.0.0.0:8000 \
    CHATMEMORY_METRICS_DIR=/tmp/metrics \
    CHATMEMORY_LOG=json \
    XDG_CACHE_HOME=/tmp/cache
WORKDIR /app
USER 10001
VOLUME /var/lib/chatmemory
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/readyz', timeout=4)"]
CMD ["/app/deploy/start"]
