import { describe, expect, test } from 'vitest';
import { sourceName } from '../src/source-name.ts';

const page = new URL('https://media.example/watch');

describe('the name of a source', () => {
  test.each([
    ['attachment; filename="talk.mp4"', 'talk.mp4'],
    ['inline; filename=talk.mp4', 'talk.mp4'],
    ['attachment; filename="talk.mp4"; filename*=UTF-8\'\'Gr%C3%B6%C3%9Fe.mp4', 'Größe.mp4'],
    ['attachment; filename="../../etc/passwd.mp4"', 'passwd.mp4'],
    ['attachment; filename="C:\\\\temp\\\\talk.mp4"', 'talk.mp4'],
    ['attachment; filename="a<b>c:d|e?f*g.mp4"', 'a_b_c_d_e_f_g.mp4'],
    ['attachment; filename="..hidden.mp4"', 'hidden.mp4'],
    ["attachment; filename*=UTF-8''a%0D%0Ab%00c.mp4", 'abc.mp4'],
    ["attachment; filename*=UTF-8''evil%E2%80%AE4pm.exe", 'evil4pm.exe'],
    ['attachment; filename="  spaced.mp4 "', 'spaced.mp4'],
  ])('comes from Content-Disposition %s', (header, name) => {
    expect(sourceName(header, page, page)).toBe(name);
  });

  test.each([
    ['https://media.example/a/b/talk.mp4?token=1', 'talk.mp4'],
    ['https://media.example/Gr%C3%B6%C3%9Fe.mp4', 'Größe.mp4'],
    ['https://media.example/a%2Fb.mp4', 'b.mp4'],
    ['https://media.example/..%2f..%2fb.mp4', 'b.mp4'],
    ['https://media.example/broken%E0%A4%A.mp4', 'broken%E0%A4%A.mp4'],
    ['https://media.example/watch', 'watch'],
    ['https://media.example/', undefined],
    ['https://media.example/%2e%2e%2f', undefined],
    ['https://media.example/%00', undefined],
  ])('or from the path of %s', (url, name) => {
    expect(sourceName(undefined, new URL(url), new URL(url))).toBe(name);
  });

  test('is the one with an extension, whichever of them that is', () => {
    const final = new URL('https://cdn.example/objects/talk.mp4');
    expect(sourceName(undefined, page, final)).toBe('talk.mp4');
    expect(sourceName('attachment; filename="download"', page, final)).toBe('talk.mp4');
    const asked = new URL('https://media.example/asked.mp4');
    expect(sourceName(undefined, asked, new URL('https://cdn.example/3f2a'))).toBe('asked.mp4');
  });

  test.each(['attachment', 'attachment; filename=', '; ; ;', '"', 'filename'])(
    'survives the header %s',
    (header) => expect(sourceName(header, page, page)).toBe('watch'),
  );

  test('is cut to 150 bytes with its extension kept and no character halved', () => {
    const name =
      sourceName(`attachment; filename*=UTF-8''${'%F0%9F%8E%BB'.repeat(60)}.mp4`, page, page) ?? '';
    expect(Buffer.byteLength(name)).toBeLessThanOrEqual(150);
    expect(name).toMatch(/^🎻+\.mp4$/u);
  });
});
