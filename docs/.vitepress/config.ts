/** The site that script/site.ts makes of the documentation (docs/decisions/0022-docs-site.md). */
import { copyFile, mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { defineConfig } from 'vitepress';
import { LinkedFiles, withLinks } from './links.ts';
import { nav, sidebar } from './navigation.ts';
import { notPages, placeOf } from './pages.ts';
import { search } from './search.ts';
import { slug } from './slug.ts';

const files = new LinkedFiles();

export default defineConfig({
  title: 'Soundpost',
  description:
    'Extracts the audio from a video, calls your webhook, and sends it to a chat as a voice message',
  lang: 'en',
  // Works in any folder of any server.
  base: './',
  srcDir: '..',
  srcExclude: notPages,
  rewrites: placeOf,
  outDir: '../site',
  cacheDir: '../.cache/vitepress',
  head: [['link', { rel: 'icon', href: 'data:,' }]],
  markdown: {
    anchor: { slugify: slug },
    config(md) {
      withLinks(files)(md);
      // Braces of other tools' expressions, such as n8n's, are no expressions of Vue's.
      const inline = md.renderer.rules.code_inline;
      md.renderer.rules.code_inline = (...given) => inline?.(...given).replace('<code', '<code v-pre') ?? '';
    },
  },
  themeConfig: {
    nav: nav(),
    sidebar: sidebar(),
    outline: [2, 3],
    search,
    externalLinkIcon: true,
  },
  async buildEnd({ outDir }) {
    for (const [place, file] of files.copies) {
      await mkdir(dirname(join(outDir, place)), { recursive: true });
      await copyFile(file, join(outDir, place));
    }
  },
});
