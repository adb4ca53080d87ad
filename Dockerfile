# One image for the three processes; the command says which: api, worker or gateway (or serve, for all of them, with a REDIS_URL).
# Builds with BuildKit and without. docs/operations/deploying.md "Containers" says how to run it, and how its parts are renewed.
FROM node:24-trixie-slim AS node

FROM node AS packages
WORKDIR /app
COPY package.json package-lock.json ./
COPY packages/base/package.json ./packages/base/
COPY packages/chat/package.json ./packages/chat/
COPY packages/chat-telegram/package.json ./packages/chat-telegram/
COPY packages/chat-whatsapp/package.json ./packages/chat-whatsapp/
COPY packages/chat-whatsapp-cloud/package.json ./packages/chat-whatsapp-cloud/
COPY packages/chat-xmpp/package.json ./packages/chat-xmpp/
COPY packages/client/package.json ./packages/client/
COPY packages/contract/package.json ./packages/contract/
COPY packages/kit/package.json ./packages/kit/
COPY packages/media/package.json ./packages/media/
COPY packages/outbound/package.json ./packages/outbound/
COPY packages/testing/package.json ./packages/testing/
# Not packages/mcp, which is a program of its own.
COPY web/package.json ./web/
# Without the workspace of the pages, of which npm installs esbuild nevertheless. TypeScript is an optional peer of valibot: types alone. What runs reads
# no declarations, maps or fluent-ffmpeg's records of its own tests, which are half of the bytes.
RUN npm ci --omit=dev $(printf -- '--workspace=%s ' packages/*) --include-workspace-root --ignore-scripts --no-audit --no-fund \
 && rm -rf node_modules/typescript node_modules/@typescript node_modules/esbuild node_modules/@esbuild node_modules/fluent-ffmpeg/coverage \
 && find node_modules -type f \( -name '*.map' -o -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' \) -delete

# What shows the API references.
COPY script/scalar ./script/
RUN script/scalar

# What browsers get. Made with packages that the service does not need, so in a stage of its own.
FROM node AS pages
WORKDIR /app
COPY package.json package-lock.json ./
COPY packages ./packages
COPY web/package.json ./web/
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund
COPY script/build-web.ts ./script/
COPY web ./web
RUN node script/build-web.ts

# In a stage of its own: as long as the flags are the same, the ffmpeg below comes from the cache whatever else changes in the code.
FROM packages AS flags
COPY script/ffmpeg-flags.ts ./script/
COPY packages ./packages
COPY src ./src
RUN node script/ffmpeg-flags.ts > flags

# The ffmpeg of docs/decisions/0028-lean-ffmpeg.md, and what starts and confines it.
FROM node AS ffmpeg
WORKDIR /app
COPY script/bootstrap script/env.sh script/ffmpeg script/ffmpeg.patch ./script/
COPY packages/media/src/requirements.ts packages/media/src/*.c ./packages/media/src/
COPY --from=flags /app/flags ./
RUN script/ffmpeg flags

# Without npm, yarn and the headers that are beside Node in its image.
FROM debian:trixie-slim AS base
# tini is process 1: it collects orphans of the sandbox, and lets the watchdog of the event loop kill its own process, which the
# kernel would not let process 1 do.
RUN apt-get update \
 && apt-get install -y --no-install-recommends tini \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/*-old /var/log/apt /var/log/dpkg.log \
 && groupadd --gid 1000 node && useradd --uid 1000 --gid node --no-create-home node
COPY --from=node /usr/local/bin/node /usr/local/bin/
WORKDIR /app
COPY --from=packages /app/node_modules ./node_modules
COPY --from=ffmpeg /app/.ffmpeg/bin ./.ffmpeg/bin
COPY package.json ./
COPY packages ./packages
COPY src ./src
COPY --from=pages /app/web/dist ./web/dist
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
# Node writes the files for their owner alone, who is the user of the running image: nobody is to change code there.
RUN chown -R root:root .compiled && chmod -R a+rX .compiled

FROM base
COPY --from=compiled /app/.compiled ./.compiled
RUN install -d -o node -g node -m 0700 /data
USER node
VOLUME /data
EXPOSE 8080 8081 8082
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 CMD ["node", "/app/src/cli/health.ts"]
# The flag as in script/env.sh and in the first line of bin/soundpost.js (docs/decisions/0009-young-generation.md).
ENTRYPOINT ["tini", "--", "node", "--max-semi-space-size=4", "/app/src/main.ts"]
CMD ["api"]
