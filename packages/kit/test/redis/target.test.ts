import { describe, expect, it } from 'vitest';
import { parseRedisUrl, RedisUrlError } from '../../src/redis/target.ts';

describe('REDIS_URL', () => {
  it.each([
    ['unix:///run/redis.sock', { kind: 'socket', path: '/run/redis.sock' }],
    ['redis://localhost', { kind: 'single', tls: false, node: { host: 'localhost', port: 6379 }, db: 0 }],
    ['rediss://[::1]:7000/2', { kind: 'single', tls: true, node: { host: '::1', port: 7000 }, db: 2 }],
    [
      'redis://:p%40ss%2Fw@h',
      { kind: 'single', tls: false, node: { host: 'h', port: 6379 }, db: 0, password: 'p@ss/w' },
    ],
    [
      'redis://user:with@a/sign@h:1/',
      {
        kind: 'single',
        tls: false,
        node: { host: 'h', port: 1 },
        db: 0,
        username: 'user',
        password: 'with@a/sign',
      },
    ],
    [
      'redis+sentinel://u:p@a:1,b/mymaster/3?sentinelUsername=w&sentinelPassword=%25',
      {
        kind: 'sentinel',
        tls: false,
        sentinels: [
          { host: 'a', port: 1 },
          { host: 'b', port: 26379 },
        ],
        master: 'mymaster',
        db: 3,
        sentinelLogin: { username: 'w', password: '%' },
        username: 'u',
        password: 'p',
      },
    ],
    [
      'rediss+cluster://a:1,[2001:db8::1]:2,c',
      {
        kind: 'cluster',
        tls: true,
        nodes: [
          { host: 'a', port: 1 },
          { host: '2001:db8::1', port: 2 },
          { host: 'c', port: 6379 },
        ],
      },
    ],
  ])('%s is read', (url, target) => {
    expect(parseRedisUrl(url)).toEqual(target);
  });

  it.each([
    ['http://secret@h', /one of the forms/],
    ['redis://a:secret@h:1,i:2', /names one host/],
    ['redis://a:secret@h:99999', /host:port/],
    ['redis://a:secret@h/name', /number of a database/],
    ['redis://secret@h', /needs a password/],
    ['redis://a:secret%@h', /%25/],
    ['redis://a:secret@h?family=6', /no parameter family/],
    ['redis+sentinel://a:secret@h:26379', /name of the master/],
    ['redis+sentinel://h/m?password=secret', /no parameter password/],
    ['redis+cluster://a:secret@h/2', /no databases/],
    ['redis+cluster://', /host:port/],
    ['redis+other://a:secret@h', /one of the forms/],
    ['unix://relative/secret', /whole path/],
  ])('%s is refused with a remedy, and nothing of it is repeated', (url, says) => {
    const refusal = (() => {
      try {
        return parseRedisUrl(url);
      } catch (error) {
        return error;
      }
    })();
    expect(refusal).toBeInstanceOf(RedisUrlError);
    expect((refusal as Error).message).toMatch(says);
    expect((refusal as Error).message).not.toContain('secret');
  });
});
