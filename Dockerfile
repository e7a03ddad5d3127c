# Images of Moorage: `moorage` runs operator and API, `moorage-workers` the workers of tools, `moorage-pipeline` clones,
# reviews and builds what authors submit.
#   for image in moorage moorage-workers moorage-pipeline; do docker build --target $image -t $image .; done
# Node runs sources as they are, without their types. Programs whose start others wait for are bundled (bundle.ts), and
# the bridge of MCP servers is compiled.

# The image that has the bridge: the stage below, or one that was compiled before.
ARG BRIDGE=bridge-compiled

FROM golang:1.26-bookworm AS bridge-compiled
COPY controller/pipeline/bridge /bridge
RUN cd /bridge && CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o /usr/lib/moorage/mcp-bridge .

FROM ${BRIDGE} AS bridge

# uv, of the version that plans of Python apps install without it.
FROM python:3.11-slim-bookworm AS uv
RUN --mount=type=bind,source=controller/pipeline/plan/python/packages/install.ts,target=/install.ts \
    python3 -m pip install --quiet --no-compile --target /uv "uv==$(sed -n "s/^export const uvVersion = '\(.*\)';/\1/p" /install.ts)"

FROM node:24-bookworm-slim AS base
# git resolves and clones repositories, private ones with ssh; it needs certificates of its own, and Node trusts the same ones. tini ends what
# processes of workers leave behind.
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates git openssh-client tini \
 && rm -rf /var/lib/apt/lists/*
ENV NODE_ENV=production NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt
WORKDIR /app

FROM base AS dependencies
COPY package.json package-lock.json .npmrc ./
# Of mermaid only its parts for browsers are used, of Tesseract the small models and the engine for them, of PDFium
# what Node loads, of eld the small data: the rest is 300 MB.
RUN --mount=type=cache,target=/root/.npm npm ci --omit=dev --ignore-scripts \
 && find node_modules/mermaid/dist -type f ! -name mermaid.esm.min.mjs ! -path '*/chunks/mermaid.esm.min/*.mjs' -delete \
 && rm -r node_modules/@tesseract.js-data/*/4.0.0 \
 && find node_modules/tesseract.js-core -name 'tesseract-core*' ! -name '*-lstm.js' ! -name '*-lstm.wasm' -delete \
 && find node_modules/@embedpdf/pdfium/dist \( -name '*.map' -o -name '*.browser.js' -o -name '*.cjs' \) -delete \
 && find node_modules/eld/src/ngrams -type f ! -name small.js -delete

# What runs, in one place for both images. Dependencies are a layer of their own, since they change seldom.
FROM scratch AS sources
COPY package.json LICENSE /
COPY lib /lib
COPY crds /crds
COPY controller /controller
COPY activator /activator
COPY api /api

# The bundler, with the version and checksums of package-lock.json, and nothing else of what development needs.
FROM base AS bundler
COPY package.json package-lock.json .npmrc ./
RUN --mount=type=cache,target=/root/.npm \
    node -p 'JSON.stringify({ dependencies: { rolldown: require("./package.json").devDependencies.rolldown } })' > bundler.json \
 && mv bundler.json package.json \
 && npm install --ignore-scripts

FROM base AS bundles
COPY --from=dependencies /app/node_modules node_modules
COPY --from=bundler /app/node_modules node_modules
COPY --from=sources / ./
COPY bundle.ts ./
RUN node bundle.ts /bundles/moorage controller/main.ts activator/main.ts api/main.ts api/accounting/metering/shipper/main.ts \
 && node bundle.ts --alone /bundles/moorage-pipeline controller/pipeline/main.ts

# Each image keeps the code of its programs compiled: a process that finds it starts faster and needs less memory. Node
# looks only for what its own user compiled. Without configuration, each program ends as soon as it is loaded.
#
# Bundles take the places of the programs. The sources are for other commands and for the processes that run tools, and
# have files next to them.
FROM base AS moorage
ENV NODE_COMPILE_CACHE=/app/.compiled
COPY --from=dependencies /app/node_modules node_modules
COPY --from=sources / ./
COPY --from=bundles /bundles/moorage ./
RUN mkdir -m 777 .compiled \
 && for main in controller/main.ts activator/main.ts api/main.ts api/accounting/metering/shipper/main.ts; \
    do timeout 20 setpriv --reuid=1000 --regid=1000 --clear-groups node $main > /dev/null 2>&1 || true; done \
 && test -d .compiled/*-1000 \
 && chown -R root:root .compiled && chmod -R u=rwX,go=rX .compiled
# Apps, benchmarks and guides of the catalog, which the API reads.
COPY manifests manifests
# One arena, and memory given back early: what malloc keeps would stay resident.
ENV MALLOC_ARENA_MAX=1 MALLOC_MMAP_THRESHOLD_=131072 MALLOC_TRIM_THRESHOLD_=131072
USER 1000:1000
EXPOSE 8080 9090
CMD ["node", "controller/main.ts"]

# The browser that draws Mermaid, and fonts of most scripts: 660 MB that operator and API have no use for, below what
# changes with each version.
FROM base AS browser
RUN apt-get update \
 && apt-get install -y --no-install-recommends chromium-headless-shell fontconfig fonts-liberation fonts-noto-core fonts-noto-cjk fonts-noto-color-emoji \
 && rm -rf /var/lib/apt/lists/* \
 && fc-cache --really-force --system-only

FROM browser AS moorage-workers
ENV NODE_COMPILE_CACHE=/app/.compiled
COPY --from=dependencies /app/node_modules node_modules
COPY --from=sources / ./
RUN mkdir -m 777 .compiled \
 && { timeout 20 setpriv --reuid=1001 --regid=1001 --clear-groups node api/tools/engine/workers/remote/server-main.ts > /dev/null 2>&1 || true; } \
 && test -d .compiled/*-1001 \
 && chown -R root:root .compiled && chmod -R u=rwX,go=rX .compiled
ENV MALLOC_ARENA_MAX=1 MALLOC_MMAP_THRESHOLD_=131072 MALLOC_TRIM_THRESHOLD_=131072
USER 1001:1001
EXPOSE 8090 9090
CMD ["tini", "--", "node", "api/tools/engine/workers/remote/server-main.ts"]

# The programs that a pipeline runs, and a bundle: neither sources nor packages.
FROM base AS moorage-pipeline
ENV NODE_COMPILE_CACHE=/app/.compiled
COPY --from=moby/buildkit:v0.30.0 /usr/bin/buildkitd /usr/bin/buildctl /usr/bin/buildkit-runc /usr/bin/
COPY --from=zricethezav/gitleaks:v8.30.1 /usr/bin/gitleaks /usr/bin/gitleaks
# A build context of its own: plans copy it into the images of MCP servers, whatever these are based on.
COPY --from=bridge /usr/lib/moorage/mcp-bridge /usr/lib/moorage/mcp-bridge
# Mounted into the steps of Python apps (step-runtime.sh).
COPY --from=uv /uv/bin/uv uv/uv
COPY LICENSE ./
COPY --from=bundles /bundles/moorage-pipeline ./
RUN for stage in clone review build; do timeout 20 node controller/pipeline/main.ts $stage > /dev/null 2>&1 || true; done \
 && test -d .compiled/*-0
# Root inside the user namespace of its pod, which is nobody on the node; BuildKit mounts, so it cannot be less.
USER 0:0
CMD ["node", "controller/pipeline/main.ts"]
