# In place of redis:7-bookworm, as far as docker-compose.yml knows it: Debian's Redis 7, the user's number, the volume.
FROM debian:bookworm-slim
RUN groupadd --system --gid 999 redis && useradd --system --gid redis --uid 999 redis \
 && apt-get update && apt-get install -y --no-install-recommends redis-server \
 && install -d -o redis -g redis /data
VOLUME /data
WORKDIR /data
EXPOSE 6379
CMD ["redis-server"]
