# Images of Moorage: `moorage` runs operator and API, `moorage-pipeline` clones, reviews and builds what authors submit.
#   docker build --target moorage -t moorage . && docker build --target moorage-pipeline -t moorage-pipeline .
# Sources run as they are (Node strips the types), so nothing is compiled here.

FROM node:24-bookworm-slim AS base
# git resolves and clones repositories; it needs certificates of its own, and Node trusts the same ones.
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates git \
 && rm -rf /var/lib/apt/lists/*
ENV NODE_ENV=production NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt
WORKDIR /app

FROM base AS dependencies
COPY package.json package-lock.json .npmrc ./
RUN --mount=type=cache,target=/root/.npm npm ci --omit=dev --ignore-scripts

# What runs, in one place for both images. Dependencies are a layer of their own, since they change seldom.
FROM scratch AS sources
COPY package.json LICENSE /
COPY lib /lib
COPY crds /crds
COPY controller /controller
COPY activator /activator
COPY api /api

# Compiled code, kept here: a process that finds it starts faster and needs less memory. Without configuration
# each ends as soon as it is loaded; the stages of a pipeline load what each of them needs.
FROM base AS app
ENV NODE_COMPILE_CACHE=/app/.compiled
COPY --from=dependencies /app/node_modules node_modules
COPY --from=sources / ./
RUN for main in controller/main.ts activator/main.ts api/main.ts api/metering/shipper/main.ts api/tools/engine/workers/remote/server-main.ts \
      'controller/pipeline/main.ts clone' 'controller/pipeline/main.ts review' 'controller/pipeline/main.ts build'; \
    do timeout 20 node $main > /dev/null 2>&1 || true; done

FROM app AS moorage
# Apps, benchmarks and guides of the catalog, which the API reads.
COPY manifests manifests
# One arena, and memory given back early: what malloc keeps would stay resident.
ENV MALLOC_ARENA_MAX=1 MALLOC_MMAP_THRESHOLD_=131072 MALLOC_TRIM_THRESHOLD_=131072
USER 1000:1000
EXPOSE 8080 9090
CMD ["node", "controller/main.ts"]

FROM app AS moorage-pipeline
COPY --from=moby/buildkit:v0.30.0 /usr/bin/buildkitd /usr/bin/buildctl /usr/bin/buildkit-runc /usr/bin/
COPY --from=zricethezav/gitleaks:v8.30.1 /usr/bin/gitleaks /usr/bin/gitleaks
# Root inside the user namespace of its pod, which is nobody on the node; BuildKit mounts, so it cannot be less.
USER 0:0
CMD ["node", "controller/pipeline/main.ts"]
