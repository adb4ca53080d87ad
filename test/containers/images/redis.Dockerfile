# In place of redis:7-bookworm, as far as docker-compose.yml knows it: Debian's Redis 7, the user's number, the volume.
# Redis 7 is Debian 12's, whose packages come beside those of Debian 13: a whole Debian 12 for them takes a minute more.
FROM debian:trixie-slim
RUN groupadd --system --gid 999 redis && useradd --system --gid redis --uid 999 redis \
 && sed -n '\#^deb [^ ]*security#d; s#^\(deb [^ ]*\) .*#\1 bookworm main#p' /etc/apt/sources.list > /etc/apt/sources.list.d/redis.list \
 && apt-get update && apt-get install -y --no-install-recommends 'redis-server=5:7.*' 'redis-tools=5:7.*' \
 && install -d -o redis -g redis /data
VOLUME /data
WORKDIR /data
EXPOSE 6379
CMD ["redis-server"]
