# The locked packages and the wheel are built in one image and run in another, without compilers, npm, pip or root.
# Everything that is fetched has a version and a hash, but for the base image: its digest is given at the build, as
# docs/deploy.md says.
ARG BASE=python:3.13.12-slim-trixie

FROM ${BASE} AS build
WORKDIR /src
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
COPY requirements-build.lock requirements.lock ./
RUN python -m venv --without-pip /opt/build \
 && python -m pip --python /opt/build install --require-hashes --requirement requirements-build.lock \
 && python -m venv --without-pip /opt/postern \
 && python -m pip --python /opt/postern install --require-hashes --requirement requirements.lock
COPY pyproject.toml hatch_build.py package.json package-lock.json .npmrc README.md LICENSE ./
COPY docs docs
COPY src src
RUN PATH=/opt/build/bin:$PATH hatchling build --target wheel --directory /src/dist \
 && python -m pip --python /opt/postern install --no-deps --no-index /src/dist/*.whl

FROM ${BASE}
ARG VERSION=unreleased
LABEL org.opencontainers.image.title="Postern" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.licenses="Apache-2.0"
RUN useradd --system --uid 10001 --no-create-home postern \
 && install --directory --owner=postern --mode=0700 /data \
 && install --directory /workflows
COPY --from=build /opt/postern /opt/postern
ENV PATH=/opt/postern/bin:$PATH \
    POSTERN_HOST=0.0.0.0 \
    POSTERN_DATA_DIR=/data \
    POSTERN_WORKFLOWS=/workflows \
    POSTERN_LOG=json
USER 10001
VOLUME /data
EXPOSE 8080
HEALTHCHECK --start-period=10s --interval=15s --timeout=3s \
    CMD ["python", "-c", "import os; from urllib.request import urlopen; urlopen(f'http://127.0.0.1:{os.environ.get(\"POSTERN_PORT\", 8080)}/healthz', timeout=2)"]
# No shell in between: the program is the one that hears SIGTERM, and ends in order.
ENTRYPOINT ["postern"]
CMD ["serve"]
