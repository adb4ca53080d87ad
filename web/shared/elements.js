// Small builders for a page's elements, and times in words. Text is only ever set as text, never as markup.

/** @param {string} tag @param {object} properties set on the element; `class` and attributes with a dash by name */
export function element(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === 'class') {
      node.className = value;
    } else if (name.includes('-')) {
      node.setAttribute(name, value);
    } else {
      node[name] = value;
    }
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

const SVG = 'http://www.w3.org/2000/svg';

export function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) {
    node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

/** @param {string} name of a symbol in index.html */
export function icon(name) {
  return svg('svg', { class: 'icon', 'aria-hidden': 'true' }, svg('use', { href: `#icon-${name}` }));
}

/** The time of day; with the date unless it is today. @param {Date} at */
export function shortTime(at) {
  const time = { hour: '2-digit', minute: '2-digit' };
  return at.toDateString() === new Date().toDateString()
    ? at.toLocaleTimeString([], time)
    : at.toLocaleString([], { day: 'numeric', month: 'short', ...time });
}

/** 75 → `1:15` */
export function clock(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`;
}

/** 75 → `1 minute 15 seconds`, for who listens to the page */
export function spoken(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  const part = (count, unit) => (count === 0 ? '' : `${count} ${unit}${count === 1 ? '' : 's'}`);
  return (
    [part(Math.floor(whole / 60), 'minute'), part(whole % 60, 'second')].filter(Boolean).join(' ') ||
    '0 seconds'
  );
}
