/** One file of the declarations that a compiler wrote for several modules of ours, with what their entry exports and what that needs. */
import { parseAst } from 'rolldown/parseAst';

interface Declared {
  readonly name: string;
  /** Without `export`. */
  readonly text: string;
  readonly comment: string;
}

/**
 * @param entry exports by name from the others alone
 * @param others in which a name means one thing only, and what is imported is theirs too or `known`
 * @param known names that are declared elsewhere in the file
 */
export function declarationsOf(entry: string, others: readonly string[], known: ReadonlySet<string>): string {
  const exported = new Set(exportedNames(entry).filter((name) => !known.has(name)));
  const declared = new Map(others.flatMap(declarationsIn).map((one) => [one.name, one]));
  const needed = new Set<string>();
  const need = (name: string): void => {
    const found = declared.get(name);
    if (found === undefined || needed.has(name)) return;
    needed.add(name);
    for (const [word] of found.text.matchAll(/\b\w+\b/g)) need(word);
  };
  for (const name of exported) {
    if (!declared.has(name)) throw new Error(`the entry exports ${name}, which nothing declares`);
    need(name);
  }
  const texts = [...declared.values()]
    .filter(({ name }) => needed.has(name))
    .map(({ name, text, comment }) => `${comment}${exported.has(name) ? 'export ' : ''}${text}\n`);
  // Without an export of this kind, all that a file of declarations has is exported.
  return [...texts, 'export {};\n'].join('\n');
}

function exportedNames(entry: string): string[] {
  return parseAst(entry, { lang: 'dts' }).body.flatMap((statement) => {
    if (statement.type !== 'ExportNamedDeclaration' || statement.source === null) {
      throw new Error('the entry does more than to export by name');
    }
    return statement.specifiers.map(({ exported }) => entry.slice(exported.start, exported.end));
  });
}

function declarationsIn(module: string): Declared[] {
  const { body } = parseAst(module, { lang: 'dts' });
  return body.flatMap((statement, index) => {
    if (statement.type === 'ImportDeclaration') return [];
    const declaration = statement.type === 'ExportNamedDeclaration' ? statement.declaration : statement;
    if (declaration === null || !('id' in declaration) || declaration.id?.type !== 'Identifier') {
      const [line = ''] = module.slice(statement.start, statement.end).split('\n');
      // That the module has no other exports.
      if (line === 'export {};') return [];
      throw new Error(`a declaration of a kind that is not known here: ${line}`);
    }
    const before = module.slice(body[index - 1]?.end ?? 0, statement.start);
    const [comment = ''] = /\/\*\*(?:(?!\*\/)[\s\S])*\*\/\s*$/.exec(before) ?? [];
    return [{ name: declaration.id.name, text: module.slice(declaration.start, declaration.end), comment }];
  });
}
