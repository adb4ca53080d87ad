/** HTML as a value: what is put into a template is escaped, unless it is HTML itself. */

export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type Part = Html | string | number | undefined | readonly Part[];

export function html(strings: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return new Html(strings.reduce((text, piece, index) => text + textOf(parts[index - 1]) + piece));
}

function textOf(part: Part): string {
  if (part instanceof Html) {
    return part.text;
  }
  if (typeof part === 'object') {
    return part.map(textOf).join('');
  }
  return part === undefined ? '' : escapeHtml(String(part));
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => ENTITIES[character] ?? character);
}

/** Paragraphs with `code` in them, as the texts of the document are written. */
export function prose(text: string | undefined): Html[] {
  return (text ?? '')
    .split(/\n{2,}/)
    .filter((paragraph) => paragraph !== '')
    .map((paragraph) => html`<p>${inline(paragraph)}</p>`);
}

export function inline(text: string): Html[] {
  return text
    .split('`')
    .map((piece, index) => (index % 2 === 1 ? html`<code>${piece}</code>` : html`${piece}`));
}
