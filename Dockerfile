# One image for the three processes; the command says which: api, worker or gateway (or serve, for all of them, with a REDIS_URL).
# Builds with BuildKit and without. docs/operations.md "Containers" says how to run it.
FROM node:24-bookworm-slim AS packages
WORKDIR /app
COPY package.json package-lock.json ./
# TypeScript is an optional peer of a package below tus: types alone.
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund && rm -rf node_modules/typescript node_modules/@typescript

# What shows the API references.
COPY script/scalar ./script/
RUN script/scalar

# What confines ffmpeg where the engine allows no user namespaces.
FROM node:24-bookworm-slim AS confine
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev
COPY src/media/start.c ./
RUN gcc -static -O2 -o /soundpost-start start.c

FROM node:24-bookworm-slim AS base
# tini is process 1: it collects orphans of the sandbox, and lets the watchdog of the event loop kill its own process, which the
# kernel would not let process 1 do. npm has no work in the running image.
RUN apt-get update \
 && apt-get install -y --no-install-recommends ffmpeg bubblewrap tini \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/apt /var/log/dpkg.log \
    /usr/local/lib/node_modules /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack /opt/yarn* /usr/local/bin/yarn*
COPY --from=confine /soundpost-start /usr/local/bin/
WORKDIR /app
COPY --from=packages /app/node_modules ./node_modules
COPY package.json ./
COPY src ./src
COPY web ./web
COPY --from=packages /app/web/reference/scalar.js ./web/reference/
ENV NODE_ENV=production HOST=0.0.0.0 DATA_DIR=/data NODE_COMPILE_CACHE=/app/.compiled

# What Node compiles of the code, done once: by the user and with the flags of the running image, or Node would not find it.
FROM base AS compiled
RUN install -d -o node .compiled
USER node
RUN node --max-semi-space-size=4 src/main.ts --help >/dev/null \
 && { node src/cli/health.ts || true; } \
 && node --max-semi-space-size=4 --input-type=module --eval \
    'for (const name of ["api", "gateway", "worker"]) await import(`/app/src/${name}/start.ts`); process.exit()'
USER root
# Node writes the files for their owner alone.
RUN chmod -R a+rX .compiled

FROM base
COPY --from=compiled /app/.compiled ./.compiled
RUN install -d -o node -g node -m 0700 /data
USER node
VOLUME /data
EXPOSE 8080 8081 8082
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 CMD ["node", "/app/src/cli/health.ts"]
# The flag as in script/env.sh and in the first line of src/main.ts (docs/decisions/0009-young-generation.md).
ENTRYPOINT ["tini", "--", "node", "--max-semi-space-size=4", "/app/src/main.ts"]
CMD ["api"]
