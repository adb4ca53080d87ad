/** Small builders for a page's elements, and a length in figures. Text is only ever set as text, never as markup. */

/** Strings and flags that a page sets on elements. */
type Properties<Kind> = {
  readonly [Name in keyof Kind as Kind[Name] extends string | boolean | null ? Name : never]?: Kind[Name];
} & {
  readonly class?: string;
  readonly [attribute: `aria-${string}`]: string;
};

/** @param properties set on the element; `class` and attributes with a dash by name */
export function element<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  properties: Properties<HTMLElementTagNameMap[Tag]> = {},
  ...children: readonly (Node | string | null)[]
): HTMLElementTagNameMap[Tag] {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === 'class' || name.includes('-')) {
      node.setAttribute(name, String(value));
    } else {
      Object.assign(node, { [name]: value });
    }
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

const SVG = 'http://www.w3.org/2000/svg';

export function svg<Tag extends keyof SVGElementTagNameMap>(
  tag: Tag,
  attributes: Readonly<Record<string, string | number>> = {},
  ...children: readonly Node[]
): SVGElementTagNameMap[Tag] {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) {
    node.setAttribute(name, String(value));
  }
  node.append(...children);
  return node;
}

/** @param name of a symbol in index.html */
export function icon(name: string): SVGSVGElement {
  return svg('svg', { class: 'icon', 'aria-hidden': 'true' }, svg('use', { href: `#icon-${name}` }));
}

/** 75 → `1:15` */
export function clock(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`;
}
