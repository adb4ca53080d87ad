/** Where a planted fault says that its promise stands: `api.md "Fetch": …`, `errors.md JOB_NOT_FOUND: …`, `client README: …`, `decision 31: …`. */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';

const NAMED =
  /^(?:decisions?[ /](?<decision>\d+)|(?<pkg>\w+ )?(?<readme>README)|(?<page>[\w/-]+\.md|CHANGELOG))(?: "(?<section>[^"]+)"| (?<name>[\w.]+(?: \w+)?))?(?=:)/;

/**
 * What is wrong with where the promise stands; nothing where it names no page, but the contract.
 * @param root the project's folder
 */
export function wrongPlace(promise: string, root: string): string | undefined {
  const { decision, pkg, readme, page, section, name } = NAMED.exec(promise)?.groups ?? {};
  let found: readonly string[];
  if (decision !== undefined) found = filesOf(root, `docs/decisions/${decision.padStart(4, '0')}-*.md`);
  else if (readme !== undefined)
    found = filesOf(root, pkg === undefined ? 'README.md' : `packages/${pkg.trim()}/README.md`);
  else if (page === undefined) return /\.md\b/.test(promise) ? 'names a page in a way of its own' : undefined;
  else found = pagesNamed(page.endsWith('.md') ? page : `${page}.md`, root);
  const [file] = found;
  if (file === undefined) return 'names a page that does not exist';
  if (found.length > 1) return `may mean ${found.join(' or ')}`;
  const text = readFileSync(join(root, file), 'utf8');
  if (section !== undefined && !placesIn(text).some((place) => place.includes(section.replaceAll('`', ''))))
    return `${file} has no section, row or term "${section}"`;
  if (name !== undefined && !name.split(' ').every((word) => text.includes(word)))
    return `${file} does not name ${name}`;
  return undefined;
}

/** From the project, else from `docs`; else by its name alone, wherever in `docs` it is. */
function pagesNamed(page: string, root: string): readonly string[] {
  const exact = [page, `docs/${page}`].find((file) => existsSync(join(root, file)));
  if (exact !== undefined) return [exact];
  return filesOf(root, 'docs/{how-to,operations,reference}/*.md').filter((file) => basename(file) === page);
}

function filesOf(root: string, pattern: string): string[] {
  return globSync(pattern, { cwd: root });
}

/** Headings, first cells of tables, and what is in bold, as read. */
function placesIn(markdown: string): string[] {
  return [...markdown.matchAll(/^#+ (.+)$|^\| ([^|]+) \||\*\*([^*]+)\*\*/gm)].flatMap(
    ([, heading, cell, bold]) => [(heading ?? cell ?? bold ?? '').replaceAll(/[*`]/g, '')],
  );
}
