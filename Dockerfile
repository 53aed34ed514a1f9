# The locked packages and the wheel are built in one image and run in another, without compilers, npm or root.

FROM python:3.13-slim AS build
WORKDIR /src
RUN python -m venv /opt/postern
ENV PATH=/opt/postern/bin:$PATH PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
COPY requirements.lock .
RUN pip install --require-hashes --requirement requirements.lock
COPY pyproject.toml hatch_build.py package.json package-lock.json .npmrc README.md ./
COPY src src
RUN pip install --no-deps .

FROM python:3.13-slim
RUN useradd --system --uid 10001 --no-create-home postern \
 && install --directory --owner=postern --mode=0700 /data \
 && install --directory /workflows
COPY --from=build /opt/postern /opt/postern
ENV PATH=/opt/postern/bin:$PATH \
    POSTERN_HOST=0.0.0.0 \
    POSTERN_DATA_DIR=/data \
    POSTERN_WORKFLOWS=/workflows \
    POSTERN_LOG=json
USER postern
VOLUME /data
EXPOSE 8080
HEALTHCHECK --start-period=10s --interval=15s --timeout=3s \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8080/healthz', timeout=2)"]
ENTRYPOINT ["postern"]
CMD ["serve"]
