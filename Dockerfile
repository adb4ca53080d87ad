# One image for the three processes; the command says which: api, worker or gateway (or serve, for all of them).
FROM node:24-bookworm-slim AS packages
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --ignore-scripts

FROM node:24-bookworm-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends ffmpeg bubblewrap \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY --from=packages /app/node_modules ./node_modules
COPY package.json ./
COPY src ./src
COPY web ./web
ENV NODE_ENV=production HOST=0.0.0.0 DATA_DIR=/data
RUN install -d -o node -g node -m 0700 /data
USER node
VOLUME /data
EXPOSE 8080 8081 8082
# As in script/env.sh.
ENTRYPOINT ["node", "--max-semi-space-size=4", "src/main.ts"]
CMD ["api"]
